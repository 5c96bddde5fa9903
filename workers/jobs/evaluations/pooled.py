"""The paper's pooled comparison (section 4.1, Figures 3 and 4, Table A3): several sources, one pool of prompts.

The prompts of all labels of a unit are pooled. Each label is paired with the 7 prompts that it entails most and the 7
that it entails least, so no label is tested only on prompts of its own author. Images and measurements come from the
label checks. Runs unit by unit after all items are done; finished units are kept.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256

import numpy as np

from experiments.label_checks.requests import BACKBONE, add_usage
from experiments.models import Evaluation, EvaluationItem, ItemStatus, LabelCheck
from workers.errors import RequestError
from workers.jobs.images import ImagesInDatabase
from workers.jobs.label_checks.generated import MAIA, SEEDS
from workers.jobs.label_checks.images import draw, measure
from workers.jobs.label_checks.subject import CheckedUnit
from workers.jobs.label_checks.vlm_request import ask, find_backbone
from workers.jobs.laboratory import laboratory
from workers.lab.image_tools import derive_seed
from workers.lab.imaging import placeholder
from workers.metrics.prompt_pairing import COUNT, PairedPrompts, ask_for_pairing, parse_pairing
from workers.protocols import Json, Picture, Progress
from workers.record.limits import Usage

POOL = "pool"
"""Key of an item's scores: the pool to which the other scores belong."""


@dataclass(frozen=True)
class _PooledPrompt:
    text: str
    activation: float
    """Mean over its images."""
    scenes: tuple[Json, ...]


def compare_pooled(evaluation: Evaluation, progress: Progress) -> Iterator[None]:
    """Score the items of every unit with labels of at least two sources. Yields before each unit that is not scored
    yet.

    Raises Cancelled, and the errors of generator, unit and backbone; finished scores are kept.
    """
    rows = evaluation.items.filter(status=ItemStatus.DONE).exclude(label_check=None).order_by("position")
    units: dict[int, list[EvaluationItem]] = defaultdict(list)
    for item in rows.select_related("label_check__unit__layer__model"):
        if item.unit_id and _prompts_of(item):
            units[item.unit_id].append(item)
    for done, (unit, items) in enumerate(units.items()):
        # A single source has no pool to share
        if len({item.source for item in items}) < 2:
            continue
        pool = sorted({prompt for item in items for prompt in _prompts_of(item)})
        # Changes with any prompt or label, so that stale scores are replaced
        named = sha256("\n".join([*pool, *(item.label for item in items)]).encode(errors="surrogatepass")).hexdigest()
        # Already scored on exactly this pool
        if all(item.scores.get(POOL) == named[:12] for item in items):
            continue
        yield
        progress(f"{items[0].unit_name}: pooled comparison", done, len(units))
        # The order must not reveal the source of a prompt
        random.Random(f"pool {evaluation.seed} {unit}").shuffle(pool)
        _score_unit(items, pool, named[:12], evaluation, progress)


def _prompts_of(item: EvaluationItem) -> list[str]:
    """Return the 7 + 7 prompts written for its label."""
    kept = item.label_check.kept.get("prompts") if item.label_check else None
    return [prompt for side in ("positive", "neutral") for prompt in kept[side][:MAIA]] if kept else []


def _score_unit(
    items: Sequence[EvaluationItem], pool: Sequence[str], named: str, evaluation: Evaluation, progress: Progress
) -> None:
    """Score each label once."""
    # By check: two sources may have given the same label.
    checks = {item.label_check_id: item.label_check for item in items if item.label_check}
    measured = _measure_pool(next(iter(checks.values())), pool, progress)
    found: dict[int | None, dict[str, float | str | None]] = {}
    for key, check in checks.items():
        try:
            found[key] = _score_label(check, measured, evaluation, progress)
        except RequestError as error:
            # The reason is saved as the item's result, so that it is not tried again at each call.
            found[key] = {"pooled_problem": str(error)}
    for item in items:
        # Old figures go, even if there are no new ones.
        others = {name: value for name, value in item.scores.items() if not name.startswith("pooled_")}
        item.scores = {**others, **found[item.label_check_id], POOL: named}
        item.save(update_fields=["scores"])


