"""Rows that one process at a time works on, jobs and label checks: claimed by compare-and-set, kept by a heartbeat, and
taken from a worker that fell silent. Runs have leases instead (`lease`), since theirs guard each step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.db.models import Q

from experiments.core.clock import tell_time
from experiments.models import Job, LabelCheck
from workers.jobs import lease
from workers.jobs.routine import Routine

Held = type[Job] | type[LabelCheck]
"""What has a status, of which "queued" and "running" are two, and the time of its last beat."""
SILENCE = timedelta(seconds=60)
"""A row of which nothing was heard for so long is anybody's."""
MAX_RECOVERED = 100
"""Rows of a kind that one recovery has done again."""


def claim(rows: Held, pk: int, *others: str, **changed: Any) -> bool:
    """Take a row that is queued, in one of `others`, or whose worker fell silent, with columns changed; False if it is
    done, or somebody else is at it."""
    lost = Q(status="running", beat__lt=tell_time() - SILENCE)
    free = rows.objects.filter(lost | Q(status__in=("queued", *others)), pk=pk)
    return bool(free.update(status="running", beat=tell_time(), **changed))


@contextmanager
def keep(rows: Held, pk: int) -> Iterator[None]:
    """Tell within the block that somebody is at the row."""
    running = rows.objects.filter(pk=pk, status="running")

    def renew() -> bool:
        running.update(beat=tell_time())
        return True

    with Routine(f"heartbeat-{rows._meta.model_name}-{pk}", lease.HEARTBEAT, renew):
        yield


def recover(rows: Held, ask: Callable[[int], None]) -> None:
    """Ask again for rows whose worker died, or whose message Redis may have lost; doing that twice is harmless."""
    silent = rows.objects.filter(beat__lt=tell_time() - SILENCE)
    silent.filter(status="running").update(status="queued")
    for pk in list(silent.filter(status="queued").values_list("pk", flat=True)[:MAX_RECOVERED]):
        rows.objects.filter(pk=pk, status="queued").update(beat=tell_time())
        ask(pk)
