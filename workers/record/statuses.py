"""How a run stands, and what may follow."""

from __future__ import annotations

from workers.record.labelled import Labelled


class Status(Labelled):
    QUEUED = "queued", "Queued"
    RUNNING = "running", "Running"
    PAUSED = "paused", "Paused"
    WAITING = "waiting", "Waiting for a person"
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
