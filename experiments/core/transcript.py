"""Append events to a run and read them back. This module is the only writer of events.

It saves the event, and rings the bell on commit. In the same transaction `projections` updates the rows that pages
list and count (`Run`, `Experiment`, `Observation`, …). Called by the views that start and steer runs, by the
workers' run log, and by imports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction

from experiments.core import notify, projections, sweep_totals
from experiments.core.params import clean_text
from experiments.core.row_writers import Bulk, Direct
from experiments.models import Event, Run
from workers.errors import LeaseLost
from workers.record.decoding import encode
from workers.record.events import KINDS, Ended, Payload, Resumed, kind_of
from workers.record.statuses import REOPENABLE, Status

_SUSPENDING = [kind for kind, row in KINDS.items() if row.suspends]
_RESUMABLE = REOPENABLE | {Status.WAITING}


@dataclass(frozen=True)
class ImportedEvent:
    """An event of a run from elsewhere. `state` is what an experiment leaves to the next."""

    kind: str
    payload: Payload
    time: datetime
    state: bytes = b""


class RunEnded(Exception):
    """An event was appended to a run whose end is already recorded."""


def append(
    run_id: int,
    kind: str,
    payload: Payload,
    *,
    fence: int | None = None,
    seconds: float | None = None,
    state: bytes = b"",
) -> Event:
    """Record one event with the next `seq`, whole or not at all.

    `fence` is the writer's fencing number; None for the web, which holds no lease. `seconds` is the work done on the
    run so far. `state` is what an experiment leaves to the next. Raises LeaseLost, RunEnded, Run.DoesNotExist.
    """
    with transaction.atomic():
        # Lock the row: the web process and a worker may append at the same time.
        run = Run.objects.select_for_update().get(pk=run_id)
        if fence is not None and run.fence != fence:
            # A worker that was taken for dead may still be alive and write.
            raise LeaseLost(f"Run {run_id} is held by another worker: fence {run.fence}, not {fence}.")
        if run.has_ended and not _may_follow(run, kind):
            raise RunEnded(f"Run {run_id} has ended ({run.status}): nothing can follow.")
        if kind_of(kind).suspends and run.cancel_requested:  # no worker is left that would end it
            kind, payload = "cancelled", Ended("Stopped by a person.")
        before = sweep_totals.RunTotals.of(run)
        run.last_seq += 1
        # An event is progress: claims are counted since the last one.
        run.claims = 0
        run.seconds = run.seconds if seconds is None else seconds
        event = Event.objects.create(run=run, seq=run.last_seq, kind=kind, payload=strip_unstorable(encode(payload)))
        projections.update_rows(run, event, state, Direct(run))
        run.save()
        sweep_totals.update_totals(run, before, ends=event.row.ends)
        # After the commit: viewers that look earlier do not find the event.
        transaction.on_commit(partial(notify.publish_event, run_id, event.seq))
    return event


def replay(run: Run, steps: Iterable[ImportedEvent]) -> Callable[[], None]:
    """Process the transcript of a run from elsewhere, and return a function that writes it with the run.

    `run` is new and unseen; each event has its own time. Raises ValueError for events after the end or out of order,
    and for what the rows refuse (a number twice, a result without an experiment), with the run's `last_seq` at that
    event.
    """
    # Processing may take long and writes nothing. The write is short, all or nothing in the caller's transaction.
    rows, over = Bulk(run), run.has_ended
    for step in steps:
        run.last_seq += 1
        if over and not _may_follow(run, step.kind):
            raise ValueError("nothing can follow the end")
        event = Event(
            run=run, seq=run.last_seq, kind=step.kind, payload=strip_unstorable(encode(step.payload)), time=step.time
        )
        projections.update_rows(run, event, step.state, rows)
        if step.kind == "started":
            run.started = step.time
        over = run.has_ended
        if over:
            run.ended = step.time
        rows.events.append(event)

    write = rows.ready()

    def save() -> None:
        write()
        transaction.on_commit(partial(notify.publish_event, run.pk, run.last_seq))

    return save


def resume(run_id: int, who: str, *, with_reply: bool = False) -> bool:
    """Queue a suspended run; return False if it is not suspended any more. The caller enqueues it.

    A run that waits for a person's reply resumes only `with_reply`.
    """
    with transaction.atomic():
        # Locked: of two people who resume the run, only one finds it suspended.
        run = Run.objects.select_for_update().get(pk=run_id)
        if run.status not in _RESUMABLE or awaits_reply(run) != with_reply:
            return False
        stopped = None if run.has_ended else last_stop(run)
        append(run_id, "resumed", Resumed(run.rounds if stopped is None else stopped.round or 0, who))
    return True


def _may_follow(run: Run, kind: str) -> bool:
    """True if an event of this kind may follow the end of the run."""
    return kind == "resumed" and run.status in REOPENABLE


def awaits_reply(run: Run) -> bool:
    """True if the run waits for a reply that a person writes."""
    stopped = last_stop(run) if run.status == Status.WAITING else None
    return stopped is not None and stopped.kind == "waiting_for_person"


def last_stop(run: Run) -> Event | None:
    """Return the latest event that suspended the run without ending it."""
    return run.events.filter(kind__in=_SUSPENDING).order_by("-seq").first()


def strip_unstorable(data: Any) -> Any:
    """Return the JSON without what databases refuse: zero bytes and half characters, which programs may print."""
    if isinstance(data, str):
        return clean_text(data)
    if isinstance(data, dict):
        return {key: strip_unstorable(value) for key, value in data.items()}
    return [strip_unstorable(item) for item in data] if isinstance(data, list | tuple) else data


def list_events(run_id: int, seq: int, limit: int = 200) -> Sequence[Event]:
    """Return the run's events with a higher `seq`, in order, at most `limit`."""
    return list(Event.objects.filter(run_id=run_id, seq__gt=seq).order_by("seq")[:limit])
