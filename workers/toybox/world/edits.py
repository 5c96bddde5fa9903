"""Edits: one instruction changes one thing of a scene and leaves everything else unchanged.

Covers: replace, make/paint/turn, change the background or the light, add, remove. An instruction that cannot be
carried out exactly is refused, because half of it would look like all of it. Called by the toybox editor.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace

from workers.errors import ToolMisuse
from workers.toybox.world.concepts import Concept, read_concept
from workers.toybox.world.prompts import Phrases, caption, parse_words, unknown_words
from workers.toybox.world.scenes import CHOICES, COLOURS, GROUNDS, LIGHTS, MAX_THINGS, SHAPES, Scene, Thing, joined_by
from workers.toybox.world.words import Word, join_words, plural, read_words, split_words

_ADD = {"add", "put", "place", "insert", "include"}
_REMOVE = {"remove", "delete", "erase", "take", "drop"}
_CHANGE = {
    *("replace", "swap", "exchange", "substitute", "turn", "change", "make", "set", "paint", "recolour", "recolor"),
    *("colour", "color", "convert", "transform", "switch"),
}
_PUT = {"put", "place"}
"""With "the" they refer to existing things: "put the chair on the beach"."""
_MOVE = {"move", "shift", "slide", "drag", "push", "pull", "lift", "rotate"}
_NO_VERBS = {"colour", "color"}
"""Words that are nouns as often as verbs."""
_FILLERS = {"please", "now", "instead"}
_INTO = {"with", "by", "to", "into", "for"}
_AROUND = {"background", "ground", "floor", "scene", "image", "picture", "photo", "sky", "time", "foreground", "it"}
_APART = 0.25
"""Minimum distance, in world units, between the centres of a thing and of what is to its left."""
_ANYWHERE = (-math.inf, math.inf)
ABILITIES = (
    "Toybox can replace, recolour, resize, add and remove toys, one change at a time, and change the ground "
    f"({join_words(GROUNDS)}) and the light ({join_words(LIGHTS)})."
)
"""Describes the possible changes in a sentence. A refusal only says what is wrong with an instruction."""


def apply_edit(scene: Scene, instruction: str, seed: int) -> Scene:
    """Return the scene after one instruction. The seed draws what an added thing's words do not say.

    Raises ToolMisuse if the instruction is not understood, refers to something that is not in the scene, or asks for
    more than one change.
    """
    words = [word for word in read_words(instruction) if word.text not in _FILLERS]
    verbs = [word.text for word in words if word.text in _ADD | _REMOVE | _CHANGE]
    verb = next(iter(verbs), "")
    texts = [word.text for word in words]
    rest = list(words[texts.index(verb) + 1 :]) if verb else list(words)
    # No word may be ignored: every word must be known from prompts or from instructions
    known = _ADD | _REMOVE | _CHANGE | _INTO | _AROUND | _FILLERS | {"light", "lighting"}
    strange = tuple(word for word in unknown_words(instruction) if word not in known)
    if _MOVE & set(strange):
        raise _refuse_move(scene)
    if strange or len(set(verbs) - _NO_VERBS) > 1:
        raise _not_understood(scene, instruction, strange)
    if verb in _PUT and rest and rest[0].text == "the":
        return _refuse_ground(scene, instruction, rest)
    if verb in _ADD:
        return _add(scene, instruction, parse_words(rest), seed)
    if verb in _REMOVE:
        return _remove(scene, _find_meant(scene, rest, instruction))
    return _change(scene, rest, instruction)


# --- the three ways to change a scene ---------------------------------------------------------------


def _add(scene: Scene, instruction: str, phrases: Phrases, seed: int) -> Scene:
    """Add one or more things where there is room. "On the cube" means an existing cube."""
    others = (phrases.ground not in (None, scene.ground), phrases.light not in (None, scene.light))
    groups = [group for group in phrases.groups if not any(group is low for _, _, low in phrases.relations)]
    sided = any(group.side for group in groups)
    if not groups or any(others) or phrases.ignored or len(phrases.relations) + sided > 1:
        raise _not_understood(scene, instruction)
    support, room = _find_place(scene, phrases, next((group.side for group in groups), 0))
    wanted = [
        (group.noun, group.colours[k % len(group.colours)] if group.colours else None, group.size)
        for group in groups
        for k in range(group.counts[0])
    ]
    if len(scene.things) + len(wanted) > MAX_THINGS:
        raise ToolMisuse(
            f"A scene holds at most {MAX_THINGS} things; this one has {len(scene.things)}. Remove one first."
        )
    after = joined_by(scene, wanted, random.Random(f"toybox add {seed}"), support, room)
    if not all(room[0] <= thing.x <= room[1] for thing in after.things[len(scene.things) :]):
        raise ToolMisuse(f"There is no room there in this image, which shows {caption(scene)}. {_example(scene)}")
    return after


def _find_place(scene: Scene, phrases: Phrases, side: int) -> tuple[int | None, tuple[float, float]]:
    """Return where new things go: on an existing thing, or between two positions from left to right."""
    for relation, _, low in phrases.relations:
        there = _find_matching(scene, Concept(low.noun, next(iter(low.colours), None), low.size))
        if relation == "on":
            return there[0], _ANYWHERE
        places = [scene.things[k].x for k in there]
        return None, (-math.inf, min(places) - _APART) if relation == "left" else (max(places) + _APART, math.inf)
    return None, (-math.inf, -_APART) if side < 0 else (_APART, math.inf) if side else _ANYWHERE


def _refuse_ground(scene: Scene, instruction: str, words: Sequence[Word]) -> Scene:
    """Change the ground for "put the chair on the beach", because the ground belongs to the whole scene. Refuse
    other moves."""
    phrases = parse_words(words)
    for group in phrases.groups:
        _find_matching(scene, Concept(group.noun, next(iter(group.colours), None), group.size))
    if phrases.relations or any(group.side for group in phrases.groups):
        raise _refuse_move(scene)
    if not phrases.groups or phrases.ignored or bool(phrases.ground) == bool(phrases.light):
        raise _not_understood(scene, instruction)
    return scene.under(ground=phrases.ground, light=phrases.light)


def _remove(scene: Scene, gone: set[int]) -> Scene:
    """Remove the things. What was on them comes down to what they were on."""
    kept = [k for k in range(len(scene.things)) if k not in gone]
    number = {old: new for new, old in enumerate(kept)}

    def support(index: int | None) -> int | None:
        while index is not None and index in gone:
            index = scene.things[index].on
        return None if index is None else number[index]

    return replace(scene, things=tuple(replace(scene.things[k], on=support(scene.things[k].on)) for k in kept))


def _change(scene: Scene, words: Sequence[Word], instruction: str) -> Scene:
    """Change existing things into something else."""
    before, after = _split_sides(words)
    said = [word.kind for word in after if word.kind in CHOICES]
    around = _value(after, "ground") or _value(after, "light")
    counted = any(word.kind == "count" and word.value != "1" for word in after)
    related = any(word.kind in ("relation", "side") for word in words)
    if not said or len(said) > len(set(said)) or (around and len(said) > 1) or related or counted:
        raise _not_understood(scene, instruction)
    if around:
        old = _value(before, said[0])
        if old not in (None, getattr(scene, said[0])):
            raise _refuse_missing(scene, old)
        return scene.under(ground=_value(after, "ground"), light=_value(after, "light"))
    meant, into = _find_meant(scene, before, instruction), read_concept(after)
    things = (_change_thing(thing, into) if k in meant else thing for k, thing in enumerate(scene.things))
    return replace(scene, things=tuple(things))


def _split_sides(words: Sequence[Word]) -> tuple[list[Word], list[Word]]:
    """Split into what is meant and what it becomes: at "with" or "to", else right after the things that are meant."""
    for k, word in enumerate(words):
        if word.text in _INTO and k:
            return list(words[:k]), list(words[k + 1 :])
    for k, word in enumerate(words):
        following = words[k + 1].kind if k + 1 < len(words) else ""
        if (word.kind in ("noun", "thing") or word.text in _AROUND) and following != "and":
            return list(words[: k + 1]), list(words[k + 1 :])
    return [], list(words)


def _change_thing(thing: Thing, into: Concept) -> Thing:
    """Return the thing with another noun, colour or size, in its place and with its rotation relative to its best
    side."""
    noun = into.noun or thing.noun
    old, new = SHAPES[thing.noun], SHAPES[noun]
    turn = thing.turn
    if noun != thing.noun:
        turn = round(new.facing + (thing.turn - old.facing) / old.wobble * new.wobble, 1)
    return replace(thing, noun=noun, colour=into.colour or thing.colour, size=into.size or thing.size, turn=turn)


# --- what is meant ----------------------------------------------------------------------------------


def _find_meant(scene: Scene, words: Sequence[Word], instruction: str) -> set[int]:
    """Return the things that the words name, such as "the red ball and the cube". "It" is the only thing in a scene."""
    meant: set[int] = set()
    for part in split_words(words, lambda word: word.kind == "and"):
        if any(word.kind in ("noun", "thing") for word in part):
            meant |= set(_find_counted(scene, part))
        elif any(word.text == "it" for word in part) and len(scene.things) == 1:
            meant.add(0)
        else:
            raise _not_understood(scene, instruction)
    return meant


def _value(words: Sequence[Word], kind: str) -> str | None:
    return next((word.value for word in words if word.kind == kind), None)


def _find_matching(scene: Scene, kind: Concept) -> list[int]:
    found = [k for k, thing in enumerate(scene.things) if kind.fits(thing)]
    if not found:
        raise _refuse_missing(scene, kind.phrase_one())
    return found


def _find_counted(scene: Scene, words: Sequence[Word]) -> list[int]:
    """Return the things that the words name: as many as they say, one for a singular."""
    kind = read_concept(words)
    found = _find_matching(scene, kind)
    counts = [int(word.value) for word in words if word.kind == "count" and word.value.isdecimal()]
    several = any(word.plural for word in words if word.kind in ("noun", "thing"))
    wanted = counts[0] if counts else None if several else 1
    if wanted not in (None, len(found)):
        one = kind.phrase_one()
        raise ToolMisuse(
            f"There are {len(found)} of {one} in this image, which shows {caption(scene)}. Name one by its colour or "
            f'size, or say "the {plural(one)}" for all of them.'
        )
    return found


def _refuse_missing(scene: Scene, what: str | None) -> ToolMisuse:
    return ToolMisuse(f"There is no {what} in this image, which shows {caption(scene)}. {_example(scene)}")


def _refuse_move(scene: Scene) -> ToolMisuse:
    return ToolMisuse(
        "Toybox cannot move a toy. Remove it and add it where it shall stand, in two edits, or draw both places with "
        f"tools.text2image. {_example(scene)}"
    )


def _not_understood(scene: Scene, instruction: str, strange: Sequence[str] = ()) -> ToolMisuse:
    words = f" (not: {', '.join(strange)[:60]})" if strange else ""
    return ToolMisuse(f"Toybox does not understand the instruction {instruction[:80]!r}{words}. {_example(scene)}")


def _example(scene: Scene) -> str:
    """Return an instruction that works on this scene."""
    if not scene.things:
        return 'Say for example "add a red ball".'
    thing = scene.things[0]
    alike = [each for each in scene.things if each.noun == thing.noun]
    colour = next(each for each in COLOURS[::-1] if each not in {thing.colour for thing in alike})
    noun = thing.noun if len(alike) == 1 else plural(thing.noun)
    return f'Say for example "make the {noun} {colour}".'
