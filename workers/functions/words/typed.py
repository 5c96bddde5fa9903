"""Words as a program gives them to a function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workers.errors import ToolMisuse
from workers.functions.black_box import check_count

MAX_CHARS = 100
DOMAIN = f"English words, or a few words together, of at most {MAX_CHARS} characters"


def check_words(inputs: Any) -> Sequence[str]:
    """The inputs without white space at their ends. Raises ToolMisuse."""
    wanted = f"{DOMAIN}, such as ['river', 'blue whale']"
    check_count(inputs, wanted)
    for place, text in enumerate(inputs):
        if not isinstance(text, str):
            raise ToolMisuse(f"Input {place} is {type(text).__name__}: give a list of {wanted}.")
        if len(text) > MAX_CHARS:
            raise ToolMisuse(f"Input {place} has {len(text):,} characters: give a list of {wanted}.")
        if not text.strip() or not text.isprintable():
            raise ToolMisuse(f"Input {place} is {text[:40]!r}: give a list of {wanted}.")
    return [text.strip() for text in inputs]
