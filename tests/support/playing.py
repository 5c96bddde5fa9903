"""A worker's thread that plays whatever runs wait, for the length of a block."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connections

from workers.jobs import claims, lease

PATIENCE = 60.0
"""Seconds in which the round under way has to end."""


@contextmanager
def playing() -> Iterator[None]:
    """Play as a worker does, round by round."""
    over = threading.Event()
    thread = threading.Thread(target=_play_all, args=(over,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(PATIENCE)
        assert not thread.is_alive(), "a round did not end"


def _play_all(over: threading.Event) -> None:
    from workers.jobs.run_round import execute_round

    try:
        while not over.wait(0.05):
            for key in list(claims.list_claimable().values_list("pk", flat=True)):
                if claimed := lease.claim(key):
                    with lease.hold_lease(claimed):
                        execute_round(claimed, over)
    finally:
        connections.close_all()
