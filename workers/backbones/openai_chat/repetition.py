"""Tells when a model has fallen into repeating itself."""

from __future__ import annotations

TIMES = 24
"""The same words so many times in a row are no reply."""
LEAST = 600
"""Characters that the repetition takes; rulers and tables repeat too, but not for so long."""
_WINDOW = 8_000
"""Characters at the end of the text that are looked at: repetitions of up to `_WINDOW / TIMES` are found."""


def is_repetitive(text: str) -> bool:
    """Whether the text ends in the same words or lines, `TIMES` times in a row and `LEAST` characters or more."""
    tail = text[: -_WINDOW - 1 : -1]
    # The border of each beginning of the reversed tail (Knuth, Morris, Pratt): a beginning of length n with a border
    # of length b repeats itself every n - b characters.
    borders = [0] * len(tail)
    border = 0
    for index in range(1, len(tail)):
        while border and tail[index] != tail[border]:
            border = borders[border - 1]
        border += tail[index] == tail[border]
        borders[index] = border
        length = index + 1
        if length >= LEAST and length >= TIMES * (length - border):
            return True
    return False
