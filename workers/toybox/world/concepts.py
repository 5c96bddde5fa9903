"""Concepts: what a label can say about a scene, such as "small red balls on snow at night" or "two cups on a table".

A concept decides whether a scene shows it, and draws matching scenes, near misses and others. Used by the scripted
scientist (its hypotheses) and by judges of labels.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from workers.toybox.world.label_grammar import find_unread, read_alternatives
from workers.toybox.world.label_words import Joint, LabelAlternative, LabelPart
from workers.toybox.world.scenes import (
    CHOICES,
    COLOURS,
    MAX_THINGS,
    NOUNS,
    SIZES,
    WHEN,
    Scene,
    Thing,
    compose,
    random_scene,
)
from workers.toybox.world.words import Word, plural

_TRIES = 100
_NUMBERS = {1: "a", 2: "two", 3: "three", 4: "four", 5: "five", 6: "six"}
_PHRASES: dict[Joint, str] = {"with": "with", "on": "on", "left": "left of", "right": "right of", "under": "under"}
_TURNED: dict[Joint, Joint] = {"on": "under", "under": "on", "left": "right", "right": "left"}
_OF_THINGS = ("noun", "colour", "size")


@dataclass(frozen=True)
class Concept:
    """Each property is a word of the vocabulary, or None if it may be any."""

    noun: str | None = None
    colour: str | None = None
    size: str | None = None
    ground: str | None = None
    light: str | None = None
    count: int = 1
    """Minimum number of its things in a scene."""
    partner: Concept | None = None
    """Another thing that must be present. Only its noun, colour, size and count matter."""
    relation: Joint = "with"
    """Position of its things relative to the partner: "with" it, on or under it, or further left or right."""

    @property
    def named(self) -> tuple[str, ...]:
        """The properties that it names, of its things and around them, such as ("noun", "ground")."""
        return tuple(name for name in CHOICES if getattr(self, name) is not None)

    @property
    def said(self) -> tuple[str, ...]:
        """Everything that it says: its properties, and "count", "partner" and "relation" if they matter."""
        related = ("partner", "relation")[: 1 if self.relation == "with" else 2] if self.partner else ()
        return (*self.named, *(("count",) if self.count > 1 else ()), *related)

    @property
    def about_things(self) -> bool:
        return bool(self.noun or self.colour or self.size or self.partner) or self.count > 1

    def having(self, words: Mapping[str, str | None]) -> Concept:
        """Return the concept with other words for some properties."""
        changes: dict[str, Any] = dict(words)
        return replace(self, **changes)

    def fits(self, thing: Thing) -> bool:
        """True if noun, colour and size all hold for one thing."""
        return all(getattr(self, name) in (None, getattr(thing, name)) for name in _OF_THINGS)

    def matches(self, scene: Scene) -> bool:
        """True if the scene shows it: enough things with its noun, colour and size, each with its partner."""
        around = self.ground in (None, scene.ground) and self.light in (None, scene.light)
        return around and (not self.about_things or len(self._find(scene)) >= self.count)

    def find_shown(self, scene: Scene) -> list[int]:
        """Return the things that it describes in a scene that shows it; empty for any other."""
        return self._find(scene) if self.matches(scene) else []

    def find_pair(self, scene: Scene) -> tuple[int, int] | None:
        """Return a thing and its partner in the right relation, the left one first; None if there is no such pair."""
        for one in self._find(scene) if self.partner else ():
            for two, thing in enumerate(scene.things):
                if one != two and self.partner and self.partner.fits(thing) and self._stands(scene, one, two):
                    return (two, one) if scene.things[two].x < scene.things[one].x else (one, two)
        return None

    def _find(self, scene: Scene) -> list[int]:
        """Return the things that fit, each with enough partners in the right relation."""
        fitting = [place for place, thing in enumerate(scene.things) if self.fits(thing)]
        if self.partner is None:
            return fitting
        partners = [place for place, thing in enumerate(scene.things) if self.partner.fits(thing)]
        related = {one: [two for two in partners if one != two and self._stands(scene, one, two)] for one in fitting}
        return [one for one in fitting if len(related[one]) >= self.partner.count]

    def _stands(self, scene: Scene, one: int, two: int) -> bool:
        first, second = scene.things[one], scene.things[two]
        if self.relation in ("on", "under"):
            return first.on == two if self.relation == "on" else second.on == one
        return self.relation == "with" or (first.x < second.x) == (self.relation == "left")

    def phrase_one(self) -> str:
        """Return one thing of it, such as "large red ball", without ground, light, count and partner."""
        return " ".join(word for word in (self.size, self.colour, self.noun or "thing") if word)

    def phrase(self) -> str:
        """Return it in words: "red balls on snow at night", "two cups on a table", "night scenes". `parse_label`
        reads them back."""
        ground = f" on {self.ground}" if self.ground else ""
        if not self.about_things:
            return f"{self.light + ' ' if self.light else ''}scenes{ground}"
        when = f" {WHEN[self.light]}" if self.light else ""
        if self.partner is None:
            return self._phrase_several() + ground + when
        partner = f"{_NUMBERS[self.partner.count]} {self.partner.phrase_one()}"
        if self.partner.count > 1:
            partner = self.partner._phrase_several()
        return f"{self._phrase_several()} {_PHRASES[self.relation]} {partner}{ground}{when}"

    def _phrase_several(self) -> str:
        return f"{_NUMBERS[self.count]} " * (self.count > 1) + plural(self.phrase_one())

    # --- scenes -------------------------------------------------------------------------------------

    def sample(self, rng: random.Random) -> Scene:
        """Return a scene that it describes. Everything else is random, usually with other things.

        Raises ValueError if there is none: a scene holds at most `MAX_THINGS` things.
        """
        for _ in range(_TRIES):
            scene = self._scene(rng, _kinds(rng, self._company(rng)))
            if self.matches(scene):
                return scene
        raise ValueError(f"No scene shows {self.phrase()}: name fewer things, at most {MAX_THINGS} in all.")

    def hard_negative(self, rng: random.Random) -> Scene:
        """Return a scene that differs from a match in exactly one thing that the concept says, so it does not match.

        It has another word for a property, one thing too few, no partner, or the reversed relation. Raises
        ValueError for an empty concept, which every scene matches.
        """
        if not self.said:
            raise ValueError(
                "A concept that names nothing has no hard negative: name a noun, colour, size, ground or light."
            )
        for _ in range(_TRIES):
            scene = self._lack(rng.choice(self.said), rng)
            if not self.matches(scene):
                return scene
        return self.negative(rng)

    def negative(self, rng: random.Random) -> Scene:
        """Return a random scene that it does not describe. Raises ValueError for an empty concept."""
        if not self.said:
            raise ValueError("A concept that names nothing describes every scene: name a noun, colour or ground.")
        for _ in range(_TRIES):
            scene = random_scene(rng)
            if not self.matches(scene):
                return scene
        return self.hard_negative(rng)

    def _lack(self, name: str, rng: random.Random) -> Scene:
        """Return a scene that lacks one thing that it says. Other things in it match neither it nor its partner."""
        if name in ("ground", "light"):
            other = _other_word(rng, name, getattr(self, name))
            return self.sample(rng).under(**{name: other})
        if name == "count":
            nearly = replace(self, count=self.count - 1)
        elif name == "partner":
            assert self.partner
            changed = [self.partner.having({each: _other_word(rng, each, getattr(self.partner, each))})
                       for each in self.partner.named if each in _OF_THINGS]  # fmt: skip
            fewer = [replace(self.partner, count=self.partner.count - 1)] if self.partner.count > 1 else [None]
            nearly = replace(self, partner=rng.choice([*changed, *fewer]))
        elif name == "relation":
            nearly = replace(self, relation=_TURNED[self.relation])
        else:
            nearly = self.having({name: _other_word(rng, name, getattr(self, name))})
        kinds = [kind for kind in _kinds(rng, self._company(rng)) if not self._knows(kind)]
        return nearly._scene(rng, kinds)

    def _knows(self, kind: tuple[str, str, str]) -> bool:
        """True if a thing of this kind matches it or its partner."""
        thing = Thing(*kind, 0, 0)
        return self.fits(thing) or (self.partner is not None and self.partner.fits(thing))

    def _scene(self, rng: random.Random, company: list[tuple[str, str, str]]) -> Scene:
        """Return a scene of its own things and their partners, in their relation, among the company."""
        own = [self._kind(rng) for _ in range(self.count)]
        partners = [self.partner._kind(rng) for _ in range(self.partner.count)] if self.partner else []
        kinds = [*own, *partners, *company][:MAX_THINGS]
        order = list(range(len(kinds)))
        rng.shuffle(order)
        place = {old: new for new, old in enumerate(order)}
        shuffled = [kinds[old] for old in order]
        mine = [place[each] for each in range(min(len(own), len(kinds)))]
        theirs = [place[each] for each in range(len(own), min(len(own) + len(partners), len(kinds)))]
        on, left_of = self._relate(mine, theirs)
        return compose(shuffled, rng, ground=self.ground, light=self.light, on=on, left_of=left_of)

    def _relate(self, mine: Sequence[int], theirs: Sequence[int]) -> tuple[dict[int, int], list[tuple[int, int]]]:
        """Return what is on what, and which pairs are ordered from left to right: see `scenes.compose`."""
        pairs = [(one, two) for one in mine for two in theirs]
        if self.relation == "on":
            return {one: theirs[n % len(theirs)] for n, one in enumerate(mine) if theirs}, []
        if self.relation == "under":
            return {two: mine[n % len(mine)] for n, two in enumerate(theirs) if mine}, []
        if self.relation == "left":
            return {}, pairs
        return {}, [(two, one) for one, two in pairs] if self.relation == "right" else []

    def _kind(self, rng: random.Random) -> tuple[str, str, str]:
        """Return a (noun, colour, size) that fits."""
        return self.noun or rng.choice(NOUNS), self.colour or rng.choice(COLOURS), self.size or rng.choice(SIZES)

    @staticmethod
    def _company(rng: random.Random) -> int:
        """Return how many other things a scene has."""
        return rng.choice((0, 1, 1, 2))


def parse_label(text: str) -> tuple[Concept, ...]:
    """Return the concepts that a label names, as far as it is understood: alternatives separated by "or", commas or
    slashes.

    Adjectives alone share the noun of the next alternative: "red or blue balls" are red balls or blue balls.
    """
    concepts = [_read_alternative(each) for each in read_alternatives(text)]
    return tuple(dict.fromkeys(each for each in concepts if each.said))


def read_whole(text: str) -> tuple[Concept, ...]:
    """Return the concepts of a label if every word is understood; else empty."""
    return () if find_unread(text) else parse_label(text)


def _read_alternative(alternative: LabelAlternative) -> Concept:
    """Return what one alternative of a label says, as far as toybox understands it.

    Its first part is the thing and the next one that names a thing is the partner. Ground and light may be in any
    part.
    """
    around: dict[str, str] = {}
    things: list[tuple[Joint, Concept]] = []
    for part in alternative.parts:
        concept = replace(read_concept(part.words), count=min(part.count, MAX_THINGS))
        around = {name: word for name in ("ground", "light") if (word := getattr(concept, name))} | around
        if _speaks_of_things(part, concept):
            things.append((part.joint, replace(concept, ground=None, light=None)))
    if not things:
        return Concept().having(around)
    (_, first), *others = things
    if not others:
        return first.having(around)
    joint, partner = others[0]
    return replace(first.having(around), partner=partner, relation=joint or "with")


def _speaks_of_things(part: LabelPart, concept: Concept) -> bool:
    return concept.about_things or any(word.kind == "thing" for word in part.words)


def matches_any(concepts: Iterable[Concept], scene: Scene) -> bool:
    """True if the scene shows at least one of them."""
    return any(concept.matches(scene) for concept in concepts)


def phrase_label(concepts: Sequence[Concept]) -> str:
    """Return the alternatives in words: "red balls OR cones on snow"."""
    return " OR ".join(concept.phrase() for concept in concepts)


def read_concept(words: Sequence[Word]) -> Concept:
    """Return what the first word of each kind says about one thing and its surroundings."""
    return Concept().having({word.kind: word.value for word in reversed(words) if word.kind in CHOICES})


def _other_word(rng: random.Random, name: str, word: str) -> str:
    return rng.choice([other for other in CHOICES[name] if other != word])


def _kinds(rng: random.Random, count: int) -> list[tuple[str, str, str]]:
    return [(rng.choice(NOUNS), rng.choice(COLOURS), rng.choice(SIZES)) for _ in range(count)]
