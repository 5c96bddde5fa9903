"""Create the start of a fork: copy what its parent did up to a round, in one transaction.

Copies get the time of the fork; the event `forked` after them names the parent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from django.db import transaction
from django.utils import timezone

from experiments.core import transcript
from experiments.core.transcript import ImportedEvent
from experiments.models import Run
from workers.errors import LeaseLost, RequestError
from workers.jobs.run_log import DatabaseRunLog
from workers.record.events import ExperimentEnded, Forked, Note, Payload, Reminder, Replied, Started
from workers.record.limits import Usage

COPIED = ("reply", "experiment", "result", "reminder", "note", "graded")


def record_beginning(run: Run, run_log: DatabaseRunLog, first: Started) -> None:
    """Record the start of a fork, completely or not at all, and refresh `run`.

    Raises RequestError if the parent was deleted, LeaseLost.
    """
    if run.parent is None:
        raise RequestError("The run that this one was to be forked from is gone, and its rounds with it.")
    with transaction.atomic():
        # Another worker may have taken the run over
        row = Run.objects.select_for_update().get(pk=run.pk)
        if row.fence != run.fence or row.has_ended:
            raise LeaseLost(f"Run {run.pk} is held by another worker, or has ended.")
        # The start is recorded, so claims that failed before it do not count.
        row.claims = 0
        transcript.replay(row, steps(row, run.parent, first))()
    run.refresh_from_db(fields=["started", "rounds", "experiment_count", "versions"])
    run_log.record_copied()


def steps(run: Run, parent: Run, first: Started) -> Iterator[ImportedEvent]:
    """Yield the events of the start, in order."""
    plan, number = run.fork_plan, run.fork_round or 0
    yield step("started", first)
    yield from copy_events(parent, plan["upto"], run.last_seq)
    who, changes = plan["who"], plan.get("changes", {})
    yield step("forked", Forked(number, who, parent.pk, changes))
    if text := plan.get("note"):
        yield step("note", Note(number, who, text))


def step(kind: str, payload: Payload) -> ImportedEvent:
    return ImportedEvent(kind, payload, timezone.now())


def copy_events(parent: Run, upto: int, last: int) -> Iterator[ImportedEvent]:
    """Yield the parent's events up to number `upto`. `last` is the number of the fork's latest event."""
    # Programs continue from what the parent's experiments left.
    states = dict(parent.experiments.values_list("number", "state"))
    heard: dict[int, int] = {}
    for event in parent.events.filter(kind__in=COPIED, seq__lte=upto).order_by("seq").iterator():
        if getattr(event.content, "reason", "") == "final_answer":  # The fork has its own limits
            continue
        last += 1
        heard[event.seq] = last
        state = bytes(states.get(event.number, b"")) if event.kind == "result" else b""
        yield ImportedEvent(event.kind, _copy_payload(event.content, heard), timezone.now(), state)


def _copy_payload(payload: Payload, numbers: dict[int, int]) -> Payload:
    """Return the payload without usage. `heard`, the last event its author knew, gets the number in the fork."""
    match payload:
        case Replied() if payload.heard:
            # The note it had heard may have been left out: then the last copied one before it.
            known = (new for old, new in numbers.items() if old <= payload.heard)
            return replace(payload, usage=Usage(), heard=max(known, default=min(numbers.values()) - 1))
        case Replied() | ExperimentEnded() | Reminder():
            # Usage counts for the parent, which paid for it.
            return replace(payload, usage=Usage())
    return payload
