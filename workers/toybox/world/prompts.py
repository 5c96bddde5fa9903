"""Prompts: converts words to a scene, and a scene back to words.

Covers nouns, colours, sizes, counts to three, grounds, lights, and the relations on, left of and right of. Other
words are reported and never guessed, so that the caller can refuse what would be drawn differently.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from workers.errors import ToolMisuse
from workers.toybox.world.scenes import (
    COLOURS,
    GROUNDS,
    LIGHTS,
    MAX_THINGS,
    NOUNS,
    OWN_COLOUR,
    SIZES,
    WHEN,
    Scene,
    Thing,
    compose,
)
from workers.toybox.world.surfaces import AddedToys
from workers.toybox.world.words import Word, add_nouns, join_words, plural, read_words

_REPORTED = 12
"""Maximum number of words reported as not understood."""
_NUMBERS = {1: "a", 2: "two", 3: "three"}


@dataclass(frozen=True)
class PromptReading:
    """What toybox understands of a prompt."""

    scene: Scene
    ignored: tuple[str, ...] = ()
    """What it did not understand or cannot draw, in the order of the prompt."""
    understood: bool = True
    """False if it understood nothing at all; the scene is then an empty one."""


@dataclass
class Group:
    """Some things of one kind that a phrase names; None for what it does not say."""

    noun: str | None = None
    colours: list[str] = field(default_factory=list)
    size: str | None = None
    counts: list[int] = field(default_factory=list)
    plural: bool = False
    unwanted: bool = False
    side: int = 0
    members: list[int] = field(default_factory=list)

    @property
    def blank(self) -> bool:
        """True if no adjective was said."""
        return not (self.colours or self.size)


@dataclass
class Phrases:
    """What a text says, before anything is drawn at random."""

    groups: list[Group] = field(default_factory=list)
    relations: list[tuple[str, Group, Group]] = field(default_factory=list)
    ground: str | None = None
    light: str | None = None
    ignored: list[str] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        return not (self.groups or self.ground or self.light)


def read_prompt(prompt: str, seed: int, count: int | None = None, added: AddedToys | None = None) -> PromptReading:
    """Return the scene that a prompt describes. What it does not say is drawn from the seed; nothing is added.

    The same prompt and seed give the same scene, and prompts that differ by a word share what neither says. `count`
    draws this many of the prompt's one kind, all alike, on the same ground in the same light. `added` are toys
    besides toybox's own, which have their own colour if none is said. Raises ToolMisuse for a count if the prompt
    does not name exactly one kind.
    """
    added = added or {}
    phrases = parse_words(read_words(prompt, add_nouns(tuple(added)) if added else None))
    if count is not None:
        _check_one_kind(phrases)
    if phrases.empty:
        return PromptReading(Scene((), GROUNDS[0], LIGHTS[0]), _limit_report(phrases.ignored), understood=False)
    rng = random.Random(f"toybox {seed}")
    kinds = _kinds(phrases, rng, added)
    if count is not None:
        kinds, phrases.groups[0].members = kinds * count, list(range(count))
    on, left_of, sides = _find_relations(phrases)
    around = {"ground": phrases.ground, "light": phrases.light}
    scene = compose(kinds, rng, **around, on=on, left_of=left_of, sides=sides, added=added)
    return PromptReading(scene, _limit_report(phrases.ignored))


def caption(scene: Scene) -> str:
    """Describe the scene in words. `read_prompt` of them gives a scene with the same description."""
    supporters = {thing.on for thing in scene.things} - {None}
    alone: Counter[str] = Counter()
    stacks: dict[int, list[int]] = {}
    for index, thing in enumerate(scene.things):
        if index in supporters:
            continue
        tops = stacks.setdefault(thing.on, []) if thing.on is not None else []
        if thing.on is None or (tops and _adjectives(scene.things[tops[0]]) != _adjectives(thing)):
            alone[_adjectives(thing)] += 1
        else:
            tops.append(index)
    parts: list[str] = []
    for name, total in alone.items():  # counts go to three
        parts += [_write_count(name, min(3, total - done)) for done in range(0, total, 3)]
    parts += [_stack(scene, tops) for tops in stacks.values()]
    return f"{join_words(parts) or 'an empty scene'} on {scene.ground} {WHEN[scene.light]}"


def write_related(scene: Scene, left: int, right: int) -> str:
    """Describe the scene, starting with one thing to the left of another.

    Both must be on the ground with nothing on them; else return the caption.
    """
    supporters = {thing.on for thing in scene.things}
    if not all(scene.things[each].on is None and each not in supporters for each in (left, right)):
        return caption(scene)
    order = [place for place in range(len(scene.things)) if place not in (left, right)]
    number: dict[int | None, int | None] = {None: None} | {old: new for new, old in enumerate(order)}
    rest = tuple(replace(scene.things[place], on=number[scene.things[place].on]) for place in order)
    first, second = (_write_count(_adjectives(scene.things[each]), 1) for each in (left, right))
    others = caption(replace(scene, things=rest))
    joined = f", {others}" if rest else others.removeprefix("an empty scene")
    return f"{first} left of {second}{joined}"


def unknown_words(text: str) -> tuple[str, ...]:
    """Return the words of a text that toybox does not know."""
    return _limit_report([word.text for word in read_words(text) if word.kind == "unknown"])


# --- reading ----------------------------------------------------------------------------------------


def parse_words(words: Sequence[Word]) -> Phrases:
    """Return what the words say, in one pass from left to right."""
    return _Parser(words).phrases


class _Parser:
    """Collects adjectives until their noun comes. A relation waits for the noun on its right."""

    def __init__(self, words: Sequence[Word]) -> None:
        self.phrases = Phrases()
        self._next = Group()
        self._waiting: tuple[str, Group] | None = None
        self._total = 0
        for word, after in zip(words, [*words, None][1:], strict=True):
            self._take(word, after)
        self._drop_adjectives()

    def _take(self, word: Word, after: Word | None) -> None:
        group = self._next
        if word.kind in ("noun", "thing"):
            self._finish(word)
        elif word.kind == "colour":
            group.colours.append(word.value)
        elif word.kind == "size":
            group.size = word.value
        elif word.kind == "count":
            self.phrases.ignored += [word.text] if word.value == "many" else []
            group.counts.append(3 if word.value == "many" else int(word.value))
        elif word.kind == "not":
            group.unwanted = True
        elif word.kind in ("relation", "side"):
            self._relate(word)
        elif word.text in ("it", "them") and self._waiting is not None:
            # "A table with a cup on it": the relation is to what was named before
            groups, (relation, first), self._waiting = self.phrases.groups, self._waiting, None
            if len(groups) > 1 and groups[-1] is first:
                self.phrases.relations.append((relation, first, groups[-2]))
            else:
                self.phrases.ignored.append(word.text)
        elif word.kind == "and" and group.blank:
            self._waiting = None
        else:
            self._surround(word, after)

    def _surround(self, word: Word, after: Word | None) -> None:
        """Set ground and light, wherever they are said. "Brick" in "a brick house" is not a ground."""
        phrases = self.phrases
        if word.kind == "ground" and not (after is not None and after.kind in ("noun", "thing")):
            self._drop_adjectives()
            phrases.ignored += [word.text] if phrases.ground not in (None, word.value) else []
            phrases.ground, self._waiting = phrases.ground or word.value, None
        elif word.kind == "light":
            phrases.ignored += [word.text] if phrases.light not in (None, word.value) else []
            phrases.light, self._waiting = phrases.light or word.value, None
        elif word.kind in ("unknown", "ground", "or"):
            phrases.ignored.append(word.text)

    def _relate(self, word: Word) -> None:
        self._drop_adjectives()
        last = self.phrases.groups[-1] if self.phrases.groups else None
        if last is None:
            return
        if word.kind == "side":
            last.side = -1 if word.value == "left" else 1
        else:
            self._waiting = (word.value, last)

    def _finish(self, word: Word) -> None:
        """Complete the group at its noun, unless there is no room for it."""
        group, self._next = self._next, Group()
        waiting, self._waiting = self._waiting, None
        group.noun = word.value if word.kind == "noun" else None
        group.plural = word.plural
        if group.unwanted:
            return
        self._settle(group)
        if self._total + group.counts[0] > MAX_THINGS:
            self.phrases.ignored.append(f"{word.text} (over {MAX_THINGS} things)")
            return
        self._total += group.counts[0]
        self.phrases.groups.append(group)
        if waiting is not None:
            self.phrases.relations.append((waiting[0], waiting[1], group))

    def _settle(self, group: Group) -> None:
        """Determine how many things the group has, as far as the words say: "a red and a blue ball" are two."""
        several = group.plural or len(group.counts) > 1
        if len(group.colours) > 1 and not several:
            self.phrases.ignored += group.colours[1:]
            del group.colours[1:]
        said = sum(group.counts) if len(group.counts) > 1 and len(group.colours) > 1 else max(group.counts, default=0)
        count = min(3, max(said, len(group.colours), 2 if group.plural and not group.counts else 1))
        group.counts = [count]

    def _drop_adjectives(self) -> None:
        """Ignore adjectives without a noun."""
        self.phrases.ignored += self._next.colours + ([self._next.size] if self._next.size else [])
        self._next = Group(unwanted=self._next.unwanted)


def _kinds(phrases: Phrases, rng: random.Random, added: AddedToys) -> list[tuple[str, str, str]]:
    """Return a (noun, colour, size) for each thing, and number the members of the groups.

    Every draw is made whether it is needed or not, so that prompts that differ by a word share the others.
    """
    lower = {id(group) for relation, _, group in phrases.relations if relation == "on"}
    crowd = {id(up) for relation, up, low in phrases.relations if relation == "on" and up.counts[0] > low.counts[0]}
    kinds: list[tuple[str, str, str]] = []
    for group in phrases.groups:
        drawn = [(rng.choice(NOUNS), rng.choice(COLOURS), rng.choice(SIZES)) for _ in range(group.counts[0])]
        if id(group) in crowd:
            drawn = [(drawn[0][0], drawn[0][1], "small")] * len(drawn)
        for k, (noun, colour, size) in enumerate(drawn):
            if id(group) in lower and id(group) not in crowd:
                size = "large"
            usual = OWN_COLOUR if group.noun in added else colour
            said = group.colours[k % len(group.colours)] if group.colours else usual
            group.members.append(len(kinds))
            kinds.append((group.noun or noun, said, group.size or size))
    return kinds


def _find_relations(phrases: Phrases) -> tuple[dict[int, int], list[tuple[int, int]], dict[int, int]]:
    """Return the relations between members: what is on what, pairs from left to right, and sides."""
    on: dict[int, int] = {}
    left_of: list[tuple[int, int]] = []
    for relation, first, second in phrases.relations:
        if relation == "on":
            on |= {k: second.members[n % len(second.members)] for n, k in enumerate(first.members)}
        elif relation == "left":
            left_of += [(i, j) for i in first.members for j in second.members]
        else:
            left_of += [(j, i) for i in first.members for j in second.members]
    return on, left_of, {k: group.side for group in phrases.groups if group.side for k in group.members}


def _check_one_kind(phrases: Phrases) -> None:
    """Raise ToolMisuse unless the prompt names one thing, which becomes a group of one."""
    if len(phrases.groups) != 1 or len(phrases.groups[0].colours) > 1:
        raise ToolMisuse('count needs a prompt that names one kind of toy in one colour, such as "a red car on grass".')
    phrases.groups[0].counts = [1]


def _limit_report(ignored: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(ignored))[:_REPORTED]


# --- words ------------------------------------------------------------------------------------------


def _adjectives(thing: Thing) -> str:
    return f"{thing.size} {thing.colour} {thing.noun}"


def _write_count(name: str, count: int) -> str:
    head, _, noun = name.rpartition(" ")
    return f"{_NUMBERS[count]} {head} {noun if count == 1 else plural(noun)}"


def _stack(scene: Scene, tops: Sequence[int]) -> str:
    """Describe a stack from the top: "two small red balls on a large blue cube"."""
    thing = scene.things[tops[0]]
    names = [_write_count(_adjectives(thing), min(3, len(tops)))]
    while thing.on is not None:
        thing = scene.things[thing.on]
        names.append(_write_count(_adjectives(thing), 1))
    return " on ".join(names)
