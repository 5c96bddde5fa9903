"""Label checks by a language model: it writes prompts from the label, and looks at a sample of images (`sampling`).

Its error is measured on images drawn from its own prompts. Every answer is saved at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from PIL.Image import Image

from experiments.label_checks.requests import add_usage
from experiments.models import LabelCheck
from workers import registry
from workers.errors import BackboneRefused, RequestError
from workers.jobs.label_checks.held_out import HeldOut
from workers.jobs.label_checks.images import store
from workers.jobs.label_checks.judge_answers import Floats, JudgeAnswers
from workers.jobs.label_checks.vlm_request import ask, find_backbone
from workers.jobs.laboratory import laboratory
from workers.metrics import presence, prompt_writing
from workers.protocols import Backbone, Picture, Progress, WrittenPrompts
from workers.record.limits import Usage

PARTS = "parts"
"""Key of a check's answers about parts of images."""


def write_prompts(check: LabelCheck, count: int, progress: Progress) -> tuple[str, WrittenPrompts]:
    """Return the backbone's name and its prompts. Raises RequestError if it writes no readable prompts."""
    backbone = _backbone_of(check, sees=False)
    generator = laboratory().generator(registry.TOOLSETS[str(check.options["toolset"])].generator)
    vocabulary = str(getattr(generator, "vocabulary", ""))
    request = prompt_writing.ask_for_prompts(check.text, count, count, vocabulary=vocabulary)
    parse = partial(prompt_writing.parse_prompts, positives=count, neutrals=count)
    prompts = ask(
        backbone, request, parse, partial(_add_cost, check), progress, int(str(check.options.get("seed") or 0))
    )
    if prompts is None:
        raise RequestError(f"{backbone.label} wrote no {count} + {count} prompts for “{check.text}”. Reword the label.")
    return backbone.label, prompts


def judge_images(check: LabelCheck, label: str, held: HeldOut, weights: Floats, progress: Progress) -> JudgeAnswers:
    """Return the backbone's answers for these images. Images it has answered before are not sent again."""
    names = [str(position) for position in held.positions.tolist()]

    def read(places: Sequence[int]) -> list[Picture]:
        return [held.split.picture(int(held.positions[place])) for place in places]

    found = _look_at_new(check, label, "answers", names, read, progress)
    answers = np.array([np.nan if each is None else each for each in found], np.float64)
    judge = _backbone_of(check, sees=True).label
    return JudgeAnswers(judge, answers, free=False, weights=weights, unread=found.count(None))


def look_at_parts(
    check: LabelCheck, label: str, names: Sequence[str], marked: Sequence[Image], progress: Progress
) -> list[float | None]:
    """Return answers about the bright parts of images. Each name is asked about once."""
    return _look_at_new(
        check, label, PARTS, names, lambda places: [Picture(marked[place]) for place in places], progress
    )


def _look_at_new(
    check: LabelCheck,
    label: str,
    store_key: str,
    names: Sequence[str],
    read: Callable[[Sequence[int]], list[Picture]],
    progress: Progress,
) -> list[float | None]:
    """Return answers by name. New ones are saved with the check at once."""
    kept: dict[str, float | None] = check.kept.setdefault(store_key, {})
    # A check that is resumed must not pay twice
    missing = [place for place, name in enumerate(names) if name not in kept]
    for start in range(0, len(missing), presence.MAX_IMAGES):
        progress("Asking what natural images show", start, len(missing))
        some = missing[start : start + presence.MAX_IMAGES]
        said = look_at(check, label, store(read(some)), progress, marked=store_key == PARTS)
        kept |= {names[place]: answer for place, answer in zip(some, said, strict=True)}
        check.save(update_fields=["kept"])
    return [kept[name] for name in names]


def look_at(
    check: LabelCheck, label: str, keys: Sequence[str], progress: Progress, *, marked: bool = False
) -> list[float | None]:
    """Return answers for at most `presence.MAX_IMAGES` stored images; None for an unreadable reply."""
    request = presence.ask_for_presence(label, keys, marked=marked)
    parse = partial(presence.parse_presence, count=len(keys))
    found = ask(_backbone_of(check, sees=True), request, parse, partial(_add_cost, check), progress)
    return [None] * len(keys) if found is None else list(found)


def _backbone_of(check: LabelCheck, *, sees: bool) -> Backbone:
    options = check.options
    unpriced = bool(options.get("unpriced"))
    return find_backbone(str(options["backbone"]), str(options["backbone_model"]), sees=sees, unpriced=unpriced)


def _add_cost(check: LabelCheck, usage: Usage) -> None:
    """Add the cost to the check. Raises BackboneRefused if its allowance is used up."""
    add_usage(check, usage.prompt_tokens, usage.completion_tokens, usage.cost)
    # Read again: the column was added to in the database.
    check.refresh_from_db(fields=["cost"])
    limit = float(str(check.options.get("cost_limit") or 0))
    if limit and check.cost >= limit:
        raise BackboneRefused(
            f"The check's allowance of ${limit:.2f} is used up: it has cost ${check.cost:.2f}. What was answered is "
            "kept. Raise MAIA_LABEL_CHECK_COST to continue."
        )
