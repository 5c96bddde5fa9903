"""Activations as text and compared: rounding is for showing, and only as far as no small number becomes none."""

from __future__ import annotations

import math

EN_DASH, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"
MIN_PLAIN = 1e-4
"""Numbers nearer to 0 are written with a power of ten."""
UNCHANGED = 0.005
"""A change by less than this share of the larger activation is none."""


def format_activation(value: float) -> str:
    """At least two decimals, and three digits that count: 9.24, 0.5 as 0.50, 0.0123, 4.1e-05.

    So the range of a unit decides how many decimals stand: probabilities of 0.0123 and 0.0101 stay apart.
    """
    size = abs(value)
    if not math.isfinite(value) or size >= 1 or size == 0:
        return f"{value + 0.0:.2f}"
    if size < MIN_PLAIN:
        return f"{value:.1e}"
    text = f"{value:.{2 - math.floor(math.log10(size))}f}"
    whole, _, decimals = text.partition(".")
    return f"{whole}.{decimals.rstrip('0').ljust(2, '0')}"


def figure(value: float | None) -> str:
    """The same digits for pages: with a real minus sign, a dash for none."""
    return EN_DASH if value is None else format_activation(value).replace("-", MINUS)


def change(value: float) -> str:
    """A difference with its sign, a real minus sign: one decimal, more where it is small. Only 0 has none."""
    if value == 0:
        return "0.0"
    text = f"{abs(value):.1f}" if abs(value) >= 1 else format_activation(abs(value))
    return f"{MINUS if value < 0 else '+'}{text}"


def is_same(before: float, after: float) -> bool:
    """Whether an edit left the activation as it was, as far as anybody can see."""
    return abs(after - before) <= UNCHANGED * max(abs(before), abs(after))


def differs(claimed: float, measured: float) -> bool:
    """Whether a program cannot mean by `claimed` what was measured.

    It may have rounded, to two decimals or more, or to three digits that count.
    """
    if abs(claimed - measured) <= 0.005 * abs(measured):
        return False
    return not any(abs(round(measured, digits) - claimed) < 1e-9 for digits in range(2, 8))
