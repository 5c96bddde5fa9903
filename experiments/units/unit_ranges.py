"""Write units of a layer as text: "0-11,40" is the first twelve and unit 40."""

from __future__ import annotations

from collections.abc import Iterable


def format_ranges(numbers: Iterable[int]) -> str:
    """Format the numbers as ranges, in ascending order, each once."""
    # Ranges keep a plan of 100,000 units to a few bytes.
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        # Numbers ascend, so only the last range can grow.
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ",".join(f"{first}-{last}" if last > first else str(first) for first, last in found)


def read_stretches(text: str, units: int | None = None) -> list[int]:
    """Parse the output of `format_ranges`. For text from other sources, pass `units`: numbers from there on are
    left out. Raises ValueError for other text."""
    numbers: list[int] = []
    for stretch in filter(None, text.split(",")):
        first, _, last = stretch.partition("-")
        end = int(last or first) + 1
        # Cut first: a text from elsewhere may name a billion units.
        numbers.extend(range(int(first), end if units is None else min(end, units)))
    return numbers
