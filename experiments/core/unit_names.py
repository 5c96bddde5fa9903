"""Units by number or by name: the classes of logits, the concepts of synthetic neurons. Standard library alone."""

from __future__ import annotations

import re
from collections.abc import Sequence

from workers.errors import UnknownName

WITH_NUMBER = re.compile(r".*\((\d{1,9})\)", re.DOTALL)
DIGITS = re.compile(r"[+-]?[0-9]{1,9}")


def unit_number(written: str, layer: str, units: int, names: Sequence[str] = ()) -> int:
    """The unit that "7", "tench" or "tench (7)" means. Raises UnknownName, with what there is.

    A name is enough where a layer has names; of units with the same name, the number in brackets tells.
    """
    text = written.strip()
    called = [number for number, name in enumerate(names) if name.casefold() == text.casefold()]
    if len(called) == 1:
        return called[0]
    if called:
        listed = ", ".join(f"“{text} ({number})”" for number in called)
        raise UnknownName(f"{len(called)} units of {layer} are called “{text}”. Choose one of: {listed}.")
    bracket = WITH_NUMBER.fullmatch(text) if names else None
    if DIGITS.fullmatch(digits := bracket[1] if bracket else text):
        if 0 <= int(digits) < units:
            return int(digits)
        raise UnknownName(f"There is no unit {digits}: {layer} has units 0 to {units - 1}.")
    or_name = ", or the name of one" if names else ""
    similar = [name for name in names if text and text.casefold() in name.casefold()][:5]
    hint = f" Names with “{text}”: {', '.join(similar)}." if similar else ""
    raise UnknownName(f"Choose a unit: a whole number from 0 to {units - 1}{or_name}.{hint}")


def format_unit(number: int, names: Sequence[str]) -> str:
    """How a unit is written in the form: its name with the number, or the number alone."""
    return f"{names[number]} ({number})" if 0 <= number < len(names) else str(number)
