"""Normalizing: what two spellings of the same word have in common. Both databases compare such text, so they agree.

Capitals, accents and width do not matter, white space of any kind is one space. Marks that make another letter rather
than an accent (of Indic scripts, of Japanese syllables) stay. Also the n-grams for queries of one or two characters.
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
"""Letters with a stroke, which Unicode does not take apart."""


def normalize(text: str) -> str:
    """The text as it is compared."""
    if text.isascii():
        return " ".join(text.translate(PLAIN).lower().split())
    return "".join(part for part, _ in parts(text)).strip()


def normalized_with_places(text: str) -> tuple[str, list[int]]:
    """The normalized text (a space may stand before and after it), and for each of its characters where it comes from.

    One place more than there are characters: the end of the text.
    """
    if text.isascii():  # much faster
        places: list[int] = []
        for word in WORD.finditer(text):
            places += range(word.start(), word.end() + 1)
        return normalize(text), [*places[:-1], len(text)]
    found = list(parts(text))
    return "".join(part for part, _ in found), [*(place for part, place in found for _ in part), len(text)]


def parts(text: str) -> Iterator[tuple[str, int]]:
    """Each letter with its marks, normalized, with where it begins; white space as one space."""
    after_space = False
    for start, end in letters(text):
        part = _fold_letter(text[start:end])
        is_space = part.isspace()
        if part and not (is_space and after_space):
            yield (" " if is_space else part), start
        after_space = is_space or (after_space and not part)


def letters(text: str) -> Iterator[tuple[int, int]]:
    """Where each letter begins and ends, its combining marks with it."""
    start = 0
    for place in range(1, len(text) + 1):
        if place == len(text) or not unicodedata.combining(text[place]):
            yield start, place
            start = place


@lru_cache(maxsize=20_000)
def _fold_letter(letter: str) -> str:
    if letter.isspace():
        return " "
    apart = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", letter).casefold())
    bare = "".join(each for each in apart if unicodedata.combining(each) in KEPT_MARKS)
    return unicodedata.normalize("NFC", bare).translate(PLAIN).replace("\u00a0", " ")


def ngrams(normalized: str) -> set[str]:
    """Every character of a normalized text, and every two that stand together; none with a space."""
    return {gram for gram in {*normalized, *map("".join, pairwise(normalized))} if " " not in gram}
