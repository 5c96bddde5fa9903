"""Find the two conditions whose activations decide a run's answer.

Images with and without what was concluded; if the answer names nothing that images can show, the two conditions
that differ most.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter

from experiments.display.effect_sizes import separate, standardize
from experiments.display.evidence import Evidence
from experiments.display.image_cards import LoggedCard
from experiments.display.label_meaning import scenes
from experiments.display.scene_changes import list_contexts
from experiments.display.strips import Strip
from experiments.models import Run
from workers.record.stated_biases import StatedBias, find_sides, read_statements

MIN_IMAGES = 3
"""Minimum images with a condition, and without it."""


@dataclass(frozen=True)
class Contrast:
    """Two strips of images; `title` names the difference. `auc` is the probability that one of the first exceeds
    one of the second, in [0, 1]."""

    title: str
    exemplars: Strip
    sides: tuple[Strip, Strip]

    @property
    def strips(self) -> Sequence[Strip]:
        return self.exemplars, *self.sides

    @property
    def auc(self) -> float | None:
        return separate(*([image.card.activation for image in side.images] for side in self.sides))


def find_contrast(run: Run, evidence: Evidence) -> Contrast | None:
    """Return the contrast: images with and without what the label says; or the context of the first stated bias; or
    the property of a scene with the largest Cohen's d. None if no condition has images on both sides."""
    showing, others = evidence.showing.images, evidence.others.images
    # 1. By the label.
    names, title = ("Shows it", "Does not") if evidence.is_known else ("Titled so", "Titled else"), "With and without"
    stated = [] if run.labels else list_stated(run)
    # 2. By the first stated bias.
    if stated:
        names = f"With “{stated[0].context}”", f"Without “{stated[0].context}”"
        showing, others = _find_sides(stated, others)
    # 3. By the property of scenes that separates most.
    elif not showing and (found := _find_largest(others)):
        name, showing, others = found
        names, title = (name, "All others"), "Largest difference between conditions"
    if not showing or not others:
        return None
    sides = Strip(names[0], "with", showing), Strip(names[1], "without", others)
    return Contrast(title, Strip("Exemplars", "exemplar", evidence.exemplars.images), sides)


def list_stated(run: Run) -> list[StatedBias]:
    """Return the biases that a run states, each with when it was first stated, as their tests at its end used them."""
    after = {each["text"]: each.get("after") for each in run.biases if "text" in each}
    found = {each.words: replace(each, after=after.get(each.text)) for each in read_statements(run.statement)}
    return list(found.values())


def _find_sides(
    stated: Sequence[StatedBias], images: Sequence[LoggedCard]
) -> tuple[Sequence[LoggedCard], Sequence[LoggedCard]]:
    """Return the images with the context of the first bias and those without, by the rules of its test."""
    # Cards are told apart by identity: an image may be logged twice with equal values.
    by_card = {id(each.card): each for each in images}
    # `groupby` needs them sorted by the same key.
    logged = groupby(sorted(images, key=attrgetter("experiment")), key=attrgetter("experiment"))
    cards = {number: [each.card for each in some] for number, some in logged}
    found = find_sides(stated[0], cards, stated)
    return [by_card[id(card)] for card in found.inside], [by_card[id(card)] for card in found.outside]


def _find_largest(images: Sequence[LoggedCard]) -> tuple[str, Sequence[LoggedCard], Sequence[LoggedCard]] | None:
    """Return the scene property that separates the activations most: its name, and the images with it and without."""
    known = scenes([each.card.image for each in images])
    read = [each for each in images if each.card.image in known]
    conditions: dict[str, set[int]] = defaultdict(set)
    for place, each in enumerate(read):
        for name, word in list_contexts(known[each.card.image]):
            conditions[f"{name}: {word}"].add(place)
    best, largest = None, 0.0
    for name, places in conditions.items():
        inside = [each for place, each in enumerate(read) if place in places]
        outside = [each for place, each in enumerate(read) if place not in places]
        # Of a few images, d is often large by chance.
        if min(len(inside), len(outside)) < MIN_IMAGES:
            continue
        d = abs(standardize(*([each.card.activation for each in side] for side in (inside, outside))) or 0.0)
        if d > largest:
            best, largest = (name, inside, outside), d
    return best
