"""Rows of files: JSON lines, and CSV in which nothing is a formula that a spreadsheet would run."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from typing import Any

FORMULA = ("=", "+", "-", "@", "|", "%")


def cell(value: Any) -> str:
    """A value as CSV has it. A spreadsheet would take text that begins so for a formula, and run it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"'{text}" if text.lstrip().startswith(FORMULA) or text.startswith(("\t", "\r", "\n")) else text


def json_line(row: dict[str, Any]) -> bytes:
    shown = {name: value.isoformat() if hasattr(value, "isoformat") else value for name, value in row.items()}
    return json.dumps(shown, ensure_ascii=False).encode() + b"\n"


def csv_line(cells: Iterable[str]) -> bytes:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue().encode()
