"""The status of a run, and what can follow it."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Labelled(StrEnum):
    """A string value with a display name. Members are written `NAME = "value", "Display name"` and equal their
    values."""

    label: str

    def __new__(cls, value: str, label: str = "") -> Self:
        member = str.__new__(cls, value)
        # The status is stored as its value: members equal and sort like plain texts
        member._value_ = value
        member.label = label
        return member

    @classmethod
    def choices(cls) -> list[tuple[str, str]]:
        """Return value and display name of each member, for a form or a column."""
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

SUSPENDED = frozenset({Status.PAUSED, Status.WAITING})
"""No worker holds the run, but it has not ended."""

ENDED = frozenset({Status.CONCLUDED, Status.LIMIT_REACHED, Status.CANCELLED, Status.FAILED})
"""Final statuses: pages need not poll."""

REOPENABLE = frozenset({Status.PAUSED, Status.FAILED, Status.CANCELLED})
"""Statuses from which a person can resume a run, besides a run that waits."""
