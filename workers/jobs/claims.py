"""Which run a free thread plays next: whose turn it is, and of that flow a run whose model is loaded already.

The database is the queue. A flow's turn is taken by compare-and-set, a run by a row lock that others skip, so any
number of threads on any number of machines claim side by side; see `turns` for who comes when.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Least

from experiments.core.clock import tell_time
from experiments.models import Flow, Run
from workers.jobs import lease, turns
from workers.record.statuses import ACTIVE

MAX_ALIKE = 10
"""Runs that a thread takes one after another because it knows them or their model, while others of the flow wait."""
_MAX_TRIES = 50
"""Turns that others may take first before a thread looks again later."""


class Claimer:
    """Claims for one thread. `held` names the vision models that its process has loaded, latest use first; `recent`
    are runs that it played lately, of which it remembers images and exemplars."""

    def __init__(self, held: Callable[[], Sequence[str]], recent: Callable[[], Sequence[int]] = tuple) -> None:
        self._held, self._recent = held, recent
        self._alike = 0

    def claim(self) -> Run | None:
        """The next run, held by this thread; None if there is nothing to claim."""
        for flow in _take_turns():
            if run := self._claim_of(flow):
                return run
        return None

    def _claim_of(self, flow: int) -> Run | None:
        """A run of a flow: one played here lately, or whose model is loaded, but at most so many in a row; else
        whichever is first."""
        if self._alike < MAX_ALIKE:
            recent = self._recent()
            if recent and (run := claim_first(list_claimable().filter(flow=flow, pk__in=recent))):
                self._alike += 1
                return run
            for model in self._held():
                if run := claim_first(list_claimable().filter(flow=flow, model=model)):
                    self._alike += 1
                    return run
        self._alike = 0
        return claim_first(list_claimable().filter(flow=flow))


def list_claimable() -> QuerySet[Run]:
    """Runs that a worker may take: active, due, and held by nobody who is alive."""
    free = Q(lease_expires__isnull=True) | Q(lease_expires__lte=tell_time())
    return Run.objects.filter(free, status__in=ACTIVE, due__lte=tell_time())


def settle(run: Run, seconds: float) -> None:
    """Charge the run's flow for what its round took of a thread, in seconds."""
    if run.flow_id is not None:
        Flow.objects.filter(pk=run.flow_id).update(deficit=F("deficit") - seconds)


def _take_turns() -> Iterator[int]:
    """Flows whose turn this thread has taken, one by one, until nobody has anything to claim."""
    for _ in range(_MAX_TRIES):
        line = _line_up()
        if not line:
            return
        if (flow := _take_turn(line)) is not None:
            yield flow


def _line_up() -> list[Flow]:
    """Flows that have something to claim, least recently visited first: those of people, or where there is none those
    of sweeps."""
    waiting = list_claimable().filter(flow=OuterRef("pk"))
    flows = list(Flow.objects.filter(Exists(waiting), open=True).order_by("visited", "pk"))
    return [each for each in flows if each.sweep_id is None] or flows


def _take_turn(line: Sequence[Flow]) -> int | None:
    """Visit flows until one is served; its key, or None if somebody else has visited it meanwhile."""
    place, cycle = turns.find_turn([turns.Place(each.pk, each.deficit, each.weight) for each in line])
    served = line[place]
    mine = Flow.objects.filter(pk=served.pk, visited=served.visited)
    if not mine.update(visited=tell_time(), deficit=_granted(cycle)):
        return None
    passed = Flow.objects.filter(pk__in=[each.pk for each in line[:place]])
    behind = Flow.objects.filter(pk__in=[each.pk for each in line[place + 1 :]])
    if place:
        passed.update(visited=tell_time(), deficit=_granted(cycle))
    if cycle > 1 and line[place + 1 :]:
        behind.update(deficit=_granted(cycle - 1))
    return served.pk


def _granted(visits: int) -> Least:
    """What a deficit is after so many visits; nobody saves up more than one grant."""
    grant = turns.QUANTUM * F("weight")
    return Least(F("deficit") + Value(float(visits)) * grant, grant)


def claim_first(runs: QuerySet[Run]) -> Run | None:
    """The first of these that nobody else takes at this moment: those under way before those that wait, those of a
    sweep in its order."""
    with transaction.atomic():
        in_order = runs.order_by("-status", "sweep_place", "pk").values_list("pk", flat=True)
        found = in_order.select_for_update(skip_locked=True).first()
        return lease.claim(found) if found is not None else None
