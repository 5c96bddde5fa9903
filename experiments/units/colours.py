"""Colours of a map of units: a value that is a CSS class, its words, and its meaning."""

from __future__ import annotations

from enum import StrEnum


class Colour(StrEnum):
    """Members are written `NAME = "class", "Words", "what it means"`."""

    words: str
    meaning: str

    def __new__(cls, value: str, words: str = "", meaning: str = "") -> Colour:
        # StrEnum would take further values as arguments of `str`, so the member is built here.
        member = str.__new__(cls, value)
        member._value_, member.words, member.meaning = value, words, meaning
        return member
