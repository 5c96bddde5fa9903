"""Which runs wait for a worker."""

from __future__ import annotations

from workers.jobs import claims


def list_queued() -> set[int]:
    """Runs that any worker may claim at this moment."""
    return set(claims.list_claimable().filter(flow__open=True).values_list("pk", flat=True))