def _measure_pool(check: LabelCheck, pool: Sequence[str], progress: Progress) -> list[_PooledPrompt]:
    """Return the unit's activations for the images of each prompt. Prompts without any image are left out."""
    seeds = [derive_seed(int(str(check.options.get("seed") or 0)), "label check", at) for at in range(SEEDS)]
    rows = draw(str(check.options["toolset"]), [(prompt, seed) for prompt in pool for seed in seeds], progress)
    keys: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        if row.image_id:
            keys[row.prompt].append(row.image_id)
    every = [key for each in keys.values() for key in each]
    answers = measure(CheckedUnit.of(check, progress).spec, every, progress)
    # One query for the provenance of all images.
    images = ImagesInDatabase()
    images.expect(every)
    return [
        _PooledPrompt(
            prompt,
            float(np.mean([answers[key].activation for key in keys[prompt]])),
            tuple(known.scene for key in keys[prompt] if (known := images.recall(key))),
        )
        for prompt in pool
        if prompt in keys
    ]


def _score_label(
    check: LabelCheck, pool: Sequence[_PooledPrompt], evaluation: Evaluation, progress: Progress
) -> dict[str, float | str | None]:
    """Return mean activations, and their difference in standard deviations of the held-out images.

    Raises RequestError if no judge can pair, or if the pool is too small.
    """
    if len(pool) < 2 * COUNT:
        raise RequestError(f"{len(pool)} prompts were drawn, too few to pair a label with {COUNT} and {COUNT}.")
    pair = _pair(check, pool, evaluation, progress)
    positive, neutral = (float(np.mean([pool[at].activation for at in side])) for side in (pair.most, pair.least))
    natural = check.result.get("natural") or {}
    spread = float(np.std(natural.get("activations") or [0.0]))
    difference = (positive - neutral) / spread if spread > 0 else None
    return {"pooled_positive": positive, "pooled_neutral": neutral, "pooled_difference": difference}


def _pair(
    check: LabelCheck, pool: Sequence[_PooledPrompt], evaluation: Evaluation, progress: Progress
) -> PairedPrompts:
    judge = str(check.options.get("judge") or "")
    if judge not in ("", BACKBONE) and laboratory().presence_judge(judge).kind == "exact":
        # In toybox the scenes behind the images tell which prompts show what a label says; elsewhere a backbone reads
        # the prompts.
        return _pair_by_scenes(check.text, judge, pool, progress)
    if not check.options.get("backbone"):
        raise RequestError(
            "No judge can pair the label with prompts. Choose a language model as backbone, or units of toybox."
        )
    return _pair_by_reading(check, pool, evaluation, progress)


def _pair_by_scenes(label: str, judge: str, pool: Sequence[_PooledPrompt], progress: Progress) -> PairedPrompts:
    """Pair by the share of a prompt's images that show what the label says. Ties keep the order of the pool."""
    pictures = [Picture(placeholder(), scene) for prompt in pool for scene in prompt.scenes]
    said = iter(laboratory().presence_judge(judge).judge(label, pictures, progress))
    # Unreadable scenes count as not shown.
    shown = [[next(said) or 0.0 for _ in prompt.scenes] for prompt in pool]
    order = sorted(range(len(pool)), key=lambda at: -sum(shown[at]) / max(1, len(shown[at])))
    return PairedPrompts(tuple(order[:COUNT]), tuple(order[: -COUNT - 1 : -1]))


def _pair_by_reading(
    check: LabelCheck, pool: Sequence[_PooledPrompt], evaluation: Evaluation, progress: Progress
) -> PairedPrompts:
    """Pair by a conversation about the texts only. The answer for a pool is stored with the check."""
    texts = [prompt.text for prompt in pool]
    # The order of the pool is part of the question.
    named = sha256("\n".join(texts).encode(errors="surrogatepass")).hexdigest()
    kept = check.kept.setdefault("pairings", {})
    if named not in kept:
        options = check.options
        backbone = find_backbone(
            str(options["backbone"]), str(options["backbone_model"]), sees=False, unpriced=evaluation.unpriced
        )
        parse = partial(parse_pairing, pool=len(pool))
        found = ask(
            backbone, ask_for_pairing(check.text, texts), parse, partial(_add_cost, check), progress, evaluation.seed
        )
        if found is None:
            raise RequestError(f"{backbone.label} gave no pairing of “{check.text}” that can be read.")
        kept[named] = [list(found.most), list(found.least)]
        check.save(update_fields=["kept"])
    most, least = kept[named]
    return PairedPrompts(tuple(most), tuple(least))


def _add_cost(check: LabelCheck, usage: Usage) -> None:
    """Add the cost of a reply to the check, and so to the budget of the evaluation."""
    add_usage(check, usage.prompt_tokens, usage.completion_tokens, usage.cost)
