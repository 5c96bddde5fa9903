"""Check a label during its run, so that the agent can reconsider it. `metrics/label_verdict.py` gives the verdict."""

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
"""Seed of generated images. It differs from the check after the run, because the agent sees some of these images."""
MAX_IMAGES = 4
"""Maximum number of shown images of each kind that agree with the label."""
TELLING = 6
"""Maximum number of shown images of each kind that contradict the label."""


class LabelGrader:
    """Grades the labels of one claim of a run, see `agent.loop.Grader`."""

    def __init__(self, run: Run, run_log: DatabaseRunLog) -> None:
        self.run = run
        self.run_log = run_log

    def __call__(self, step: Grade) -> Graded:
        label, run = " OR ".join(dict.fromkeys(step.labels)), self.run
        if (unit := find_unit_of(run)) is None:
            return Graded(step.round, label, left=step.left, reason="The unit is not in the catalogue.")
        method = choose_method(run.model, run.backbone, run.backbone_model, str(run.options.get("dataset") or ""))
        # The agent sees these results, so the final check needs other images
        tried = replace(method, split=DEVELOPMENT, seed=TRIAL_SEED)
        check = request_check(unit, label, tried, enqueue=False, unpriced=run.unpriced)
        check = run_or_wait(check.pk, self.run_log.progress) if check.is_open else check
        # Without a result the label has words that cannot be tested, so the agent may reword it; with one, for instance
        # a judge is missing
        if check.status == CheckStatus.UNTESTABLE and not check.result and not step.reworded:
            # A label whose words cannot be tested costs no reflection.
            return Graded(step.round, label, left=step.left + 1, reason=check.reason, direction="not readable")
        if check.status != CheckStatus.DONE:
            reason = check.reason or "The check came to no result."
            return Graded(step.round, label, left=step.left, reason=reason)
        return _grade_result(step, label, read_check(check))


def _grade_result(step: Grade, label: str, result: CheckResult) -> Graded:
    """Return the verdict on a label. Without generated images there is none, only a reason."""
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
    """Return images that contradict the label, the worst first, then a few that agree. One image per prompt."""
    # Generated images only: the next label is tested on the natural ones, which the agent must not know.
    level = drawn.exemplar_mean or 0.0 if mark is None else mark
    # The worst first: they tell most, and only a few are shown.
    positive = _choose_one_per_prompt(sorted(drawn.positive, key=lambda each: each.activation))
    neutral = _choose_one_per_prompt(sorted(drawn.neutral, key=lambda each: -each.activation))
    failed = [each for each in positive if each.activation <= level][:TELLING]
    bright = [each for each in neutral if each.activation > level][:TELLING]
    right = [each for each in reversed(positive) if each.activation > level][:MAX_IMAGES]
    dark = [each for each in reversed(neutral) if each.activation <= level][:MAX_IMAGES]
    return _build_observations([*failed, *bright, *right, *dark])


def _choose_one_per_prompt(images: Iterable[CheckImage]) -> list[CheckImage]:
    """Return the first image of each prompt. Further seeds show the same."""
    found: dict[str, CheckImage] = {}
    for each in images:
        found.setdefault(each.prompt, each)
    return list(found.values())


def _build_observations(images: Iterable[CheckImage]) -> tuple[Observation, ...]:
    """Return images of a check as observations titled by their prompts."""
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
