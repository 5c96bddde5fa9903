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
    if text.casefold() in (folded := [name.casefold() for name in names]):
        return require_one(text, [number for number, name in enumerate(folded) if name == text.casefold()], layer)
    bracket = WITH_NUMBER.fullmatch(text) if names else None
    if DIGITS.fullmatch(digits := bracket[1] if bracket else text):
        if 0 <= int(digits) < units:
            return int(digits)
        raise UnknownName(f"There is no unit {digits}: {layer} has units 0 to {units - 1}.")
    or_name = ", or the name of one" if names else ""
    raise UnknownName(f"Choose a unit: a whole number from 0 to {units - 1}{or_name}.{hint_names(text, names)}")


def require_one(text: str, numbers: Sequence[int], layer: str) -> int:
    if len(numbers) == 1:
        return numbers[0]
    listed = ", ".join(f"“{text} ({number})”" for number in numbers)
    raise UnknownName(f"{len(numbers)} units of {layer} are called “{text}”. Choose one of: {listed}.")


def hint_names(text: str, names: Sequence[str]) -> str:
    """A few names that hold the words, as a hint."""
    found = [name for name in names if text and text.casefold() in name.casefold()][:5]
    return f" Names with “{text}”: {', '.join(found)}." if found else ""


def format_unit(number: int, names: Sequence[str]) -> str:
    """How a unit is written in the form: its name with the number, or the number alone."""
    return f"{names[number]} ({number})" if 0 <= number < len(names) else str(number)
