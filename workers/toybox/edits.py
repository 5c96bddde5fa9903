"""Edits: one instruction changes one thing about a scene, and leaves everything else as it was.

Covers: replace, make/paint/turn, change the background or the light, add, remove. Called by the toybox editor.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from workers.errors import ToolMisuse
from workers.toybox.prompts import Phrases, caption, parse, unknown
from workers.toybox.scenes import GROUNDS, LIGHTS, MAX_THINGS, SHAPES, Scene, Thing, joined_by
from workers.toybox.words import Word, listed, read_words

_ADD = {"add", "put", "place", "insert", "include"}
_REMOVE = {"remove", "delete", "erase", "take", "drop"}
_CHANGE = {
    *("replace", "swap", "exchange", "substitute", "turn", "change", "make", "set", "paint", "recolour", "recolor"),
    *("colour", "color", "convert", "transform", "switch"),
}
_INTO = {"with", "by", "to", "into", "for"}
_AROUND = {"background", "ground", "floor", "scene", "image", "picture", "photo", "sky", "time", "foreground", "it"}
_PROPERTIES = ("noun", "colour", "size", "ground", "light")


@dataclass(frozen=True)
class Kind:
    """Which things are meant, or what they shall be; None where it is not said."""

    noun: str | None = None
    colour: str | None = None
    size: str | None = None

    def fits(self, thing: Thing) -> bool:
        return (
            self.noun in (None, thing.noun) and self.colour in (None, thing.colour) and self.size in (None, thing.size)
        )

    def __str__(self) -> str:
        return " ".join(word for word in (self.size, self.colour, self.noun or "thing") if word)


def edit(scene: Scene, instruction: str, seed: int) -> Scene:
    """The scene after one instruction; the seed draws what an added thing's words do not say.

    Raises ToolMisuse if the instruction is not understood, or speaks of what is not in the scene.
    """
    words = [word for word in read_words(instruction) if word.text not in ("please", "now")]
    verb = next((word.text for word in words if word.text in _ADD | _REMOVE | _CHANGE), "")
    rest = _after(words, verb)
    if verb in _ADD:
        return _add(scene, instruction, parse(rest), seed)
    if verb in _REMOVE:
        return _remove(scene, _meant(scene, rest, instruction))
    return _change(scene, rest, instruction)


def ignored(instruction: str) -> tuple[str, ...]:
    """The words of an instruction that toybox knows neither from prompts nor from instructions."""
    known = _ADD | _REMOVE | _CHANGE | _INTO | _AROUND | {"light", "lighting"}
    return tuple(word for word in unknown(instruction) if word not in known)


def _after(words: Sequence[Word], verb: str) -> list[Word]:
    texts = [word.text for word in words]
    return list(words[texts.index(verb) + 1 :]) if verb else list(words)


# --- the three ways to change a scene ---------------------------------------------------------------


def _add(scene: Scene, instruction: str, phrases: Phrases, seed: int) -> Scene:
    """One more thing, or several, where there is room; "on the cube" means a cube that is there."""
    groups = phrases.groups
    support: int | None = None
    for relation, _, low in phrases.relations:
        if relation == "on":
            support = _found(scene, Kind(low.noun, next(iter(low.colours), None), low.size))[0]
            groups = [group for group in groups if group is not low]
    if not groups:
        raise _not_understood(scene, instruction)
    wanted = [
        (group.noun, group.colours[k % len(group.colours)] if group.colours else None, group.size)
        for group in groups
        for k in range(group.counts[0])
    ]
    if len(scene.things) + len(wanted) > MAX_THINGS:
        raise ToolMisuse(
            f"A scene holds at most {MAX_THINGS} things; this one has {len(scene.things)}. Remove one first."
        )
    return joined_by(scene, wanted, random.Random(f"toybox add {seed}"), support)


def _remove(scene: Scene, gone: set[int]) -> Scene:
    """Without the things meant; what stood on them comes down to where they stood."""
    kept = [k for k in range(len(scene.things)) if k not in gone]
    number = {old: new for new, old in enumerate(kept)}

    def support(index: int | None) -> int | None:
        while index is not None and index in gone:
            index = scene.things[index].on
        return None if index is None else number[index]

    return replace(scene, things=tuple(replace(scene.things[k], on=support(scene.things[k].on)) for k in kept))


def _change(scene: Scene, words: Sequence[Word], instruction: str) -> Scene:
    """Something that is there, made into something else."""
    before, after = _sides(words)
    said = [word.kind for word in after if word.kind in _PROPERTIES]
    around = _value(after, "ground") or _value(after, "light")
    if not said or len(said) > len(set(said)) or (around and len(said) > 1) or _relates(words):
        raise _not_understood(scene, instruction)
    if around:
        _check_there(scene, _value(before, said[0]), scene.ground if said[0] == "ground" else scene.light)
        return scene.under(ground=_value(after, "ground"), light=_value(after, "light"))
    return _altered(scene, _meant(scene, before, instruction), lambda thing: _made(thing, _kind(after)))


def _relates(words: Sequence[Word]) -> bool:
    return any(word.kind in ("relation", "side") for word in words)


def _sides(words: Sequence[Word]) -> tuple[list[Word], list[Word]]:
    """What is meant, and what it shall be: parted at "with" or "to", else right after the things that are meant."""
    for k, word in enumerate(words):
        if word.text in _INTO and k:
            return list(words[:k]), list(words[k + 1 :])
    for k, word in enumerate(words):
        following = words[k + 1].kind if k + 1 < len(words) else ""
        if (word.kind in ("noun", "thing") or word.text in _AROUND) and following != "and":
            return list(words[: k + 1]), list(words[k + 1 :])
    return [], list(words)


def _made(thing: Thing, into: Kind) -> Thing:
    """The thing with another noun, colour or size; it keeps its place and how far it is turned from its best side."""
    noun = into.noun or thing.noun
    old, new = SHAPES[thing.noun], SHAPES[noun]
    turn = thing.turn
    if noun != thing.noun:
        turn = round(new.facing + (thing.turn - old.facing) / old.wobble * new.wobble, 1)
    return replace(thing, noun=noun, colour=into.colour or thing.colour, size=into.size or thing.size, turn=turn)


def _altered(scene: Scene, which: set[int], change: Callable[[Thing], Thing]) -> Scene:
    return replace(scene, things=tuple(change(t) if k in which else t for k, t in enumerate(scene.things)))


# --- what is meant ----------------------------------------------------------------------------------


def _meant(scene: Scene, words: Sequence[Word], instruction: str) -> set[int]:
    """The things that the words name, such as "the red ball and the cube"; "it" is the only thing there is."""
    meant: set[int] = set()
    for part in _parts(words):
        if any(word.kind in ("noun", "thing") for word in part):
            meant |= set(_found(scene, _kind(part)))
        elif any(word.text == "it" for word in part) and len(scene.things) == 1:
            meant.add(0)
        else:
            raise _not_understood(scene, instruction)
    return meant


def _parts(words: Sequence[Word]) -> list[list[Word]]:
    """The words between one "and" and the next."""
    parts: list[list[Word]] = [[]]
    for word in words:
        if word.kind == "and":
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def _kind(words: Sequence[Word]) -> Kind:
    return Kind(_value(words, "noun"), _value(words, "colour"), _value(words, "size"))


def _value(words: Sequence[Word], kind: str) -> str | None:
    return next((word.value for word in words if word.kind == kind), None)


def _found(scene: Scene, kind: Kind) -> list[int]:
    found = [k for k, thing in enumerate(scene.things) if kind.fits(thing)]
    if not found:
        raise ToolMisuse(f"There is no {kind} in this image, which shows {caption(scene)}. {_example(scene)}")
    return found


def _check_there(scene: Scene, said: str | None, there: str) -> None:
    if said not in (None, there):
        raise ToolMisuse(f"There is no {said} in this image, which shows {caption(scene)}. {_example(scene)}")


def _not_understood(scene: Scene, instruction: str) -> ToolMisuse:
    return ToolMisuse(
        f"Toybox does not understand the instruction {instruction[:80]!r}. It can replace, recolour, resize, add and "
        "remove toys, one change at a time, and change "
        f"the ground ({listed(GROUNDS)}) and the light ({listed(LIGHTS)}). {_example(scene)}"
    )


def _example(scene: Scene) -> str:
    """An instruction that works on this very scene."""
    if not scene.things:
        return 'Say for example "add a red ball".'
    thing = scene.things[0]
    return f'Say for example "make the {thing.noun} {"green" if thing.colour != "green" else "red"}".'
