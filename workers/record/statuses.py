"""How a run stands, and what may follow."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Labelled(StrEnum):
    """A value with the words that people read for it. Members are written `NAME = "value", "Words"`, and are their
    values."""

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


class Status(Labelled):
    QUEUED = "queued", "Queued"
    RUNNING = "running", "Running"
    PAUSED = "paused", "Paused"
    WAITING = "waiting", "Needs attention"
    CONCLUDED = "concluded", "Concluded"
    LIMIT_REACHED = "limit_reached", "Limit reached"
    CANCELLED = "cancelled", "Cancelled"
    FAILED = "failed", "Failed"


ACTIVE = frozenset({Status.QUEUED, Status.RUNNING})
"""A worker holds the run, or will."""

STILL = frozenset({Status.PAUSED, Status.WAITING})
"""No worker holds the run, and it has not ended."""

ENDED = frozenset({Status.CONCLUDED, Status.LIMIT_REACHED, Status.CANCELLED, Status.FAILED})
"""Nothing moves any more: viewers need not look again."""

REOPENABLE = frozenset({Status.PAUSED, Status.FAILED, Status.CANCELLED})
"""What a person may have go on, beside a run that waits."""
