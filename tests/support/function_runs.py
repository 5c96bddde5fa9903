"""Runs on functions, played by a worker into the database."""

from __future__ import annotations

from experiments.models import Run
from workers.jobs import lease, rounds

FUNCTION = {"task": "function", "system_kind": "function", "model": "functions", "backbone": "scripted-functions"}


def play(run: Run, *, until: int | None = None) -> Run:
    """Until it has ended, or has played so many rounds."""
    while run.status in ("queued", "running") and run.rounds != until:
        claimed = lease.claim(run.pk)
        assert claimed
        rounds.execute_claimed(claimed)
        run.refresh_from_db()
    return run
