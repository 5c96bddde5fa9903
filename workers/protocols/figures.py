"""Activations as text: rounding is for showing, and only as far as no small number becomes none.

Pages have the same format, with a real minus sign (`experiments/display/number_format.py`).
"""

from __future__ import annotations

import math

LEAST = 1e-4
"""Numbers nearer to 0 are written with a power of ten."""


def format_activation(value: float) -> str:
    """At least two decimals, and three digits that count: 9.24, 0.5 as 0.50, 0.0123, 4.1e-05.

    So the range of a unit decides how many decimals stand: probabilities of 0.0123 and 0.0101 stay apart.
    """
    size = abs(value)
    if not math.isfinite(value) or size >= 1 or size == 0:
        return f"{value + 0.0:.2f}"
    if size < LEAST:
        return f"{value:.1e}"
    text = f"{value:.{2 - math.floor(math.log10(size))}f}"
    whole, _, decimals = text.partition(".")
    return f"{whole}.{decimals.rstrip('0').ljust(2, '0')}"


def differs(claimed: float, measured: float) -> bool:
    """Whether a program cannot mean by `claimed` what was measured.

    It may have rounded, to two decimals or more, or to three digits that count.
    """
    if abs(claimed - measured) <= 0.005 * abs(measured):
        return False
    return not any(abs(round(measured, digits) - claimed) < 1e-9 for digits in range(2, 8))
