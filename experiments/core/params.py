"""Parse and clean input: numbers from addresses, forms and files, and text in a form that every database accepts."""

from __future__ import annotations

import math
from datetime import datetime, time, timedelta

from django.utils import timezone
from django.utils.dateparse import parse_date

from experiments.core.errors import InvalidInput

ROW_DIGITS = 18
"""Maximum digits of a row's key, so that every database can compare it."""
MAX_COUNT = 2**31 - 1
"""The largest integer of an ordinary column."""
MAX_INTEGER = 2**63 - 1
"""The largest integer of any column, and in a query."""


def parse_number(text: str | None, digits: int = 9) -> int | None:
    """Return the integer from 0, in at most so many ASCII digits; None for anything else."""
    # `int` would accept digits of any script, and a million of them.
    if text is None or not (text.isascii() and text.isdigit() and len(text) <= digits):
        return None
    return int(text)


def parse_float(text: str | None) -> float | None:
    """Return the finite number; None for anything else."""
    try:
        number = float(text or "nan")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def parse_key(text: str | None) -> int:
    """Return the key of a row; 0, which no row has, for anything else."""
    return parse_number(text, ROW_DIGITS) or 0


def clean_text(text: str, longest: int | None = None) -> str:
    """Return the text in a form that every database accepts: U+FFFD for the zero byte, a question mark for half a
    character; cut to `longest`."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")[:longest]


def clean_line(text: str, longest: int | None = None) -> str:
    """Return the text on one line: any white space becomes one space, with none at the ends."""
    return " ".join(clean_text(text).split())[:longest]


def require_line(text: str, noun: str, owner: str, longest: int) -> str:
    """Return the input on one line. Errors name it by `noun` and `owner`: the name of a circuit. Raises
    InvalidInput."""
    line = clean_line(text)
    if not line:
        raise InvalidInput(f"Give the {owner} a {noun}.", noun)
    return _require_length(line, noun, owner, longest)


def bounded_text(text: str, noun: str, owner: str, longest: int) -> str:
    """Return the input, which may have any number of lines or be empty. Raises InvalidInput."""
    return _require_length(clean_text(text).strip(), noun, owner, longest)


def _require_length(text: str, noun: str, owner: str, longest: int) -> str:
    if len(text) > longest:
        words = f"The {noun} has {len(text):,} characters; a {owner} takes at most {longest:,}. Shorten it."
        raise InvalidInput(words, noun)
    return text


def parse_day(text: str) -> datetime:
    """Return the start of a day written as 2026-01-31. Raises InvalidInput."""
    try:
        date = parse_date(text)
    except ValueError:
        date = None
    if date is None:
        raise InvalidInput(f"“{text[:40]}” is no day: write it as 2026-01-31.")
    return datetime.combine(date, time.min, timezone.get_default_timezone())


def parse_day_end(text: str) -> datetime:
    """Return the moment at which a day ends. Raises InvalidInput."""
    # The year 9999 has no next day.
    try:
        return parse_day(text) + timedelta(days=1)
    except OverflowError:
        raise InvalidInput(f"“{text[:40]}” is too far away.") from None


def find_swapped_days(since: str, until: str) -> str:
    """Return a message if `until` is before `since`; "" otherwise, or if either is not a day."""
    try:
        swapped = bool(since and until) and parse_day(since) >= parse_day_end(until)
    except InvalidInput:
        return ""
    return f"No day is since {since} and until {until}: swap the two." if swapped else ""
