"""Decode a bundle's JSON into typed structs: types, lengths and bounds are stated where the field is declared."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, TypeVar

import msgspec

from experiments.exchange.safe_zip import ExchangeError

HIGHEST = 2**31 - 1
TIMES = frozenset({"created", "started", "ended", "edited", "deleted", "resolved", "replaced", "submitted"})
"""Fields that hold a time as it was written."""
_PLACE = re.compile(r"(.*?) - at `(?:key` in `)?\$(.*)`", re.DOTALL)
_REASONS = ("Expected", "Object", "Invalid", "Number")
"""Beginnings of what msgspec says; checks of a struct name the value themselves."""
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")

Count = Annotated[int, msgspec.Meta(ge=0, le=HIGHEST)]
T = TypeVar("T")


class BundleStruct(msgspec.Struct, frozen=True, kw_only=True):
    """Base of what a bundle holds. Fields that it does not know are left out."""

    def __post_init__(self) -> None:
        """Check the times. Raises ValueError."""
        for name in TIMES.intersection(self.__struct_fields__):
            if (value := getattr(self, name)) is not None and not is_time(value):
                raise ValueError(f"{name} is {shorten_value(value)}: write it as 2026-01-31T12:00:00+00:00")


def decode(given: Any, wanted: type[T], where: str) -> T:
    """Return JSON as this type. Raises ExchangeError naming the field, its value and what is wanted."""
    try:
        return msgspec.convert(given, wanted)
    except msgspec.ValidationError as error:
        raise ExchangeError(_describe_problem(str(error), given, where)) from None


def _describe_problem(problem: str, given: Any, where: str) -> str:
    """Return a sentence about the value at the place that msgspec names, as `$.threads[0].text`."""
    found = _PLACE.fullmatch(problem)
    reason, path = (found[1], found[2]) if found else (problem, "")
    value = given
    for step in _STEP.finditer(path):
        key = step[1] or int(step[2])
        value = value.get(key) if isinstance(value, dict) else value[key]
    named = f"{where}: {path.removeprefix('.')}" if path else where
    if reason.startswith(_REASONS):
        named = f"{named} is {shorten_value(value)}"
    return f"{named}: {reason[:300]}. Mend it, or export the bundle again."


def is_time(value: Any) -> bool:
    """True if it is a time with a zone, of a year that databases take."""
    try:
        found = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return False
    return found.tzinfo is not None and 1970 < found.year < 9999


def shorten_value(value: Any) -> str:
    """Return a value of a hostile file, short enough for a sentence."""
    if isinstance(value, list) and len(value) > 20:
        return f"a list of {len(value):,}"
    words = repr(value)
    return words if len(words) <= 60 else f"{words[:57]}…"
