"""A label cut up: into alternatives, and each alternative into what must be there together. Words alone, no scenes.

"Balls beside a large table OR cars where there is a house" has two alternatives of two parts each. Words that toybox
does not know are kept, so that labels of other worlds are cut up the same way. Called by `concepts` and by
`workers.toybox.concept_match`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from workers.toybox.world.scenes import CHOICES, MAX_THINGS
from workers.toybox.world.words import Word, read_words, split_words

Joint = Literal["", "with", "on", "under", "left", "right"]
"""How a part goes with the one before it: merely together, or standing in a relation; "" for the first."""

_CONDITIONS = frozenset(
    [
        "when",
        "whenever",
        "where",
        "while",
        "if",
        "with",
        "and",
        "plus",
        "alongside",
        "accompanied",
        "presence",
        "provided",
        "given",
        "beside",
        "besides",
        "near",
        "next",
        "containing",
        "contains",
        "contain",
        "has",
        "have",
        "having",
        "includes",
        "including",
        "include",
        "paired",
        "combined",
        "conditional",
        "conditioned",
        "amid",
        "among",
        "along",
        "|",
        "&",
        ";",
    ]
)
_UNDER = frozenset(["under", "underneath", "below", "beneath", "supporting", "carrying", "holding", "bearing"])
_FILLERS = frozenset(
    [
        "only",
        "also",
        "present",
        "visible",
        "appear",
        "appears",
        "appearing",
        "too",
        "together",
        "nearby",
        "but",
        "least",
        "than",
        "any",
        "another",
        "other",
        "others",
        "else",
        "both",
        "must",
        "be",
        "need",
        "needs",
        "co",
        "occurring",
        "occur",
        "occurs",
        "every",
        "each",
        "detector",
        "neuron",
        "unit",
        "responds",
        "respond",
        "responding",
        "response",
        "activates",
        "activated",
        "activation",
        "strongly",
        "mainly",
        "mostly",
        "especially",
        "specifically",
        "surrounding",
        "various",
        "different",
        "kind",
        "kinds",
        "type",
        "types",
        "sort",
        "sorts",
    ]
)
_NEGATIONS = frozenset(["unless", "except", "rather"])
_SEVERAL = {"several": 3, "many": 3, "numerous": 3, "multiple": 2, "pair": 2, "couple": 2, "pairs": 2}
_NUMBERS = {word: at for at, word in enumerate(["zero", "one", "two", "three", "four", "five", "six"])}
_PLACES = frozenset(["behind", "front", "above", "exactly"])
"""Words that change what is meant, and of which toybox knows nothing."""
_MORE_THAN = re.compile(r"\bmore than (?:a |an )?(single|one|two|three|four|five|[1-5])\b")
_OR_MORE = re.compile(r"\bor more\b|\bat least\b|\ba minimum of\b")


@dataclass
class LabelPart:
    """One thing with its properties, or what is around it."""

    joint: Joint = ""
    words: list[Word] = field(default_factory=list)
    count: int = 1
    """How many of it there must be, at least."""

    @property
    def names_thing(self) -> bool:
        return any(word.kind in ("noun", "thing", "unknown") for word in self.words)

    @property
    def empty(self) -> bool:
        return not self.words and self.count == 1


@dataclass(frozen=True)
class LabelAlternative:
    """What one side of an OR says."""

    parts: tuple[LabelPart, ...]
    negated: tuple[str, ...] = ()
    """Words that say what must not be there: not read."""


@dataclass(frozen=True)
class WordsRead:
    """How much of a label toybox understands."""

    share: float
    """Of the words that say something, [0, 1]; 0 if none does."""
    unread: tuple[str, ...]
    """Words that were not understood, in order."""

    @property
    def explanation(self) -> str:
        """What was not understood, in a sentence; "" if all was."""
        quoted = [f'"{word}"' for word in self.unread]
        return f"Not understood: {', '.join(quoted)}." if quoted else ""


def cut_label(text: str, keep: Collection[str] = ()) -> list[LabelAlternative]:
    """The alternatives of a label, in order; those that say nothing are left out.

    `keep`: words that say nothing in toybox but name something elsewhere, such as "sky".
    """
    plain = _OR_MORE.sub(" ", text.casefold().replace("&", " and "))
    plain = _MORE_THAN.sub(lambda found: str(_number(found.group(1)) + 1), plain)
    words = _resolve_commas(
        [replace(each, kind="unknown") if each.text in keep else each for each in read_words(plain)]
    )
    found = [_cut_alternative(part) for part in split_words(words, _is_or)]
    return [each for one in found for each in _part_adjectives(one) if each.parts or each.negated]


def _is_or(word: Word) -> bool:
    return (word.kind == "or" and word.text != "|") or word.text == ","


def _number(text: str) -> int:
    return 1 if text == "single" else _NUMBERS.get(text) or int(text)


def _resolve_commas(words: Sequence[Word]) -> list[Word]:
    """Commas left where they part alternatives: not before a condition, nor after one that leads.

    In a list "and" parts alternatives as its commas do: "cars, trains and boats".
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


