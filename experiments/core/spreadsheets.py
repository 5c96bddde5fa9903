"""Write spreadsheets: JSON lines, and CSV in which no cell is a formula that a spreadsheet would run."""

from __future__ import annotations

import codecs
import csv
import io
import json
from collections.abc import Iterable
from typing import Any

FORMULA = ("=", "+", "-", "@", "|", "%")


def cell(value: Any) -> str:
    """Return a value as a CSV cell, guarded if a spreadsheet would run its text as a formula."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"'{text}" if _wants_guard(text) else text


def unguard(text: str) -> str:
    """Return what was given to `cell` to make this text."""
    return text[1:] if text.startswith("'") and _wants_guard(text[1:]) else text


def _wants_guard(text: str) -> bool:
    """True if the text needs a guard. Also if it looks guarded already, so that a guard can be removed again."""
    bare = text.lstrip("'")
    return bare.lstrip().startswith(FORMULA) or bare.startswith(("\t", "\r", "\n"))


def json_line(row: dict[str, Any]) -> bytes:
    shown = {name: value.isoformat() if hasattr(value, "isoformat") else value for name, value in row.items()}
    return json.dumps(shown, ensure_ascii=False).encode() + b"\n"


def csv_header(cells: Iterable[str]) -> bytes:
    """Return the first line of a file, after the mark by which spreadsheets recognise UTF-8."""
    return codecs.BOM_UTF8 + csv_line(cells)


def csv_line(cells: Iterable[str]) -> bytes:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue().encode()
