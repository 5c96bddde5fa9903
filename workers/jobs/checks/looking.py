"""A check by a language model: it writes prompts from the label, and looks at a sample of natural images.

The sample is drawn where its answers decide the correlation and weighted back ("Beyond Top Activations", 2506.07985).
Its error is measured on images that it should know: those drawn from its own prompts. Every answer is kept at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from experiments.core.label_checks import spend
from experiments.models import LabelCheck
from workers import registry
from workers.errors import BackboneRefused, RequestError
from workers.jobs.checks.answers import Floats, JudgeAnswers
from workers.jobs.checks.asking import ask, find_backbone
from workers.jobs.checks.held_out import HeldOut
from workers.jobs.checks.images import store
from workers.jobs.laboratory import laboratory
from workers.metrics import presence, prompt_writing
from workers.metrics.importance import UNIFORM, ImportanceSample, sample_by_importance
from workers.protocols import Backbone, Progress, WrittenPrompts
from workers.record.limits import Usage

SAMPLE = 180
"""Draws of natural images that are judged (2506.07985)."""


def write_prompts(check: LabelCheck, count: int, progress: Progress) -> tuple[str, WrittenPrompts]:
    """The name of the backbone, and its prompts. Raises RequestError if it writes none that can be read."""
    backbone = _backbone_of(check, sees=False)
    generator = laboratory().generator(registry.TOOLSETS[str(check.options["toolset"])].generator)
    vocabulary = str(getattr(generator, "vocabulary", ""))
    request = prompt_writing.ask_for_prompts(check.text, count, count, vocabulary=vocabulary)
    parse = partial(prompt_writing.parse_prompts, positives=count, neutrals=count)
    prompts = ask(backbone, request, parse, partial(_spend, check), progress, int(str(check.options.get("seed") or 0)))
    if prompts is None:
        raise RequestError(f"{backbone.label} wrote no {count} + {count} prompts for “{check.text}”. Say it otherwise.")
    return backbone.label, prompts


def look(check: LabelCheck, label: str, held: HeldOut, progress: Progress) -> JudgeAnswers:
    """What the check's backbone says of a weighted sample of the images; NaN for all others."""
    positions = held.positions
    sample = draw_sample(check, held.activations, SAMPLE)
    asked = np.unique(sample.positions)
    kept: dict[str, float | None] = check.kept.setdefault("answers", {})
    missing = [int(at) for at in asked if str(int(positions[at])) not in kept]
    for start in range(0, len(missing), presence.MOST_IMAGES):
        progress("Asking what natural images show", start, len(missing))
        some = missing[start : start + presence.MOST_IMAGES]
        said = look_at(check, label, store([held.split.picture(int(positions[at])) for at in some]), progress)
        kept |= {str(int(positions[at])): answer for at, answer in zip(some, said, strict=True)}
        check.save(update_fields=["kept"])
    answers, weights = np.full(len(positions), np.nan), np.zeros(len(positions))
    for at in asked:
        answer = kept[str(int(positions[at]))]
        answers[at] = np.nan if answer is None else answer
    np.add.at(weights, sample.positions, sample.weights)
    unread = int(np.isnan(answers[asked]).sum())
    judge = _backbone_of(check, sees=True).label
    return JudgeAnswers(judge, answers, free=False, weights=weights, unread=unread)


def draw_sample(check: LabelCheck, activations: Floats, count: int, uniform: float = UNIFORM) -> ImportanceSample:
    """So many draws of images, by what they add to the correlation; the share `uniform` of them evenly."""
    guess = activations - float(np.median(activations))  # with no cheaper judge, the unit itself says where to look
    seed = int(str(check.options.get("seed") or 0))
    return sample_by_importance(activations, guess, count, seed=seed, uniform=uniform)


def look_at(check: LabelCheck, label: str, keys: Sequence[str], progress: Progress) -> list[float | None]:
    """What the check's backbone says of stored images, `presence.MOST_IMAGES` at most; None where it cannot be read."""
    request = presence.ask_for_presence(label, keys)
    parse = partial(presence.parse_presence, count=len(keys))
    found = ask(_backbone_of(check, sees=True), request, parse, partial(_spend, check), progress)
    return [None] * len(keys) if found is None else list(found)


def _backbone_of(check: LabelCheck, *, sees: bool) -> Backbone:
    options = check.options
    unpriced = bool(options.get("unpriced"))
    return find_backbone(str(options["backbone"]), str(options["backbone_model"]), sees=sees, unpriced=unpriced)


def _spend(check: LabelCheck, usage: Usage) -> None:
    """Raises BackboneRefused once the check has cost what it may."""
    spend(check, usage.prompt_tokens, usage.completion_tokens, usage.cost)
    check.refresh_from_db(fields=["cost"])
    limit = float(str(check.options.get("cost_limit") or 0))
    if limit and check.cost >= limit:
        raise BackboneRefused(
            f"The check's allowance of ${limit:.2f} is used up: it has cost ${check.cost:.2f}. What was answered is "
            "kept. Raise MAIA_LABEL_CHECK_COST to go on."
        )
