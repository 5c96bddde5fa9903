"""Splits a label into alternatives, and each alternative into what must be present together. Words only, no scenes.

"Balls beside a large table OR cars where there is a house" has two alternatives of two parts each. Words that toybox
does not know are kept, so that labels of other worlds are split the same way. Used by `label_grammar` and by
`workers.toybox.concept_match`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from workers.record.negations import ALL_BUT, NEGATIONS
from workers.toybox.world.scenes import MAX_THINGS
from workers.toybox.world.words import Word, read_words, split_words

Joint = Literal["", "with", "on", "under", "left", "right"]
"""How a part is joined to the one before it: together, or in a relation; "" for the first."""


def _read_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CONDITIONS = _read_set(
    """when whenever where while if with and plus alongside accompanied presence provided given beside near next
    containing contains contain wearing has have having includes including include paired combined conditional
    conditioned amid among along | &"""
)
_UNDER = _read_set("under underneath below beneath supporting carrying bearing")
_FILLERS = _read_set(
    """only also present visible appear appears appearing too together nearby but any another other others else either
    must be need needs co occurring occur occurs every each detector neuron unit responds respond responding response
    activates activated activation strongly mainly mostly especially specifically surrounding various different kind
    kinds type types sort sorts"""
)
_NEGATIONS = NEGATIONS | _read_set(
    "rather missing non zero 0 free barely rarely seldom minus sans instead apart aside besides"
)
SCENERY = _read_set("sky shape floor ground background skies shapes floors grounds backgrounds")
"""Words that name nothing in toybox, but are concepts elsewhere."""
_KEPT = SCENERY | _read_set("foreground few empty over both single ;")
"""Words without a meaning in a prompt that change the meaning of a label."""
_SEVERAL = {"several": 3, "many": 3, "numerous": 3, "multiple": 2, "pair": 2, "couple": 2, "pairs": 2}
_NUMBERS = {word: at for at, word in enumerate(["zero", "one", "two", "three", "four", "five", "six"])}
_MORE_THAN = re.compile(r"\bmore than (?:a |an )?(single|one|two|three|four|five|[1-5])\b")
_OR_MORE = re.compile(r"\bor more\b|\bat least\b|\ba minimum of\b")
_ONLY_SO_MANY = re.compile(r"\b(?:only|just) (?=(?:one|two|three|four|five|six|\d+)\b)")
_ASPECT = (
    r"(?:(?:the|their|its|what) )?(?:colou?rs?|sizes?|light(?:s|ing)?(?: conditions?)?|grounds?|surfaces?|floors?"
    r"|backgrounds?|times?(?: of (?:the )?day)?)"
)
_INDIFFERENT = re.compile(
    r"\b(?:(?:regardless|irrespective|independent|independently) of|whatever|no matter"
    r"|(?:of|in|at|on|with|under|against|by) (?:any|all|every|various|different|whatever)(?: kinds? of)?)"
    rf" {_ASPECT}(?:(?:,| and| or|, and|, or) {_ASPECT})*(?!\w)"
)
"""Says that something does not matter: "of any colour", "regardless of ground and light"."""


@dataclass
class LabelPart:
    """One thing with its properties, or its surroundings."""

    joint: Joint = ""
    words: list[Word] = field(default_factory=list)
    count: int = 1
    """Minimum number of it."""

    @property
    def empty(self) -> bool:
        return not self.words and self.count == 1


@dataclass(frozen=True)
class LabelAlternative:
    """One side of an OR."""

    parts: tuple[LabelPart, ...]
    negated: tuple[str, ...] = ()
    """Words that say what must be absent. They are not read."""


def cut_label(text: str) -> list[LabelAlternative]:
    """Return the alternatives of a label in order, without empty ones."""
    plain = _OR_MORE.sub(" ", text.casefold().replace("&", " and "))
    plain = _MORE_THAN.sub(lambda found: str(_number(found.group(1)) + 1), _INDIFFERENT.sub(" ", plain))
    plain = _ONLY_SO_MANY.sub("exactly ", ALL_BUT.sub("not", plain))
    words = _resolve_commas(
        [replace(each, kind="unknown") if each.text in _KEPT else each for each in read_words(plain)]
    )
    found = [_cut_alternative(part) for part in split_words(words, _is_or)]
    return [each for one in found for each in _split_adjectives(one) if each.parts or each.negated]


def _is_or(word: Word) -> bool:
    return (word.kind == "or" and word.text != "|") or word.text == ","


def _number(text: str) -> int:
    return 1 if text == "single" else _NUMBERS.get(text) or int(text)


def _resolve_commas(words: Sequence[Word]) -> list[Word]:
    """Keep commas that separate alternatives: not before a condition, nor after a leading one.

    In a list, "and" separates alternatives like its commas: "cars, trains and boats".
    """
    kept: list[Word] = []
    comma = next((place for place, word in enumerate(words) if word.text == ","), 0)
    if comma and words[0].text in _CONDITIONS:  # a condition that leads: "if there is a house, cars"
        words = [*words[comma + 1 :], words[0], *words[1:comma]]
    listed = False
    for place, word in enumerate(words):
        after = next((each for each in words[place + 1 :] if each.kind != "stop"), None)
        if word.text == "and" and listed:
            kept.append(replace(word, kind="or"))
        elif word.text != ",":
            kept.append(word)
        elif after is None or after.kind == "or" or after.text in _FILLERS:
            continue
        elif not _joint(after) or (after.text == "and" and listed):
            listed = True
            kept.append(word)
    return kept


def _split_adjectives(alternative: LabelAlternative) -> list[LabelAlternative]:
    """Split an adjective before "and": "red and blue balls" are red balls or blue balls."""
    first, *rest = alternative.parts or (LabelPart(),)
    if rest and rest[0].joint == "with" and first.words and {each.kind for each in first.words} <= {"colour", "size"}:
        rest[0].joint = ""
        return [LabelAlternative((first,)), LabelAlternative(tuple(rest))]
    return [alternative]


def _joint(word: Word) -> Joint:
    """Return how a word joins parts; "" if it does not. "On" may also precede a ground."""
    if word.kind == "relation":
        return "left" if word.value == "left" else "right" if word.value == "right" else "on"
    if word.text in _UNDER:
        return "under"
    return "with" if word.text in _CONDITIONS or (word.kind == "and" and word.text != ",") else ""


def _cut_alternative(words: Sequence[Word]) -> LabelAlternative:
    negations = tuple(word.text for word in words if word.kind == "not" or word.text in _NEGATIONS)
    if negations:
        return LabelAlternative((), negations)
    parts = [LabelPart()]
    for place, word in enumerate(words):
        joint, after = _joint(word), _drop_idle(words[place + 1 :])
        if not joint or (joint != "with" and not after):  # of "a cup on it" nothing says what "it" is
            _add(parts[-1], replace(word, kind="unknown") if joint else word)
        elif not (joint == "on" and _leads_to_ground(after)):
            _join(parts, joint)
    kept = [each for each in parts if not each.empty]
    for each in kept[:1]:
        each.joint = ""
    return LabelAlternative(tuple(kept))


def _join(parts: list[LabelPart], joint: Joint) -> None:
    """Begin the next part. Of several joints in a row, a relation is stronger than being together."""
    if parts[-1].empty:
        if parts[-1].joint in ("", "with"):
            parts[-1].joint = joint
    else:
        parts.append(LabelPart(joint))


def _add(part: LabelPart, word: Word) -> None:
    if word.kind == "count" or word.text in _SEVERAL:
        count = _count(word)
        if 1 < count != part.count > 1:  # "two to four": which of them is meant?
            part.words.append(replace(word, kind="unknown"))
        part.count = max(part.count, count)
    elif word.kind == "side":
        part.words.append(replace(word, kind="unknown"))
    elif word.kind != "stop" and word.text not in _FILLERS:
        if word.kind in ("noun", "thing") and part.words and part.words[-1].kind == "ground":  # "a brick house"
            part.words[-1] = replace(part.words[-1], kind="unknown")
        part.words.append(word)


def _count(word: Word) -> int:
    """Return the number that a word says, at most one more than a scene can hold."""
    if word.text in _SEVERAL:
        return _SEVERAL[word.text]
    said = _NUMBERS.get(word.text) or (int(word.text) if word.text.isdecimal() else 0)
    usual = {"1": 1, "2": 2, "3": 3}.get(word.value, MAX_THINGS + 1)
    return min(said or usual, MAX_THINGS + 1)


def _drop_idle(words: Sequence[Word]) -> list[Word]:
    """Return the words that name or describe something."""
    return [word for word in words if word.kind not in ("stop", "count") and word.text not in _FILLERS]


def _leads_to_ground(said: Sequence[Word]) -> bool:
    """True if the next words are a ground, as in "on the snow". "On a brick house" is a house."""
    if said[0].kind != "ground" and said[0].text not in SCENERY:
        return not any(word.kind in ("noun", "thing", "unknown") for word in said)
    return len(said) < 2 or said[1].kind not in ("noun", "thing")
