"""Activations as words: what a figure looks like wherever one stands."""

from __future__ import annotations

EN_DASH, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"


def figure(value: float | None) -> str:
    """An activation: two decimals, a real minus sign."""
    return EN_DASH if value is None else f"{value:.2f}".replace("-", MINUS)


def change(value: float) -> str:
    """A difference with its sign, a real minus sign; 0.0 has none."""
    text = f"{value:+.1f}"
    return "0.0" if text in {"+0.0", "-0.0"} else text.replace("-", MINUS)
