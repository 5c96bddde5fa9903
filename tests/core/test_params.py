"""Input made safe: numbers of few ASCII digits, text that every database takes."""

from __future__ import annotations

import pytest

from experiments.core.params import clean_line, clean_text, parse_key, parse_number


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("7", 7), ("007", 7), ("999999999", 999_999_999)])
def test_a_whole_number_is_read(text: str, number: int) -> None:
    assert parse_number(text) == number


@pytest.mark.parametrize("text", [None, "", " 7", "-1", "+1", "1.0", "²", "٣", "1e3", "1" * 10, "1" * 5_000])
def test_anything_else_is_no_number(text: str | None) -> None:
    assert parse_number(text) is None
    assert parse_key("x" if text is None else text + "x") == 0


def test_a_key_has_more_digits() -> None:
    assert parse_key("9" * 18) == int("9" * 18)
    assert parse_key("9" * 19) == 0


def test_text_is_as_every_database_keeps_it() -> None:
    assert clean_text("a\x00b\ud800c") == "a\ufffdb?c"
    assert clean_text("äöü" * 5, 4) == "äöüä"
    assert clean_text("a\n b") == "a\n b"


def test_a_line_has_single_spaces() -> None:
    assert clean_line("  a\n\t b\u00a0c ") == "a b c"
