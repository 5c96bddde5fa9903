"""Format and compare activations. Rounding is for display only and never turns a small number into 0."""

from __future__ import annotations

import math

EN_DASH, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"
MIN_PLAIN = 1e-4
"""Smaller numbers are written with a power of ten."""
UNCHANGED = 0.005
"""A change by less than this share of the larger activation counts as none."""


def format_activation(value: float) -> str:
    """Format with at least two decimals and three significant digits: 9.24, 0.50, 0.0123, 4.1e-05.

    So small values such as the probabilities 0.0123 and 0.0101 stay distinct.
    """
    size = abs(value)
    if not math.isfinite(value) or size >= 1 or size == 0:
        # `+ 0.0` turns -0.0 into 0.0
        return f"{value + 0.0:.2f}"
    if size < MIN_PLAIN:
        return f"{value:.1e}"
    # Three significant digits: the exponent says how many decimals those are
    text = f"{value:.{2 - math.floor(math.log10(size))}f}"
    whole, _, decimals = text.partition(".")
    # Two decimals at least, without further zeros
    return f"{whole}.{decimals.rstrip('0').ljust(2, '0')}"


def figure(value: float | None) -> str:
    """Format for pages: with a real minus sign, and a dash for None."""
    return EN_DASH if value is None else format_activation(value).replace("-", MINUS)


def change(value: float) -> str:
    """Format a signed difference with a real minus sign: one decimal, or more if it is small. Only 0 has no sign."""
    if value == 0:
        return "0.0"
    text = f"{abs(value):.1f}" if abs(value) >= 1 else format_activation(abs(value))
    return f"{MINUS if value < 0 else '+'}{text}"


def is_same(before: float, after: float) -> bool:
    """True if an edit changed the activation by too little to see."""
    return abs(after - before) <= UNCHANGED * max(abs(before), abs(after))


def differs(claimed: float, measured: float) -> bool:
    """True if `claimed` cannot be a rounded `measured`.

    A program may round to two or more decimals, or to three significant digits.
    """
    # 1. Three significant digits are within half a percent
    if abs(claimed - measured) <= 0.005 * abs(measured):
        return False
    # 2. Rounded to any number of decimals from two
    return not any(abs(round(measured, digits) - claimed) < 1e-9 for digits in range(2, 8))
