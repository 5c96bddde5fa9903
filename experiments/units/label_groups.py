"""Group similar labels: how many units of a sweep respond to the same.

Labels are compared by shared words. Labels of nouns ("red ball", "a ball that is red") are grouped; labels that
only a language model could compare are not.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

ALIKE = 0.5
"""Minimum of shared words over all words for two labels to be in one group."""
_WORD = re.compile(r"\w+")
# Words that say nothing of the concept; with them "a part of a dog" and "a part of a car" would be alike.
_FILLING = re.compile(
    r"\b(?:a|an|and|any|are|as|at|both|by|each|either|for|from|in|into|is|it|its|like|near|no|not|of|on|one|or|other|"
    r"over|part|parts|some|such|that|the|their|them|these|this|those|to|under|with|within|without|"
    r"which|whose|image|images|picture|pictures|object|objects|thing|things|kind|kinds|various|several)\b"
)
Words = frozenset[str]


@dataclass(frozen=True)
class LabelGroup:
    """Labels of one group, named by the most frequent one. `members` are the items given with the labels, each once."""

    label: str
    members: Sequence[int]
    labels: Sequence[str]
    """All of its labels, most frequent first."""


def group_labels(labels: Iterable[tuple[int, str]]) -> list[LabelGroup]:
    """Return groups of (member, label) pairs, largest first; cached for the same labels.

    Labels are taken by frequency. Each joins the group whose first label is most similar, if at least `ALIKE`
    (Jaccard, "Étude de la distribution florale", 1901, over sets of word stems); otherwise it starts a group.
    """
    # A tuple, since the cache needs a hashable argument; a list, so that callers cannot change what is cached.
    return list(_group(tuple((member, label.strip()) for member, label in labels if label.strip())))


@lru_cache(maxsize=16)
def _group(pairs: tuple[tuple[int, str], ...]) -> Sequence[LabelGroup]:
    counts = Counter(label for _, label in pairs)
    words = {label: read_words(label) for label in counts}
    # How many labels have each word: rare words are the index of `_Firsts`.
    firsts = _Firsts(Counter(word for some in words.values() for word in some))
    group_of: dict[str, str] = {}
    # Frequent labels come first, because the first label of a group names it. The rest keeps the result the same.
    for label, _ in sorted(counts.items(), key=lambda item: (-item[1], len(item[0]), item[0])):
        group_of[label] = firsts.find(words[label]) or firsts.add(label, words[label])
    # Dicts instead of sets: they keep the order in which members were given.
    members: dict[str, dict[int, None]] = {first: {} for first in group_of.values()}
    for member, label in pairs:
        members[group_of[label]][member] = None
    listed: dict[str, list[str]] = {first: [] for first in members}
    for label, _ in counts.most_common():
        listed[group_of[label]].append(label)
    groups = [LabelGroup(first, list(members[first]), listed[first]) for first in members]
    return sorted(groups, key=lambda group: -len(group.members))


class _Firsts:
    """The first labels of groups, indexed by their rare words; `often` is the number of labels with each word.

    Prefix filtering: Chaudhuri, Ganti and Kaushik, "A Primitive Operator for Similarity Joins in Data Cleaning"
    (2006).
    """

    def __init__(self, often: Mapping[str, int]) -> None:
        self._often = often
        self._firsts: list[tuple[str, Words]] = []
        self._places: dict[str, list[int]] = {}

    def add(self, label: str, words: Words) -> str:
        for word in self._begin(words):
            self._places.setdefault(word, []).append(len(self._firsts))
        self._firsts.append((label, words))
        return label

    def find(self, words: Words) -> str | None:
        """Return the most similar first label, the earliest of several; None if none is `ALIKE`."""
        near = {place for word in self._begin(words) for place in self._places.get(word, ())}
        # The place is negative, so that of equally similar labels `max` takes the earliest.
        alike = [(_compare(words, self._firsts[place][1]), -place) for place in near]
        best, place = max(alike, default=(0.0, 0))
        return self._firsts[-place][0] if best >= ALIKE else None

    def _begin(self, words: Words) -> list[str]:
        # A label that is `ALIKE` shares at least ceil(ALIKE · n) of these n words. So one of them is among the n -
        # ceil(ALIKE · n) + 1 rarest words of both: only labels with such a word are compared.
        most = len(words) - math.ceil(ALIKE * len(words)) + 1
        return sorted(words, key=lambda word: (self._often[word], word))[:most]


def _compare(a: Words, b: Words) -> float:
    return len(a & b) / len(a | b) if a and b else 0.0


def read_words(label: str) -> Words:
    """Return the stems of a label's words, without filler words."""
    return frozenset(map(_stem_word, _WORD.findall(_FILLING.sub(" ", label.casefold()))))


def _stem_word(word: str) -> str:
    """Remove the plural, which is the only difference between many labels."""
    # Minimum lengths leave short words such as "ties" or "gas" alone.
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
