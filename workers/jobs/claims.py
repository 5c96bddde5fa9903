"""Choose the run whose round a free thread plays next: the queue whose turn it is, then a run whose model is loaded.

The database is the queue, so threads on any number of machines can claim at once. `turns` defines the order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Least

from experiments.core.clock import database_now
from experiments.models import Run, RunQueue
from workers.jobs import lease, turns
from workers.record.statuses import ACTIVE

MAX_ALIKE = 10
"""Maximum number of runs in a row that a thread takes because it knows them or their model."""
_MAX_TRIES = 50
"""Number of turns that other threads may take first before this thread waits."""


class Claimer:
    """Claims runs for one thread.

    `held` returns the vision models loaded in this process, latest use first; `recent` the runs that it played
    lately, whose
    images and exemplars are in memory.
    """

    def __init__(self, held: Callable[[], Sequence[str]], recent: Callable[[], Sequence[int]] = tuple) -> None:
        self._held, self._recent = held, recent
        self._alike = 0

    def claim(self) -> Run | None:
        """Return the next run, claimed for this thread; None if no run is waiting."""
        for run_queue in _take_turns():
            if run := self._claim_of(run_queue):
                return run
        return None

    def _claim_of(self, run_queue: int) -> Run | None:
        """Return a run of a queue: one played lately or with a loaded model, up to `MAX_ALIKE` in a row; else the first
        in order."""
        # Loading another model takes seconds, but other runs of the queue must not starve
        if self._alike < MAX_ALIKE:
            recent = self._recent()
            # A run played lately spares more than a loaded model: its images and exemplars are in memory too.
            if recent and (run := claim_first(list_claimable().filter(run_queue=run_queue, pk__in=recent))):
                self._alike += 1
                return run
            for model in self._held():
                if run := claim_first(list_claimable().filter(run_queue=run_queue, model=model)):
                    self._alike += 1
                    return run
        self._alike = 0
        return claim_first(list_claimable().filter(run_queue=run_queue))


def list_claimable() -> QuerySet[Run]:
    """Return runs that a worker may take: active, due, and without a valid lease."""
    # By the clock of the database: those of the machines may differ.
    free = Q(lease_expires__isnull=True) | Q(lease_expires__lte=database_now())
    return Run.objects.filter(free, status__in=ACTIVE, due__lte=database_now())


def charge_queue(run: Run, seconds: float) -> None:
    # In the database, since several threads charge the same queue.
    """Charge the run's queue for a round, in seconds."""
    if run.run_queue_id is not None:
        RunQueue.objects.filter(pk=run.run_queue_id).update(deficit=F("deficit") - seconds)


def _take_turns() -> Iterator[int]:
    """Yield queues whose turn this thread took, until no queue has a claimable run."""
    # Bounded: with many threads a turn may be taken again and again.
    for _ in range(_MAX_TRIES):
        line = _line_up()
        if not line:
            return
        if (run_queue := _take_turn(line)) is not None:
            yield run_queue


def _line_up() -> list[RunQueue]:
    """Return queues with claimable runs, least recently served first; those of sweeps only if no other waits."""
    waiting = list_claimable().filter(run_queue=OuterRef("pk"))
    run_queues = list(RunQueue.objects.filter(Exists(waiting), enabled=True).order_by("last_served", "pk"))
    # People wait in front of a screen, sweeps run in the background
    return [each for each in run_queues if each.sweep_id is None] or run_queues


def _take_turn(line: Sequence[RunQueue]) -> int | None:
    """Take the turn of the next queue and return its key; None if another thread was faster."""
    place, cycle = turns.pick_queue([turns.QueueState(each.pk, each.deficit, each.weight) for each in line])
    served = line[place]
    # Compare-and-set: the update matches only if no other thread has visited the queue
    mine = RunQueue.objects.filter(pk=served.pk, last_served=served.last_served)
    if not mine.update(last_served=database_now(), deficit=_grant_deficit(cycle)):
        return None
    # Queues before the served one were visited `cycle` times in vain, those after it once less
    passed = RunQueue.objects.filter(pk__in=[each.pk for each in line[:place]])
    behind = RunQueue.objects.filter(pk__in=[each.pk for each in line[place + 1 :]])
    if place:
        passed.update(last_served=database_now(), deficit=_grant_deficit(cycle))
    if cycle > 1 and line[place + 1 :]:
        behind.update(deficit=_grant_deficit(cycle - 1))
    return served.pk


def _grant_deficit(visits: int) -> Least:
    """Return the deficit after this many visits. A queue saves at most one grant."""
    grant = turns.QUANTUM * F("weight")
    # A queue that waits long would otherwise save up for a burst that blocks the others.
    return Least(F("deficit") + Value(float(visits)) * grant, grant)


def claim_first(runs: QuerySet[Run]) -> Run | None:
    """Claim the first run that no other thread is claiming."""
    with transaction.atomic():
        # Running before queued runs, so that started work ends first; within a sweep in its order.
        in_order = runs.order_by("-status", "sweep_place", "pk").values_list("pk", flat=True)
        # Skips rows that other threads are claiming, instead of waiting for them.
        found = in_order.select_for_update(skip_locked=True).first()
        return lease.claim(found) if found is not None else None
