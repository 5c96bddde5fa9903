"""A value with the words that people read for it: what rows, events and forms choose from."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Labelled(StrEnum):
    """Members are written `NAME = "value", "Words"`; a member is its value."""

    label: str

    def __new__(cls, value: str, label: str = "") -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.label = label
        return member

    @classmethod
    def choices(cls) -> list[tuple[str, str]]:
        """Value and words of each, for a form or a column."""
        return [(each.value, each.label) for each in cls]
