"""Judges a label by scenes that nobody chose: how often does a scene that it describes outdo one that it does not?

Toybox only: `workers.toybox.world.concepts` reads the label and draws the scenes. It knows no agent and no run; a label
is a text. Called by the benchmark of the scripted scientist.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from workers.errors import RequestError
from workers.toybox.networks.metrics import area_under_curve
from workers.toybox.world.concepts import Concept, matches_any, parse_label
from workers.toybox.world.scenes import CHOICES, Scene
from workers.toybox.world.words import read_words

EACH = 20
"""Scenes on either side."""
_TRIES = 200
_LEAST_READ = 0.5

Respond = Callable[[Sequence[Scene]], Sequence[float]]
"""A unit: an activation for each scene."""


_CONDITIONS = frozenset(["when", "while", "where", "who", "which", "if", "unless", "but", "also", "only", "except"])


@dataclass(frozen=True)
class LabelTest:
    """Scenes to judge a label by, half of `others` hard negatives."""

    described: tuple[Scene, ...]
    others: tuple[Scene, ...]
    read: float = 1.0
    """The share of the label's words that was understood, (0, 1]: the exam is about those alone."""


def make_label_test(label: str, seed: int, each: int = EACH) -> LabelTest:
    """Fresh scenes for a label, spread evenly over its alternatives; the same label and seed give the same scenes.

    A hard negative lacks one property that an alternative names, and no alternative describes it. Raises RequestError
    if toybox does not understand the label or half of its words, if it describes nearly everything, or if it says more
    than alternatives of one thing each: a condition, a relation, a negation.
    """
    # The share of a label's words that toybox understands, 0 to 1; words that carry no meaning here do not count
    words = [word for word in read_words(label) if word.kind not in ("stop", "count", "and", "or")]
    read = sum(word.kind != "unknown" for word in words) / len(words) if words else 0.0
    if beyond := _explain_beyond(label):
        raise RequestError(
            f"The label {label!r} cannot be judged: {beyond} is not read. Name alternatives of one thing each, with "
            "its size, colour, ground and light, joined by OR."
        )
    concepts = parse_label(label)
    if not concepts or read < _LEAST_READ:
        raise RequestError(f"Toybox does not understand the label {label!r}. Name toys, colours, grounds or lights.")
    rng = random.Random(f"label exam {seed} {label}")
    turns = [concepts[place % len(concepts)] for place in range(each)]
    near = [_outside(concept.hard_negative, concepts, label, rng) for concept in turns[: each // 2]]
    far = [_outside(concept.negative, concepts, label, rng) for concept in turns[each // 2 :]]
    return LabelTest(tuple(concept.sample(rng) for concept in turns), (*near, *far), read)


def _explain_beyond(label: str) -> str:
    """What the label says beyond alternatives of one thing each, "" if nothing."""
    seen: set[str] = set()
    words = [word for word in read_words(label) if word.kind != "count" and word.text not in ("the", "of", "in")]
    for word, after in zip(words, [*words, None][1:], strict=True):
        if word.kind == "or" or word.text == ",":
            seen = set()
        on_ground = word.kind == "relation" and after is not None and after.kind == "ground"
        joins = word.kind in ("and", "not", "side", "relation") and word.text != "," and not on_ground
        if joins or word.text in _CONDITIONS or (word.kind in CHOICES and word.kind in seen):
            return f'"{word.text}"'
        seen.add(word.kind)
    return ""


def label_auc(label: str, respond: Respond, seed: int, each: int = EACH) -> float:
    """The AUC of a unit's activations on scenes that the label describes against scenes that it does not.

    1 if every described scene outdoes every other one, 0.5 for a label that says nothing. Raises as `set_exam` does.
    """
    exam = make_label_test(label, seed, each)
    activations = list(respond([*exam.described, *exam.others]))
    return area_under_curve(np.array(activations[:each]), np.array(activations[each:]))


def shuffle_labels(count: int, seed: int) -> list[int]:
    """For each of `count` units the number of the unit whose label it gets, never its own; [0] for a single unit.

    Labels dealt to the wrong units give the floor: what an AUC is worth that has nothing to do with the unit.
    """
    order = list(range(count))
    random.Random(f"shuffled labels {seed}").shuffle(order)
    dealt = [0] * count
    for place, unit in enumerate(order):
        dealt[unit] = order[(place + 1) % count]
    return dealt


def _outside(
    draw: Callable[[random.Random], Scene], concepts: Sequence[Concept], label: str, rng: random.Random
) -> Scene:
    """A scene that no alternative describes."""
    for _ in range(_TRIES):
        scene = draw(rng)
        if not matches_any(concepts, scene):
            return scene
    raise RequestError(f"The label {label!r} describes nearly everything, so no scene lies outside it. Narrow it.")
