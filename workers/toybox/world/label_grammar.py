"""Which words of a label toybox understands. A label is tested only if no word is left over.

An adjective belongs to its own noun: in "purple unicorn" neither word is understood. Parts that toys have anyway
change nothing. Used by `concepts`, which builds concepts from it, and by `workers.toybox.label_reading`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from workers.record.negations import ALL_BUT
from workers.toybox.world.label_words import SCENERY, LabelAlternative, LabelPart, cut_label
from workers.toybox.world.scenes import CHOICES, MAX_THINGS
from workers.toybox.world.toy_parts import absorb_parts
from workers.toybox.world.words import Word

_ADJECTIVES = ("colour", "size", "ground", "light")
_STRENGTHS = frozenset(["bright", "brightly", "vivid", "vividly", "solid"])
"""They change nothing before a colour, because toybox has one shade of each."""
_ALSO_THINGS = frozenset(
    ["rose", "lemon", "lime", "olive", "chocolate", "gold", "emerald", "ivory", "ebony", "amber", "tangerine"]
)
"""Colours in toybox that are also things. Without a noun after them, the thing is meant."""


def read_alternatives(text: str) -> list[LabelAlternative]:
    """Return the alternatives of a label with the words that toybox understands, and the others as "unknown"."""
    found = [_understand(each) for each in cut_label(text)]
    for place in range(len(found) - 1, 0, -1):
        found[place - 1] = _share_things(found[place - 1], found[place])
    return found


def _understand(alternative: LabelAlternative) -> LabelAlternative:
    read = absorb_parts(alternative)
    return replace(read, parts=tuple(replace(each, words=_bind(each.words)) for each in read.parts))


def _share_things(alternative: LabelAlternative, after: LabelAlternative) -> LabelAlternative:
    """Adjectives and counts alone describe the things of the next alternative: "red or blue balls"."""
    if len(alternative.parts) != 1 or not after.parts or not _names_noun(after.parts[0]):
        return alternative
    first, (shared, *others) = alternative.parts[0], after.parts
    if any(word.kind not in ("colour", "size") for word in first.words):
        return alternative
    words = [word for word in shared.words if not first.words or word.kind not in ("colour", "size")]
    return replace(alternative, parts=(replace(first, words=[*first.words, *words]), *others))


def _names_noun(part: LabelPart) -> bool:
    return any(word.kind in ("noun", "thing") for word in part.words)


def _bind(words: Sequence[Word]) -> list[Word]:
    """Return the words of one thing. An unknown noun is joined with its adjectives to one unknown phrase."""
    bound: list[Word] = []
    for place, word in enumerate(words):
        after = words[place + 1] if place + 1 < len(words) else None
        if word.text in SCENERY and _is_plain_scenery(word, words):
            continue
        if word.text == "both" and _names_noun(LabelPart(words=list(words[place:]))):  # "both a car and a house"
            continue
        if word.text in _STRENGTHS and after and after.kind == "colour":
            continue
        if word.text in _ALSO_THINGS and not any(each.kind in ("noun", "thing") for each in words[place + 1 :]):
            word = replace(word, kind="unknown")
        if word.kind == "unknown" and (after is None or after.kind not in ("noun", "thing", "unknown", *_ADJECTIVES)):
            while bound and bound[-1].kind in (*_ADJECTIVES, "unknown"):
                said = bound.pop()
                word = replace(word, text=f"{said.text} {word.text}")
        bound.append(word)
    return bound


def _is_plain_scenery(word: Word, words: Sequence[Word]) -> bool:
    """True if a background is only the ground or light that is named too, or the floor that all toys are on."""
    before = words[: words.index(word)]
    if any(each.kind == ("light" if word.text == "sky" else "ground") for each in words):
        return not any(each.kind in ("colour", "size", "unknown") for each in before[-1:])
    return word.text in ("ground", "floor") and not any(each.kind in (*_ADJECTIVES, "unknown") for each in before[-1:])


def find_unread(text: str) -> tuple[str, ...]:
    """Return what is not understood in a label, in order: words, a negation, a third thing, too high a count."""
    alternatives = read_alternatives(text)
    found = [unread for alternative in alternatives for unread in _find_unread(alternative)]
    if len(alternatives) > 1:  # "robots or other toys" says nothing
        found += [each.parts[0].words[0].text for each in alternatives if _says_nothing(each)]
    if but := ALL_BUT.search(text):  # it was cut up as a plain "not"
        found = [but[0].casefold() if each == "not" else each for each in found]
    return tuple(dict.fromkeys(found))


def _find_unread(alternative: LabelAlternative) -> list[str]:
    found = list(alternative.negated)
    for part in alternative.parts:
        seen: set[str] = set()
        for word in part.words:
            known = word.kind == "thing" or word.kind in CHOICES
            if not known or word.kind in seen:
                found.append(word.text)
            seen.add(word.kind)
        if part.count > MAX_THINGS:
            found.append(f"a count over {MAX_THINGS}")
    return found + [part.words[0].text for part in _name_things(alternative)[2:]]


def _says_nothing(alternative: LabelAlternative) -> bool:
    first, *others = alternative.parts or (LabelPart(),)
    return not others and first.count == 1 and [word.kind for word in first.words] == ["thing"]


def _name_things(alternative: LabelAlternative) -> list[LabelPart]:
    things = ("noun", "thing", "colour", "size")
    return [part for part in alternative.parts if any(word.kind in things for word in part.words)]
