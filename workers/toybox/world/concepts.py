"""Concepts: what a label can say of a scene, such as "small red balls on snow at night".

A concept decides whether a scene shows it, and draws scenes that do, that just do not, or that do not.
Called by the scripted scientist (its hypotheses) and by the benchmark that judges labels.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace

from workers.toybox.world.scenes import CHOICES, COLOURS, NOUNS, SIZES, WHEN, Scene, Thing, compose, random_scene
from workers.toybox.world.words import Word, plural, read_words, split_words

_TRIES = 100


@dataclass(frozen=True)
class Concept:
    """Each property is a word of the vocabulary, or None where the concept does not care."""

    noun: str | None = None
    colour: str | None = None
    size: str | None = None
    ground: str | None = None
    light: str | None = None

    @property
    def named(self) -> tuple[str, ...]:
        """The properties that it names, such as ("noun", "ground")."""
        return tuple(field.name for field in fields(self) if getattr(self, field.name) is not None)

    @property
    def about_things(self) -> bool:
        return not (self.noun is self.colour is self.size is None)

    def fits(self, thing: Thing) -> bool:
        """Whether noun, colour and size all hold for one thing."""
        return all(getattr(self, name) in (None, getattr(thing, name)) for name in ("noun", "colour", "size"))

    def matches(self, scene: Scene) -> bool:
        """Whether the scene shows it: its noun, colour and size in one and the same thing."""
        around = self.ground in (None, scene.ground) and self.light in (None, scene.light)
        return around and (not self.about_things or any(self.fits(thing) for thing in scene.things))

    def phrase_one(self) -> str:
        """One thing of it, such as "large red ball"; ground and light are left out."""
        return " ".join(word for word in (self.size, self.colour, self.noun or "thing") if word)

    def phrase(self) -> str:
        """In words: "red balls on snow at night", "red things", "night scenes". `parse` reads it back."""
        ground = f" on {self.ground}" if self.ground else ""
        if not self.about_things:
            return f"{self.light + ' ' if self.light else ''}scenes{ground}"
        return plural(self.phrase_one()) + ground + (f" {WHEN[self.light]}" if self.light else "")

    def sample(self, rng: random.Random) -> Scene:
        """A scene that it describes; everything else is random, and usually there are other things too."""
        return self._scene(rng, [self._kind(rng), *_kinds(rng, self._company(rng))])

    def hard_negative(self, rng: random.Random) -> Scene:
        """A scene that differs from a match in exactly one property that the concept names, so it does not match.

        Raises ValueError for a concept that names nothing, since every scene matches it.
        """
        if not self.named:
            raise ValueError(
                "A concept that names nothing has no hard negative: name a noun, colour, size, ground or light."
            )
        name = rng.choice(self.named)
        other = rng.choice([word for word in CHOICES[name] if word != getattr(self, name)])
        if name in ("ground", "light"):
            return self.sample(rng).under(**{name: other})
        nearly = replace(self, **{name: other})
        others = _kinds(rng, self._company(rng))
        strangers = [kind for kind in others if not self.fits(Thing(*kind, 0, 0))]
        return self._scene(rng, [nearly._kind(rng), *strangers])

    def negative(self, rng: random.Random) -> Scene:
        """A random scene that it does not describe. Raises ValueError for a concept that names nothing."""
        for _ in range(_TRIES):
            scene = random_scene(rng)
            if not self.matches(scene):
                return scene
        return self.hard_negative(rng)

    def _scene(self, rng: random.Random, kinds: list[tuple[str, str, str]]) -> Scene:
        rng.shuffle(kinds)
        return compose(kinds, rng, ground=self.ground, light=self.light)

    def _kind(self, rng: random.Random) -> tuple[str, str, str]:
        """A (noun, colour, size) that fits."""
        return self.noun or rng.choice(NOUNS), self.colour or rng.choice(COLOURS), self.size or rng.choice(SIZES)

    @staticmethod
    def _company(rng: random.Random) -> int:
        """How many other things a scene has."""
        return rng.choice((0, 1, 1, 2))


def parse_label(text: str) -> tuple[Concept, ...]:
    """The concepts that a label names, alternatives separated by "or", commas or slashes; empty if none is understood.

    Adjectives alone share the noun of the next alternative: "red or blue balls" are red balls or blue balls.
    """
    concepts: list[Concept] = []
    noun: str | None = None
    for words in reversed(split_words(read_words(text), lambda word: word.kind == "or" or word.text == ",")):
        if any(word.kind == "not" for word in words):
            continue
        concept = read_concept(words)
        if concept.noun is None and {word.kind for word in words} <= {"colour", "size", "stop", "count"}:
            concept = replace(concept, noun=noun)
        if concept.named and concept.about_things:
            noun = concept.noun
        if concept.named and any(word.kind in CHOICES for word in words):
            concepts.append(concept)
    return tuple(dict.fromkeys(reversed(concepts)))


def matches_any(concepts: Iterable[Concept], scene: Scene) -> bool:
    """Whether the scene shows at least one of them."""
    return any(concept.matches(scene) for concept in concepts)


def phrase_label(concepts: Sequence[Concept]) -> str:
    """Alternatives in words: "red balls OR cones on snow"."""
    return " OR ".join(concept.phrase() for concept in concepts)


def read_concept(words: Sequence[Word]) -> Concept:
    """What the first word of each kind says."""
    return Concept(**{word.kind: word.value for word in reversed(words) if word.kind in CHOICES})


def _kinds(rng: random.Random, count: int) -> list[tuple[str, str, str]]:
    return [(rng.choice(NOUNS), rng.choice(COLOURS), rng.choice(SIZES)) for _ in range(count)]
