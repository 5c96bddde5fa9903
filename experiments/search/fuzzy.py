"""Score how well a name matches a few words, so that half a word or a typing error finds it. `js/display/fuzzy.js`
does the same in the browser."""

from __future__ import annotations

import re
from collections.abc import Sequence

from experiments.core.search_index.normalize import normalize

WORD = re.compile(r"\w+")
EQUAL, BEGINS, HOLDS, LETTERS, SLIP = 100, 80, 50, 30, 25


def score_name(name: str, terms: Sequence[str]) -> int:
    """Return the score; 0 if a term matches no word of the name. Names of fewer words score slightly higher."""
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
    # Short terms match too much, and typing errors seldom hit the first letter
    if len(term) < 3 or word[:1] != term[0]:
        return 0
    letters = iter(word)
    if all(letter in letters for letter in term):  # in this order, perhaps with others between them
        return LETTERS
    return SLIP if len(term) > 4 and _is_one_slip(word[: len(term) + 1], term) else 0


def _is_one_slip(word: str, term: str) -> bool:
    """True if the beginning of a word is the term with one error: a letter replaced, missing, added, or two swapped."""
    # The first letter that differs decides which kind of slip it may be
    at = next((place for place, (one, other) in enumerate(zip(word, term, strict=False)) if one != other), len(term))
    rest, typed = word[at:], term[at:]
    swapped = rest[1:2] + rest[:1] + rest[2:]
    mended = ((rest[1:], typed[1:]), (rest, typed[1:]), (rest[1:], typed), (swapped, typed))
    return any(left.startswith(right) for left, right in mended)
