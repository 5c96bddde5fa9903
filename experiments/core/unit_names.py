"""Parse and format units by number or by name: classes of logits, concepts of synthetic neurons. Uses only the
standard library."""

from __future__ import annotations

import re
from collections.abc import Sequence

from workers.errors import UnknownName

WITH_NUMBER = re.compile(r".*\((\d{1,9})\)", re.DOTALL)
DIGITS = re.compile(r"[+-]?[0-9]{1,9}")
_RANGE = re.compile(r"\s*([0-9]{1,9})\s*[-–]\s*([0-9]{1,9})\s*")  # noqa: RUF001 - as people type it


def unit_number(written: str, layer: str, units: int, names: Sequence[str] = ()) -> int:
    """Return the unit that "7", "tench" or "tench (7)" means. Raises UnknownName, with the choices.

    In a layer with names, a name is enough; the number in brackets tells units with the same name apart.
    """
    text = written.strip()
    # 1. A name, which may itself be a number.
    called = [number for number, name in enumerate(names) if name.casefold() == text.casefold()]
    if len(called) == 1:
        return called[0]
    if called:
        listed = ", ".join(f"“{text} ({number})”" for number in called)
        raise UnknownName(f"{len(called)} units of {layer} are called “{text}”. Choose one of: {listed}.")
    # 2. A number, alone or in brackets behind a name.
    bracket = WITH_NUMBER.fullmatch(text) if names else None
    if DIGITS.fullmatch(digits := bracket[1] if bracket else text):
        if 0 <= int(digits) < units:
            return int(digits)
        raise UnknownName(f"There is no unit {digits}: {layer} has units 0 to {units - 1}.")
    # 3. Neither: say what there is.
    or_name = ", or the name of one" if names else ""
    similar = [name for name in names if text and text.casefold() in name.casefold()][:5]
    hint = f" Names with “{text}”: {', '.join(similar)}." if similar else ""
    raise UnknownName(f"Choose a unit: a whole number from 0 to {units - 1}{or_name}.{hint}")


def unit_numbers(written: str, layer: str, units: int, names: Sequence[str] = ()) -> list[int]:
    """Return the units that "3, 5, 8-12" means, each once, in that order; any of them may be a name that contains
    commas. Raises UnknownName."""
    found: dict[int, None] = {}
    pending, problem = "", None
    for part in written.split(","):
        # A part that means nothing may be the beginning of a name with a comma: join the next one.
        pending = f"{pending},{part}" if pending else part
        try:
            found |= dict.fromkeys(_read_part(pending, layer, units, names))
        except UnknownName as error:
            problem = problem or error
            # Without names a comma only separates.
            if not names:
                break
        else:
            pending, problem = "", None
    if problem:
        raise problem
    return list(found)


def _read_part(part: str, layer: str, units: int, names: Sequence[str]) -> Sequence[int]:
    """Return one unit, or a range of units."""
    if not (ends := _RANGE.fullmatch(part)):
        return [unit_number(part, layer, units, names)]
    first, last = (unit_number(end, layer, units) for end in ends.groups())
    if first > last:
        raise UnknownName(f"{part.strip()} is no range: write the lower number first.")
    return range(first, last + 1)


def format_units(numbers: Sequence[int]) -> list[str]:
    """Format units as a list, in which neighbours form a range."""
    found: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return [str(first) if first == last else f"{first}-{last}" for first, last in found]


def format_unit(number: int, names: Sequence[str]) -> str:
    """Format a unit for the form: its name with the number, or the number alone."""
    return f"{names[number]} ({number})" if 0 <= number < len(names) else str(number)
