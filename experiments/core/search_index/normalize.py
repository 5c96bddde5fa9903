"""Normalize text, so that spellings of the same word compare equal in both databases; and make n-grams for queries
of one or two characters.

Case, accents and width are ignored, and any white space is one space. Marks that make another letter rather than an
accent (in Indic scripts and Japanese syllables) stay.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

KEPT_MARKS = frozenset({0, 7, 8, 9})
"""Combining classes of marks that are letters: vowel signs, nukta, kana voicing, virama."""
WORD = re.compile(r"\S+")
PLAIN = str.maketrans({"ø": "o", "đ": "d", "ħ": "h", "ł": "l", "\u0131": "i", "\x00": "\ufffd"})
"""Letters with a stroke, which Unicode does not decompose."""


def normalize(text: str) -> str:
    """Return the text in the form that is compared."""
    if text.isascii():
        return " ".join(text.translate(PLAIN).lower().split())
    return "".join(part for part, _ in parts(text)).strip()


def normalized_with_places(text: str) -> tuple[str, list[int]]:
    """Return the normalized text, perhaps with a space before and after it, and the position in the original of
    each of its characters.

    The positions are one more than the characters: the last is the end of the text.
    """
    if text.isascii():  # much faster
        places: list[int] = []
        for word in WORD.finditer(text):
            places += range(word.start(), word.end() + 1)
        # Each word adds the place of the space behind it; after the last word that is the end.
        return normalize(text), [*places[:-1], len(text)]
    found = list(parts(text))
    return "".join(part for part, _ in found), [*(place for part, place in found for _ in part), len(text)]


def parts(text: str) -> Iterator[tuple[str, int]]:
    """Yield each letter with its marks, normalized, and its start; white space as one space."""
    after_space = False
    for start, end in letters(text):
        part = _fold_letter(text[start:end])
        is_space = part.isspace()
        if part and not (is_space and after_space):
            yield (" " if is_space else part), start
        # A mark that is dropped between two spaces does not part them.
        after_space = is_space or (after_space and not part)


def letters(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each letter with its combining marks."""
    start = 0
    for place in range(1, len(text) + 1):
        if place == len(text) or not unicodedata.combining(text[place]):
            yield start, place
            start = place


@lru_cache(maxsize=20_000)
def _fold_letter(letter: str) -> str:
    if letter.isspace():
        return " "
    # Folding case can make letters that decompose further, so decompose before and after.
    apart = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", letter).casefold())
    bare = "".join(each for each in apart if unicodedata.combining(each) in KEPT_MARKS)
    return unicodedata.normalize("NFC", bare).translate(PLAIN).replace("\u00a0", " ")


def ngrams(normalized: str) -> set[str]:
    """Return every character and every pair of adjacent characters of a normalized text; none with a space."""
    return {gram for gram in {*normalized, *map("".join, pairwise(normalized))} if " " not in gram}
