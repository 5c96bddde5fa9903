"""Input made safe, once: whole numbers of addresses, forms and files, and text as every database takes it."""

from __future__ import annotations

import math
from datetime import datetime, time, timedelta

from django.utils import timezone
from django.utils.dateparse import parse_date

from experiments.core.errors import InvalidInput

ROW_DIGITS = 18
"""Digits of a row's key that every database compares."""
MAX_COUNT = 2**31 - 1
"""The largest whole number that an ordinary column keeps."""
MAX_INTEGER = 2**63 - 1
"""The largest whole number that any column keeps, and that a query may name."""


def parse_number(text: str | None, digits: int = 9) -> int | None:
    """The whole number from 0 that a text is, in at most so many ASCII digits; None for anything else. Python by itself
    takes digits of any script, and a million of them."""
    if text is None or not (text.isascii() and text.isdigit() and len(text) <= digits):
        return None
    return int(text)


def parse_float(text: str | None) -> float | None:
    """The finite number that a text is; None for anything else."""
    try:
        number = float(text or "nan")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def parse_key(text: str | None) -> int:
    """The key of a row; 0, which no row has, for anything else."""
    return parse_number(text, ROW_DIGITS) or 0


def clean_text(text: str, longest: int | None = None) -> str:
    """The text as every database keeps it: U+FFFD for the zero byte, a question mark for half a character; cut."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")[:longest]


def clean_line(text: str, longest: int | None = None) -> str:
    """The same on one line: white space of any kind is one space, and none at the ends."""
    return " ".join(clean_text(text).split())[:longest]


def require_line(text: str, noun: str, owner: str, longest: int) -> str:
    """Typed words on one line, as the `noun` of an `owner`: the name of a circuit. Raises InvalidInput."""
    line = clean_line(text)
    if not line:
        raise InvalidInput(f"Give the {owner} a {noun}.", noun)
    return _require_length(line, noun, owner, longest)


def bounded_text(text: str, noun: str, owner: str, longest: int) -> str:
    """Typed words of any number of lines, none among them. Raises InvalidInput."""
    return _require_length(clean_text(text).strip(), noun, owner, longest)


def _require_length(text: str, noun: str, owner: str, longest: int) -> str:
    if len(text) > longest:
        words = f"The {noun} has {len(text):,} characters; a {owner} takes at most {longest:,}. Shorten it."
        raise InvalidInput(words, noun)
    return text


def parse_day(text: str) -> datetime:
    """The beginning of a day that is written as 2026-01-31. Raises InvalidInput."""
    try:
        date = parse_date(text)
    except ValueError:
        date = None
    if date is None:
        raise InvalidInput(f"“{text[:40]}” is no day: write it as 2026-01-31.")
    return datetime.combine(date, time.min, timezone.get_default_timezone())


def parse_day_end(text: str) -> datetime:
    """The moment at which a day ends. Raises InvalidInput."""
    try:
        return parse_day(text) + timedelta(days=1)
    except OverflowError:
        raise InvalidInput(f"“{text[:40]}” is too far away.") from None


def find_swapped_days(since: str, until: str) -> str:
    """A sentence if no day is at once since the one and until the other; "" otherwise, and where one is no day."""
    try:
        swapped = bool(since and until) and parse_day(since) >= parse_day_end(until)
    except InvalidInput:
        return ""
    return f"No day is since {since} and until {until}: swap the two." if swapped else ""