def _part_adjectives(alternative: LabelAlternative) -> list[LabelAlternative]:
    """Two alternatives where an adjective stands before "and": "red and blue balls" are red balls or blue balls."""
    first, *rest = alternative.parts or (LabelPart(),)
    if rest and rest[0].joint == "with" and first.words and {each.kind for each in first.words} <= {"colour", "size"}:
        rest[0].joint = ""
        return [LabelAlternative((first,)), LabelAlternative(tuple(rest))]
    return [alternative]


def _joint(word: Word) -> Joint:
    """What a word joins parts by; "" if it does not. "On" may also lead to a ground."""
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
        joint = _joint(word)
        if not joint:
            _add(parts[-1], word)
        elif not (joint == "on" and _leads_to_ground(words[place + 1 :])):
            _join(parts, joint)
    kept = [each for each in parts if not each.empty]
    for each in kept[:1]:
        each.joint = ""
    return LabelAlternative(tuple(kept))


def _join(parts: list[LabelPart], joint: Joint) -> None:
    """Begin the next part; of several joints in a row a relation says more than being together."""
    if parts[-1].empty:
        if parts[-1].joint in ("", "with"):
            parts[-1].joint = joint
    else:
        parts.append(LabelPart(joint))


def _add(part: LabelPart, word: Word) -> None:
    if word.kind == "count":
        said = _NUMBERS.get(word.text) or (int(word.text) if word.text.isdecimal() else 0)
        part.count = max(part.count, min(said or (1 if word.value == "1" else 3 if word.value == "3" else 2), 99))
        if word.value == "many" and not said:
            part.count = MAX_THINGS + 1
    elif word.text in _SEVERAL:
        part.count = max(part.count, _SEVERAL[word.text])
    elif word.kind == "side":
        part.words.append(replace(word, kind="unknown"))
    elif word.kind != "stop" and word.text not in _FILLERS:
        if word.kind in ("noun", "thing") and part.words and part.words[-1].kind == "ground":  # "a brick house"
            part.words[-1] = replace(part.words[-1], kind="unknown")
        part.words.append(word)


def _leads_to_ground(after: Sequence[Word]) -> bool:
    """Whether what is said next is a ground, as in "on the snow"; "on a brick house" is a house."""
    said = [word for word in after if word.kind not in ("stop", "count") and word.text not in _FILLERS]
    if not said or said[0].kind != "ground":
        return not said or not any(word.kind in ("noun", "thing", "unknown") for word in said)
    return len(said) < 2 or said[1].kind not in ("noun", "thing")


def words_read(label: str) -> WordsRead:
    """Which share of a label's words toybox understands, and which words it does not."""
    said: list[str] = []
    unread: list[str] = []
    for alternative in cut_label(label):
        unread += alternative.negated
        said += alternative.negated
        for part in alternative.parts:
            seen: set[str] = set()
            for word in part.words:
                said.append(word.text)
                if word.kind in seen or (word.kind != "thing" and word.kind not in CHOICES):
                    unread.append(word.text)
                seen.add(word.kind)
    if not said and any(part.count > 1 for each in cut_label(label) for part in each.parts):
        return WordsRead(1.0, ())
    return WordsRead(1 - len(unread) / len(said) if said else 0.0, tuple(dict.fromkeys(unread)))


def find_beyond(alternative: LabelAlternative) -> list[str]:
    """What an alternative says that changes its meaning and is not read: a negation, a third thing, a riddle."""
    found = [f'"{word}"' for word in alternative.negated]
    found += [f'"{word.text}"' for part in alternative.parts for word in part.words if word.text in _PLACES]
    things = [part for part in alternative.parts if _names_thing(part)]
    found += [f'"{part.words[0].text}"' for part in things[2:]]
    found += [f"a count over {MAX_THINGS}" for part in alternative.parts if part.count > MAX_THINGS]
    for part in alternative.parts[1:]:
        if part.words and not any(word.kind in CHOICES or word.kind == "thing" for word in part.words):
            found.append(f'"{part.words[0].text}"')
    for part in alternative.parts:
        nouns = [word for word in part.words if word.kind == "noun"]
        found += [f'"{word.text}"' for word in nouns[1:]]
    return found


def _names_thing(part: LabelPart) -> bool:
    return any(word.kind in ("noun", "thing", "colour", "size") for word in part.words)
