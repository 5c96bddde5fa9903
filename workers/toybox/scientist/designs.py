"""Designs experiments: which scenes to draw, and which single changes to make to them.

Everything is balanced and randomized with the given rng, so that no property is confounded with another. Activations
are not used; the tasks decide what to test.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Mapping, Sequence

from workers.toybox.scientist.scoring import Label
from workers.toybox.world.concepts import Concept, matches_any
from workers.toybox.world.scenes import CHOICES, Scene, compose

# A label that describes nearly all scenes has no hard negatives: stop after this many draws
_TRIES = 50


class BalancedSampler:
    """Deals the words of each property evenly: every word once before any is repeated."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._left: dict[str, list[str]] = {name: [] for name in CHOICES}

    def deal(self, name: str) -> str:
        deck = self._left[name]
        if not deck:
            deck += CHOICES[name]
            self._rng.shuffle(deck)
        return deck.pop()

    def kind(self, concept: Concept = Concept()) -> tuple[str, str, str]:  # noqa: B008  concepts are frozen
        """Return a (noun, colour, size) that the concept describes."""
        return tuple(getattr(concept, name) or self.deal(name) for name in ("noun", "colour", "size"))  # type: ignore[return-value]

    def scene(self, kinds: Sequence[tuple[str, str, str]], concept: Concept = Concept()) -> Scene:  # noqa: B008
        """Return a scene of these things, with the ground and light of the concept."""
        ground, light = concept.ground or self.deal("ground"), concept.light or self.deal("light")
        return compose(kinds, self._rng, ground=ground, light=light)


def balanced_scenes(rng: random.Random, sizes: Iterable[int]) -> list[Scene]:
    """Return scenes with these numbers of things, in which all words of a property are equally frequent."""
    decks = BalancedSampler(rng)
    return [decks.scene([decks.kind() for _ in range(size)]) for size in sizes]


def build_single_thing_scenes(concepts: Sequence[Concept], each: int, rng: random.Random) -> list[Scene]:
    """Return `each` scenes of one thing for each concept, balanced in everything else."""
    decks = BalancedSampler(rng)
    return [decks.scene([decks.kind(concept)], concept) for _ in range(each) for concept in concepts]


def scenes_without(label: Label, count: int, things: int, rng: random.Random) -> list[Scene]:
    """Return balanced scenes that the label does not describe; fewer if it describes nearly all."""
    # Twice as many, since some are described
    drawn = balanced_scenes(rng, [things] * (2 * count))
    return [scene for scene in drawn if not matches_any(label, scene)][:count]


def build_edited_scenes(concepts: Sequence[Concept], rng: random.Random) -> list[Scene]:
    """Return a scene of each concept with only its things, the thing to edit first."""
    decks = BalancedSampler(rng)
    partners = [[decks.kind(concept.partner)] if concept.partner else [] for concept in concepts]
    # The thing to edit first: `write_edit` addresses things by their place
    kinds = [[decks.kind(concept), *partner] for concept, partner in zip(concepts, partners, strict=True)]
    return [decks.scene(each, concept) for each, concept in zip(kinds, concepts, strict=True)]


def build_matching_scenes(label: Label, count: int, rng: random.Random) -> list[Scene]:
    """Return scenes that the label describes, spread over its alternatives, usually with other toys."""
    return [label[place % len(label)].sample(rng) for place in range(count)]


def hard_negatives(label: Label, count: int, rng: random.Random) -> list[Scene]:
    """Return scenes that lack one property of an alternative and match no other; fewer if none are found."""
    found = []
    for place in range(count):
        drawn = (label[place % len(label)].hard_negative(rng) for _ in range(_TRIES))
        found += list(itertools.islice((scene for scene in drawn if not matches_any(label, scene)), 1))
    return found


def negatives(labels: Sequence[Label], count: int, rng: random.Random) -> list[Scene]:
    """Return random scenes that no label describes."""
    concepts = [concept for label in labels for concept in label]
    # A reserve: some are described by other concepts
    scenes = (concepts[place % len(concepts)].negative(rng) for place in range(count * 4))
    return [scene for scene in scenes if not matches_any(concepts, scene)][:count]


def write_edits(scene: Scene, rng: random.Random, each: Mapping[str, int]) -> list[str]:
    """Return instructions that change one property of the first thing, the ground or the light, `each` per property.

    Other things are removed, one at a time.
    """
    edits = []
    for name, count in each.items():
        there = getattr(scene if name in ("ground", "light") else scene.things[0], name)
        words = [word for word in CHOICES[name] if word != there]
        rng.shuffle(words)
        edits += [write_edit(scene, Concept().having({name: word})) for word in words[:count]]
    return edits + [f"remove the {thing.noun}" for thing in scene.things[1:]]


def write_lacking_edits(scene: Scene, concept: Concept, wider: Concept, rng: random.Random) -> list[str]:
    """Return the instruction that removes from a scene of `build_edited_scenes` what the wider concept does not say, if
    one can."""
    # 1. Only the partner is too much: remove it
    if concept.partner and not wider.partner:
        return [f"remove the {scene.things[1].noun}"]
    lost = [name for name in concept.named if name not in wider.named]
    # 2. A property of the thing itself, of the ground or the light
    place, names = 0, lost
    # 3. Or a property of the partner, the second thing
    if concept.partner and wider.partner and not lost:
        place, names = 1, [name for name in concept.partner.named if name not in wider.partner.named]
    edits = []
    for name in names:
        there = getattr(scene if name in ("ground", "light") else scene.things[place], name)
        # A noun that is in the scene already would make the edit ambiguous
        taken = {thing.noun for thing in scene.things} if name == "noun" else {there}
        word = rng.choice([word for word in CHOICES[name] if word not in taken])
        edits.append(write_edit(scene, Concept().having({name: word}), place))
    return edits


def write_edit(scene: Scene, into: Concept, place: int = 0) -> str:
    """Return the instruction that gives one thing of a scene, its ground or light, a property."""
    (name,), noun = into.named, scene.things[place].noun
    word = getattr(into, name)
    if name == "noun":
        return f"replace the {noun} with a {word}"
    if name in ("colour", "size"):
        return f"make the {noun} {word}"
    return f"change the background to {word}" if name == "ground" else f"change the light to {word}"
