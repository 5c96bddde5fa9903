"""Words as a program gives them to a function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workers.errors import ToolMisuse
from workers.functions.black_box import check_texts

MAX_CHARS = 100
DOMAIN = f"English words, or a few words together, of at most {MAX_CHARS} characters"
_WANTED = f"{DOMAIN}, such as ['river', 'blue whale']"


def check_words(inputs: Any) -> Sequence[str]:
    """Return the inputs without white space at their ends. Raises ToolMisuse."""
    # Blanks at the ends would make another word of it for the table
    words = [text.strip() for text in check_texts(inputs, _WANTED, MAX_CHARS)]
    if "" in words:
        raise ToolMisuse(f"Input {words.index('')} holds no word: give a list of {_WANTED}.")
    return words
