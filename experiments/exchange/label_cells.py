"""Parse a cell of a label file, as pandas, spreadsheets and published methods write it."""

from __future__ import annotations

import ast
import json
import math
import re
from typing import Any

from experiments.core.params import clean_text, parse_number
from experiments.exchange.label_columns import TEXT
from experiments.exchange.safe_zip import ExchangeError, parse_json

MAX_CELL_CHARS = 10_000
_MAX_WORDS = 10
"""Maximum number of words kept of a list."""
_MAX_SCORE = 1e30
"""Maximum absolute score of a word."""
_NO_LABEL = frozenset({"", "nan", "none", "null", "na", "n/a", "<na>", "#n/a"})
"""Empty cells as pandas and spreadsheets write them."""
_WHOLE = re.compile(r"([0-9]{1,9})[.,](?:0{1,2}|0{4,20})")
"""A unit stored as a float, such as 12.0. Three zeros are excluded: they may be thousands."""
_DECIMAL_COMMA = {
    ";": re.compile(r"[+-]?[0-9]+,[0-9]+"),
    "\t": re.compile(r"[+-]?(?:0+,[0-9]+|[0-9]+,(?![0-9]{3}$)[0-9]+)"),
}
"""Column separator -> numbers with a decimal comma. In tab-separated files three digits after a comma may be
thousands."""


class UnusableLine(ExchangeError):
    """Raised for a line of labels that cannot be used. The other lines still can."""


def read_unit(cell: str, where: str) -> int:
    """Parse the number of a unit. Raises UnusableLine."""
    written = cell.strip()
    whole = _WHOLE.fullmatch(written)
    if (unit := parse_number(whole[1] if whole else written)) is None:
        raise UnusableLine(f"{where}: {written[:40]!r} is not the number of a unit.")
    return unit


def read_number(cell: str, separator: str) -> float | None:
    """Return the number in a cell, perhaps infinite or NaN; None for text."""
    comma = _DECIMAL_COMMA.get(separator)
    try:
        return float(cell.replace(",", ".") if comma and comma.fullmatch(cell) else cell)
    except ValueError:
        return None


def read_labels(cell: str) -> list[tuple[str, dict[str, float]]]:
    """Return (label, scores) of a cell, or of each item if it is a list of words or of (word, score). An empty cell
    gives an empty list."""
    text = cell.strip()
    # Lists that pandas wrote with repr()
    if text.startswith("[") and text.endswith("]"):
        # `literal_eval` runs no code, but deep nesting exhausts memory or stack
        try:
            listed = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            listed = None
        if isinstance(listed, list) and listed and all(_is_scored(each) for each in listed):
            return [(word.strip(), {"score": float(score)}) for word, score in listed[:_MAX_WORDS]]
        if isinstance(listed, list) and all(isinstance(each, str) for each in listed):
            return [(clean_text(word.strip()), {}) for word in listed[:_MAX_WORDS] if not is_empty(word)]
    return [] if is_empty(text) else [(text, {})]


def is_empty(text: str) -> bool:
    return text.strip().casefold() in _NO_LABEL


def _is_scored(each: Any) -> bool:
    if not isinstance(each, list | tuple) or len(each) != 2:
        return False
    word, score = each
    # Not converted first: float() fails on integers of hundreds of digits
    return isinstance(word, str) and bool(word.strip()) and isinstance(score, int | float) and abs(score) <= _MAX_SCORE


def read_texts(value: Any, where: str) -> list[str]:
    """Return the labels of a JSON value: a text, a list, or an object that holds one. Raises UnusableLine."""
    if isinstance(value, dict):
        value = next((value[name] for name in (*TEXT, "labels") if name in value), None)
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) and len(text) <= MAX_CELL_CHARS for text in texts):
        raise UnusableLine(f"{where}: no label of at most {MAX_CELL_CHARS:,} characters found.")
    if not (found := [clean_text(text) for text in texts if not is_empty(text)]):
        raise UnusableLine(f"{where}: the label is empty.")
    return found


def read_scores(cell: str, where: str) -> dict[str, float]:
    """Parse scores: an object of numbers, as in our export, or Neuronpedia's list. Raises UnusableLine."""
    try:
        scores = parse_json((cell or "{}").encode(), "scores")
    except ExchangeError as error:
        raise UnusableLine(f"{where}: {error}") from None
    if isinstance(scores, list) and all(isinstance(each, dict) for each in scores):
        scores = {str(each.get("explanationScoreTypeName")): each.get("value") for each in scores}
    if not isinstance(scores, dict) or len(scores) > 100:
        raise UnusableLine(f"{where}: scores is {cell[:40]!r}, no object of at most 100 numbers.")
    numbers = {name[:80]: value for name, value in scores.items() if isinstance(value, int | float)}
    return {name: value for name, value in numbers.items() if math.isfinite(value)}


def format_cell(value: Any) -> str:
    """Return a JSON value as the text of a table cell."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
