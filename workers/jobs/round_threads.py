"""Threads of a worker that play rounds: each claims a run, plays one round of it, and claims again.

A bell (`core.queue.wake_workers`) wakes idle threads.
"""

from __future__ import annotations

import logging
import random
import threading
from collections import deque
from collections.abc import Callable, Sequence

from django.db import DatabaseError, close_old_connections, connection

from experiments.core import code_version
from experiments.models import Run
from workers.jobs import lease, rounds
from workers.jobs.claims import Claimer
from workers.jobs.kept_states import MAX_RECENT

log = logging.getLogger(__name__)

LOOK_SECONDS, MAX_LOOK_SECONDS = 1.0, 5.0
"""Interval between checks of an idle thread in seconds: at first, and at most."""
STOP_SECONDS = 20.0
"""Time for current rounds to stop when the worker shuts down, in seconds."""


players: list[RoundThreads] = []
"""The threads of this process, after its worker is ready; none in a terminal."""


class Bell:
    """Wakes all waiting threads. A ring without waiting threads is not remembered."""

    def __init__(self) -> None:
        self._turn = threading.Condition()

    def ring(self) -> None:
        with self._turn:
            self._turn.notify_all()

    def wait(self, seconds: float) -> bool:
        """Wait for a ring. Return False after `seconds` without one."""
        with self._turn:
            return self._turn.wait(seconds)


class RoundThreads:
    """`count` threads that play rounds. `began` is called with the key and run of each round, `ended` with the key."""

    def __init__(
        self,
        count: int,
        held: Callable[[], Sequence[str]],
        began: Callable[[str, int], None],
        ended: Callable[[str], None],
    ) -> None:
        self.bell = Bell()
        self._held = held
        self._began = began
        self._ended = ended
        self._recent: deque[int] = deque(maxlen=MAX_RECENT)
        self._threads = [threading.Thread(target=self._go_on, name=f"rounds-{n}", daemon=True) for n in range(count)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Wait until current rounds have stopped. `lease.stopping` must be set."""
        self.bell.ring()
        for thread in self._threads:
            thread.join(STOP_SECONDS)

    def _go_on(self) -> None:
        claimer, wait = Claimer(self._held, self._list_recent), LOOK_SECONDS
        try:
            while not lease.stopping.is_set():
                # Django closes broken connections only around requests
                close_old_connections()
                run = self._claim(claimer)
                if run is not None:
                    self._play(run)
                    wait = LOOK_SECONDS
                # Random, so that idle threads of many workers do not query at the same moment
                elif self.bell.wait(wait * random.uniform(0.75, 1.25)):
                    wait = LOOK_SECONDS
                else:
                    # Looks by itself too, less and less often, because a ring may be lost.
                    wait = min(MAX_LOOK_SECONDS, wait * 1.5)
        finally:
            connection.close()

    def _claim(self, claimer: Claimer) -> Run | None:
        """Return the next run; None also if the code does not fit the database's version, or the database is down."""
        try:
            return claimer.claim() if not code_version.explain_difference() else None
        except DatabaseError as error:
            log.warning("Nothing could be claimed, it is tried again: %s", error)
            return None

    def _list_recent(self) -> Sequence[int]:
        return sorted({*self._recent.copy()})

    def _play(self, run: Run) -> None:
        key = f"{run.pk}-{run.fence}"
        # Its images and exemplars are in memory now
        self._recent.append(run.pk)
        self._began(key, run.pk)
        try:
            rounds.execute_claimed(run)
        except DatabaseError as error:
            log.warning("A round of run %s was broken off, it is claimed again: %s", run.pk, error)
        except Exception:
            log.exception("A round of run %s failed; it is claimed again.", run.pk)
        finally:
            self._ended(key)
