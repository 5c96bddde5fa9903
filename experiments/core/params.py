"""Input made safe, once: whole numbers of addresses, forms and files, and text as every database takes it."""

from __future__ import annotations

ROW_DIGITS = 18
"""Digits of a row's key that every database compares."""


def parse_number(text: str | None, digits: int = 9) -> int | None:
    """The whole number from 0 that a text is, in at most so many ASCII digits; None for anything else. Python by itself
    takes digits of any script, and a million of them."""
    if text is None or not (text.isascii() and text.isdigit() and len(text) <= digits):
        return None
    return int(text)


def parse_key(text: str | None) -> int:
    """The key of a row; 0, which no row has, for anything else."""
    return parse_number(text, ROW_DIGITS) or 0


def clean_text(text: str, longest: int | None = None) -> str:
    """The text as every database keeps it: U+FFFD for the zero byte, a question mark for half a character; cut."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")[:longest]


def clean_line(text: str, longest: int | None = None) -> str:
    """The same on one line: white space of any kind is one space, and none at the ends."""
    return " ".join(clean_text(text).split())[:longest]
