"""Activations as words: what a figure looks like wherever one stands.

The agent reads the same digits (`workers/protocols/systems.py`); a test compares the two.
"""

from __future__ import annotations

import math

EN_DASH, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"
LEAST = 1e-4
"""Numbers nearer to 0 are written with a power of ten."""
STILL = 0.005
"""A change by less than this share of the larger activation is none."""


def figure(value: float | None) -> str:
    """An activation: at least two decimals and three digits that count, a real minus sign."""
    return EN_DASH if value is None else digits(value).replace("-", MINUS)


def change(value: float) -> str:
    """A difference with its sign, a real minus sign: one decimal, more where it is small. Only 0 has none."""
    if value == 0:
        return "0.0"
    text = f"{abs(value):.1f}" if abs(value) >= 1 else digits(abs(value))
    return f"{MINUS if value < 0 else '+'}{text}"


def digits(value: float) -> str:
    """0.0123 as it is, 0.5 as 0.50, 9.2149 as 9.21."""
    size = abs(value)
    if not math.isfinite(value) or size >= 1 or size == 0:
        return f"{value + 0.0:.2f}"
    if size < LEAST:
        return f"{value:.1e}"
    text = f"{value:.{2 - math.floor(math.log10(size))}f}"
    whole, _, decimals = text.partition(".")
    return f"{whole}.{decimals.rstrip('0').ljust(2, '0')}"


def is_same(before: float, after: float) -> bool:
    """Whether an edit left the activation as it was, as far as anybody can see."""
    return abs(after - before) <= STILL * max(abs(before), abs(after))
