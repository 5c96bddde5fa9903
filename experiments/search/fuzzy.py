"""How well a name fits a few words, so that half a word and a slip of the finger find it. `js/display/fuzzy.js` is the
same for what the browser knows by itself."""

from __future__ import annotations

import re
from collections.abc import Sequence

from experiments.core.search_index.normalize import normalize

WORD = re.compile(r"\w+")
EQUAL, BEGINS, HOLDS, LETTERS, SLIP = 100, 80, 50, 30, 25


def score_name(name: str, terms: Sequence[str]) -> int:
    """How well; 0 where a term fits no word of the name. Names of fewer words are a little better."""
    whole = normalize(name)
    words = WORD.findall(whole)
    terms = [term for term in terms if WORD.search(term)]
    found = [max([HOLDS * (term in whole), *(_score_word(word, term) for word in words)]) for term in terms]
    return sum(found) * 10 - len(words) if found and all(found) else 0


def _score_word(word: str, term: str) -> int:
    if word == term:
        return EQUAL
    if word.startswith(term):
        return BEGINS
    if term in word:
        return HOLDS
    if len(term) < 3 or word[:1] != term[0]:
        return 0
    letters = iter(word)
    if all(letter in letters for letter in term):  # in this order, others between them
        return LETTERS
    return SLIP if len(term) > 4 and _is_one_slip(word[: len(term) + 1], term) else 0


def _is_one_slip(word: str, term: str) -> bool:
    """Whether the beginning of a word is the term but for one letter: another, missing, too many, or two swapped."""
    at = next((place for place, (one, other) in enumerate(zip(word, term, strict=False)) if one != other), len(term))
    rest, typed = word[at:], term[at:]
    swapped = rest[1:2] + rest[:1] + rest[2:]
    mended = ((rest[1:], typed[1:]), (rest, typed[1:]), (rest[1:], typed), (swapped, typed))
    return any(left.startswith(right) for left, right in mended)
