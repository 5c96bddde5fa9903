"""What a Celery worker does when it starts and when it is asked to stop."""

from __future__ import annotations

from typing import Any

from celery.signals import worker_ready, worker_shutting_down

from workers.jobs import lease
from workers.jobs.queue import ask_for_catalogue, send


@worker_ready.connect
def begin(**_: Any) -> None:
    """Bring back what an earlier worker left, and see which models there are."""
    lease.stopping.clear()
    send("workers.jobs.sweep.sweep")
    ask_for_catalogue()


@worker_shutting_down.connect
def end(**_: Any) -> None:
    """Celery cannot stop a thread: rounds under way see this flag, and the next claim continues them."""
    lease.stopping.set()
