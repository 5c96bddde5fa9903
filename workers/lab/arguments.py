"""Check what a program passes to a tool. Each function returns the checked value or raises ToolMisuse.

The message names the argument, what came and what is wanted, since the agent reads it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

from PIL import Image

from workers.errors import ToolMisuse

MAX_ITEMS = 64
"""Maximum number of images, prompts or activations in one call."""
PROMPT_CHARS = 2_000
TITLE_CHARS = 300

ImageOrText = Image.Image | str
"""An image as programs hold it: a PIL image or a Base64 string."""


def check_items(value: Any, argument: str, of: str) -> list[Any]:
    """Return a list of 1 to `MAX_ITEMS` items; a lone text or image counts as a list of one."""
    # A text is a sequence too; without this each of its letters would be an item.
    if isinstance(value, ImageOrText):
        return [value]
    if not isinstance(value, list | tuple):
        raise ToolMisuse(f"{argument} must be a list of {of}, but is {_describe_value(value)}.")
    if not value:
        raise ToolMisuse(f"{argument} is empty. Pass a list of 1 to {MAX_ITEMS} {of}.")
    if len(value) > MAX_ITEMS:
        raise ToolMisuse(f"{argument} holds {len(value)} {of}; one call takes {MAX_ITEMS} at most. Call several times.")
    return list(value)


def check_texts(value: Any, argument: str, of: str = "prompts") -> list[str]:
    """Return a list of non-empty texts, each of at most `PROMPT_CHARS` characters."""
    return [check_text(each, f"{argument}[{at}]") for at, each in enumerate(check_items(value, argument, of))]


def check_text(value: Any, argument: str) -> str:
    """Return a non-empty text of at most `PROMPT_CHARS` characters."""
    if not isinstance(value, str):
        raise ToolMisuse(f"{argument} must be text, but is {_describe_value(value)}.")
    if not value.strip():
        raise ToolMisuse(f"{argument} is empty. Say in words what is wanted.")
    if len(value) > PROMPT_CHARS:
        raise ToolMisuse(f"{argument} has {len(value)} characters; at most {PROMPT_CHARS} are read. Shorten it.")
    return value


def check_titles(value: Any, argument: str) -> list[str]:
    """Return a list of titles, cut at `TITLE_CHARS` characters."""
    found = check_items(value, argument, "titles")
    for at, each in enumerate(found):
        if not isinstance(each, str):
            raise ToolMisuse(f"{argument}[{at}] must be text, but is {_describe_value(each)}.")
    return [each[:TITLE_CHARS] for each in found]


def check_numbers(value: Any, argument: str, *, or_nan: bool = False) -> list[float]:
    """Return a list of finite numbers, or of NaN as well; a lone number counts as a list of one."""
    # A lone number is allowed where a list is usual: programs measure single images.
    found = [value] if isinstance(value, Real) else check_items(value, argument, "numbers")
    for at, each in enumerate(found):
        if not _is_number(each) and not (or_nan and isinstance(each, float) and math.isnan(each)):
            raise ToolMisuse(f"{argument}[{at}] must be a finite number, but is {_describe_value(each)}.")
    return [float(each) for each in found]


def check_number(value: Any, wanted: str) -> float:
    """Return a finite number; `wanted` describes it in the message."""
    if not _is_number(value):
        raise ToolMisuse(f"{wanted}, but is {_describe_value(value)}.")
    return float(value)


def join_texts(value: Any, argument: str) -> str:
    """Return a text, or a list of texts joined by line breaks; "" for None."""
    lines = [value] if isinstance(value, str) else [] if value is None else value
    if not isinstance(lines, list | tuple) or not all(isinstance(line, str) for line in lines):
        raise ToolMisuse(f"{argument} must be text or a list of texts, but is {_describe_value(value)}.")
    return "\n".join(lines)


def check_same_length(**lists: Sequence[Any]) -> None:
    """Check that the lists have one length."""
    if len({len(each) for each in lists.values()}) > 1:
        lengths = ", ".join(f"{name} has {len(each)}" for name, each in lists.items())
        raise ToolMisuse(f"The lists must be of the same length, but {lengths}.")


def _describe_value(value: Any) -> str:
    """Describe what came in a few words: its type, and its value if that is short."""
    shown = repr(value) if isinstance(value, str | int | float | bool | None) else ""
    name = "None" if value is None else f"of type {type(value).__name__}"
    return f"{name} ({shown[:60]})" if shown and value is not None else name


def _is_number(value: Any) -> bool:
    # bool is a number to Python, but True as an activation is a mistake.
    try:
        return not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)
    except OverflowError:  # an integer beyond any float
        return False
