"""Tests a label while its run goes on, for the agent to think again: the check that anybody may ask for, but on
development images, so that what is reported afterwards rests on others. Judged by `metrics.label_verdict`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from experiments.core.units_of_runs import find_unit_of
from experiments.display.label_checks import read_check
from experiments.label_checks.requests import choose_method, request_check
from experiments.models import CheckStatus, Run
from experiments.models.evaluation import DEVELOPMENT
from workers.agent.rules import Grade
from workers.jobs.label_checks.check import run_or_wait
from workers.jobs.run_log import DatabaseRunLog
from workers.metrics.label_verdict import find_mark, judge_label
from workers.record.events import Graded
from workers.record.experiments import Observation
from workers.record.label_checks import CheckImage, CheckResult, GeneratedResult
from workers.record.origins import Origin

TRIAL_SEED = 1
"""So that other images are drawn than those of the check that follows the run: the agent is shown some of them."""
MAX_IMAGES = 4
"""Images of either kind that went as the label says."""
TELLING = 6
"""Images of each kind that did not."""


class LabelGrader:
    """See `agent.loop.Grader`: for one claim of one run."""

    def __init__(self, run: Run, run_log: DatabaseRunLog) -> None:
        self.run = run
        self.run_log = run_log

    def __call__(self, step: Grade) -> Graded:
        label, run = " OR ".join(dict.fromkeys(step.labels)), self.run
        if (unit := find_unit_of(run)) is None:
            return Graded(step.round, label, left=step.left, reason="The unit is not in the catalogue.")
        method = choose_method(run.model, run.backbone, run.backbone_model, str(run.options.get("dataset") or ""))
        tried = replace(method, split=DEVELOPMENT, seed=TRIAL_SEED)
        check = request_check(unit, label, tried, enqueue=False, unpriced=run.unpriced)
        check = run_or_wait(check.pk, self.run_log.progress) if check.is_open else check
        # A check without a result met words that it cannot test; one with a result lacks a judge, say
        if check.status == CheckStatus.UNTESTABLE and not check.result and not step.reworded:
            return Graded(step.round, label, left=step.left + 1, reason=check.reason, direction="not readable")
        if check.status != CheckStatus.DONE:
            reason = check.reason or "The check came to no result."
            return Graded(step.round, label, left=step.left, reason=reason)
        return _grade_result(step, label, read_check(check))


def _grade_result(step: Grade, label: str, result: CheckResult) -> Graded:
    """The verdict on a label. Without generated images there is none, and a reason."""
    drawn = result.generated or GeneratedResult()
    if drawn.auc.value is None:
        reason = drawn.problem or "No images could be drawn for the label."
        return Graded(step.round, label, left=step.left, reason=reason)
    verdict = judge_label(result)
    figures: dict[str, Any] = dict(verdict.figures)
    return Graded(
        step.round,
        label,
        verdict.passed,
        **figures,
        left=step.left,
        images=_choose_images(drawn, find_mark(drawn)),
        needed=verdict.needed,
        reachable=verdict.reachable,
        direction=verdict.direction,
        reading=result.reading.words if result.reading and not result.reading.says_same(label) else "",
    )


def _choose_images(drawn: GeneratedResult, mark: float | None) -> tuple[Observation, ...]:
    """What went otherwise than the label says, the worst first; then a few of what went as it says.

    One image of each prompt. Natural images are not among them: the label that comes next is tested on these, and the
    agent must not know them.
    """
    level = drawn.exemplar_mean or 0.0 if mark is None else mark
    positive = _one_of_each_prompt(sorted(drawn.positive, key=lambda each: each.activation))
    neutral = _one_of_each_prompt(sorted(drawn.neutral, key=lambda each: -each.activation))
    failed = [each for each in positive if each.activation <= level][:TELLING]
    bright = [each for each in neutral if each.activation > level][:TELLING]
    right = [each for each in reversed(positive) if each.activation > level][:MAX_IMAGES]
    dark = [each for each in reversed(neutral) if each.activation <= level][:MAX_IMAGES]
    return _as_observations([*failed, *bright, *right, *dark])


def _one_of_each_prompt(images: Iterable[CheckImage]) -> list[CheckImage]:
    """The first image of each prompt: further seeds show the same."""
    found: dict[str, CheckImage] = {}
    for each in images:
        found.setdefault(each.prompt, each)
    return list(found.values())


def _as_observations(images: Iterable[CheckImage]) -> tuple[Observation, ...]:
    """Images of a check as a run shows them, called by their prompts."""
    return tuple(
        Observation(
            title=each.prompt,
            activation=each.activation,
            image=each.image,
            masked=each.masked,
            origin=Origin.GENERATED,
            prompt=each.prompt,
            seed=each.seed,
            measured=True,
        )
        for each in images
    )
