"""Check whether a label names exactly the concepts of a written truth: none missing, none extra.

Truths are the names of synthetic neurons: "ball", "ball or cone", "ball | boat". Synonyms, plurals, articles and the
order of alternatives make no difference. Words that toybox does not know, as in the paper's Table A4, are compared in
small letters and the singular. Reads only words.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from workers.toybox.world.concepts import phrase_label, read_whole
from workers.toybox.world.label_words import LabelPart, cut_label
from workers.toybox.world.words import Word

Part = frozenset[str]
"""The words of one thing: {"red", "ball"}."""
Alternative = tuple[Part, ...]
"""Things that must be present together, in the order of the text: the first gives the value."""
Direction = Literal["", "same", "turned", "unordered"]


@dataclass(frozen=True)
class ConceptMatch:
    """How a label compares to the truth."""

    right: bool
    """True for exactly the right concepts, joined as in the truth: as alternatives, or as a condition."""
    missing: tuple[str, ...] = ()
    """Words of the truth that the label does not say."""
    extra: tuple[str, ...] = ()
    """Words of the label that are not in the truth."""
    direction: Direction = ""
    """For a condition in both: whether the label, like the truth, names first the thing that gives the value."""


def match(label: str, truth: str) -> ConceptMatch:
    """Compare a label with a truth. An empty label, and one without concepts, is wrong.

    A label may describe a truth of toybox's own words in other words, such as "boats with white sails" for a boat.
    """
    # 1. Compare the words as they are
    found = _compare(label, truth)
    if found.right or not _is_of_toybox(truth) or not (concepts := read_whole(label)):
        return found
    # 2. Else in toybox's own words, but only for truths that it can read
    reading = _compare(phrase_label(concepts), truth)
    return reading if reading.right else found


def _is_of_toybox(text: str) -> bool:
    return all(word.kind != "unknown" for each in cut_label(text) for part in each.parts for word in part.words)


def _compare(label: str, truth: str) -> ConceptMatch:
    said, wanted = _read(label), _read(truth)
    missing, extra = _count_words(wanted) - _count_words(said), _count_words(said) - _count_words(wanted)
    # The order within an alternative is compared separately, by `_compare_direction`
    right = bool(said) and {frozenset(each) for each in said} == {frozenset(each) for each in wanted}
    return ConceptMatch(
        right and not missing and not extra,
        tuple(sorted(missing.elements())),
        tuple(sorted(extra.elements())),
        _compare_direction(said, wanted) if right else "",
    )


def _compare_direction(said: set[Alternative], wanted: set[Alternative]) -> Direction:
    if all(len(each) < 2 for each in wanted):
        return ""
    # Tuples keep the order of the text
    return "same" if said == wanted else "turned"


def _read(text: str) -> set[Alternative]:
    """Return the alternatives of a text, without those that another one makes redundant."""
    found: set[Alternative] = set()
    for alternative in cut_label(text):
        parts = tuple(words for part in alternative.parts if (words := _read_part(part)))
        # Negated words are a part of their own: "ball without grass" is not "ball on grass"
        negated = frozenset(f"not {word}" for word in alternative.negated)
        found |= {(*parts, *([negated] if negated else []))} if parts or negated else set()
    return {each for each in found if not any(_is_included(other, each) for other in found - {each})}


def _is_included(wide: Alternative, narrow: Alternative) -> bool:
    return len(wide) == len(narrow) == 1 and wide[0] < narrow[0]


def _read_part(part: LabelPart) -> Part:
    # "toy" and "thing" say nothing: every scene has some
    words = {_name(word) for word in part.words if word.kind != "thing"}
    words |= {f"at least {part.count}"} if part.count > 1 else set()
    return frozenset(words | ({part.joint} if part.joint not in ("", "with") else set()))


def _name(word: Word) -> str:
    """Return what a word means: toybox's word for a synonym, else its own singular."""
    if word.kind != "unknown":
        return word.value
    text = word.text
    for ending, singular in (("ies", "y"), ("sses", "ss"), ("xes", "x"), ("shes", "sh"), ("ches", "ch"), ("s", "")):
        # Short words and words in -ss or -us are singulars: "bus", "grass"
        if text.endswith(ending) and len(text) > len(ending) + 2 and not text.endswith(("ss", "us")):
            return text.removesuffix(ending) + singular
    return text


def _count_words(found: set[Alternative]) -> Counter[str]:
    return Counter(word for alternative in found for part in alternative for word in part)
