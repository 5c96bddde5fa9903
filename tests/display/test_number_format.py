"""Activations as text: pages and the agent read the same digits, and no small number becomes none."""

from __future__ import annotations

import pytest

from workers.record.figures import differs, format_activation
from workers.record.figures import figure as on_pages

SHOWN = {
    0.0123: "0.0123",
    0.0101: "0.0101",
    0.5: "0.50",
    0.9: "0.90",
    0.998: "0.998",
    0.9999: "1.00",
    0.20000000298: "0.20",
    9.2149: "9.21",
    123.456: "123.46",
    -0.004: "-0.004",
    -12.5: "-12.50",
    0.0: "0.00",
    0.0000412: "4.1e-05",
    float("inf"): "inf",
    float("nan"): "nan",
}


@pytest.mark.parametrize(("value", "text"), SHOWN.items())
def test_a_figure_shows_digits_that_suit_it(value, text):
    assert format_activation(value) == text
    assert on_pages(value) == text.replace("-", "\N{MINUS SIGN}")


@pytest.mark.parametrize(
    ("claimed", "measured"),
    [(7.14, 7.1399), (0.01, 0.0123), (0.012, 0.0123), (0.0, 0.0049), (17.4, 17.36), (1230.0, 1234.5), (-0.5, -0.498)],
)
def test_rounding_is_no_difference(claimed, measured):
    assert not differs(claimed, measured)


@pytest.mark.parametrize(
    ("claimed", "measured"),
    [(7.1, 0.2), (0.0, 0.2), (7.0, 7.4), (0.004, 0.0001), (-0.5, 0.5), (0.02, 0.0123), (9.3, 9.21)],
)
def test_another_number_is_one(claimed, measured):
    assert differs(claimed, measured)
