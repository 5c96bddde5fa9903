"""Control a run under way: pause it, resume it, send it a note, change its limits, stop it.

The run's page, the list of runs, the API and the command line all call this module. Each step is one transaction with
the run's row locked, since a worker may append at the same moment; it is audited in it, and viewers of the run are
notified. Repeating a step has no further effect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import transaction

from experiments.core import access, audit, catalogue, notify, queue, transcript
from experiments.core.actors import Actor
from experiments.core.audit import Verb
from experiments.core.errors import InvalidInput, OutOfDate, StateConflict
from experiments.models import Event, Role, Run
from workers.record import limits as words_of
from workers.record.events import Ended, LimitsChanged, Note, Paused
from workers.record.limits import DEFAULT_LIMITS, Limits
from workers.record.statuses import ACTIVE, REOPENABLE, Status

MAX_CHARS, WHY_CHARS = 4_000, 500
"""Longest note, and longest reason for other limits."""

NewLimits = Mapping[str, Any]


@contextmanager
def _lock_run(actor: Actor, run_id: int) -> Iterator[Run]:
    """Lock the run until the step is done. Raises PermissionDenied, Run.DoesNotExist."""
    if (access.role_of(actor.person) or 0) < Role.RESEARCHER:
        raise PermissionDenied("Steering a run needs the role Researcher.")
    with transaction.atomic():
        run = Run.objects.select_for_update().get(pk=run_id)
        yield run
        # A request to pause or to stop is no event, so the bell is rung here.
        transaction.on_commit(partial(notify.publish_event, run.pk, run.last_seq))


def pause(actor: Actor, run_id: int) -> bool:
    """Pause the run: at once where no worker holds it, else before its next round. False if it is (to be) paused.

    Raises StateConflict.
    """
    with _lock_run(actor, run_id) as run:
        if run.has_ended:
            raise StateConflict(f"{has_ended(run)} There is nothing to pause.")
        if run.status == Status.WAITING:
            raise StateConflict(f"Run {run.pk} stands still already: it waits for a person.")
        if run.cancel_requested:
            raise StateConflict(f"Run {run.pk} is being stopped.")
        if run.status == Status.PAUSED or (run.pause_requested and _is_held(run)):
            return False
        audit.record(actor, Verb.RUN_PAUSED, run)
        if _is_held(run):
            # Its worker pauses it before the next round.
            Run.objects.filter(pk=run.pk).update(pause_requested=actor.name)
        else:
            transcript.append(run.pk, "paused", Paused(run.rounds, actor.name))
    return True


def resume(actor: Actor, run_id: int) -> bool:
    """Resume a run that is (to be) paused, waits, failed or was stopped; False if it is under way.

    Raises StateConflict.
    """
    with _lock_run(actor, run_id) as run:
        # A run that is still to be paused is resumed by taking the request back.
        if run.status in ACTIVE and not run.pause_requested:
            return False
        if run.has_ended and run.status not in REOPENABLE:
            raise StateConflict(f"{has_ended(run)} It cannot go on; fork it to go on from one of its rounds.")
        # What the run needs may have been removed since.
        if unknown := catalogue.find_unknown(run):
            raise StateConflict(f"{unknown} Run {run.pk} cannot go on; fork it with what there is.")
        if run.status in ACTIVE:
            Run.objects.filter(pk=run.pk).update(pause_requested="")
        elif not transcript.resume(run.pk, actor.name):
            raise StateConflict(f"Run {run.pk} waits for the reply that a person writes on its page.")
        else:
            queue.enqueue(run.pk)
        audit.record(actor, Verb.RUN_RESUMED, run)
    return True


def send_note(actor: Actor, run_id: int, text: str) -> Event:
    """Tell the agent something: it reads it as part of its next message. A note repeated at once is sent only once.

    Raises InvalidInput, StateConflict.
    """
    # Browsers send line breaks as \r\n.
    text = text.replace("\r\n", "\n").strip()
    if not text:
        raise InvalidInput("There are no words yet: write the note first.", "text")
    if len(text) > MAX_CHARS:
        words = f"The note has {len(text):,} characters, and at most {MAX_CHARS:,} are taken. Shorten it."
        raise InvalidInput(words, "text")
    with _lock_run(actor, run_id) as run:
        if deaf := _explain_unread_note(run):
            raise StateConflict(deaf)
        # A repeated note is recognised even if the run was paused and resumed in between.
        last = run.events.exclude(kind__in=("paused", "resumed")).order_by("-seq").first()
        note = Note(run.rounds, actor.name, transcript.strip_unstorable(text))
        # A double click, or a request that was sent again.
        if last is not None and last.content == note:
            return last
        event = transcript.append(run.pk, "note", note)
        audit.record(actor, Verb.RUN_NOTED, run, event=event.seq)
    return event


def _explain_unread_note(run: Run) -> str:
    """Say why the run's agent would not read a note, and what to do instead; "" if it would."""
    if run.status in REOPENABLE - {Status.PAUSED}:
        return f"{has_ended(run)} The agent would not read this. Resume the run first, or fork it with this note."
    if run.has_ended:
        return f"{has_ended(run)} The agent would not read this. Fork it from one of its rounds with this note."
    if run.cancel_requested:
        return (
            f"Run {run.pk} is being stopped. The agent would not read this. Fork it with this note once it has stopped."
        )
    # The agent is giving its final answer: it was asked for it, and no limit has changed since.
    last = run.events.filter(kind__in=("reminder", "limits")).order_by("-seq").first()
    if last is not None and getattr(last.content, "reason", "") == "final_answer":
        return (
            f"A limit of run {run.pk} is reached, and the agent is giving its final answer: it would not hear this. "
            "Raise the limit and send it then, or fork the run with this note."
        )
    return ""


def change_limits(actor: Actor, run_id: int, wanted: NewLimits, why: str = "", seen: NewLimits | None = None) -> bool:
    """Change the limits from now on; None for no limit. False if they are the same.

    `seen` are the limits that the user saw. Raises OutOfDate if they have changed since, StateConflict.
    """
    after = {name: wanted.get(name) for name in DEFAULT_LIMITS}
    with _lock_run(actor, run_id) as run:
        before = {name: run.limits.get(name) for name in DEFAULT_LIMITS}
        if run.has_ended:
            raise StateConflict(f"{has_ended(run)} Its limits hold no more; fork it with others.")
        if before == after:
            return False
        if seen is not None and before != {name: seen.get(name) for name in DEFAULT_LIMITS}:
            raise OutOfDate(f"The limits have changed meanwhile. They are now: {words_of.format_limits(before)}.")
        changed = LimitsChanged(run.rounds, actor.name, why.strip(), Limits(**after), Limits(**before))
        transcript.append(run.pk, "limits", changed)
        details = {"before": words_of.format_limits(before), "after": words_of.format_limits(after)}
        audit.record(actor, Verb.RUN_LIMITED, run, why=why.strip(), **details)
    return True


def stop(actor: Actor, run_id: int) -> bool:
    """Ask for the end of a run; one that no worker holds ends at once. Return False if it has ended or is told to."""
    with _lock_run(actor, run_id) as run:
        if run.has_ended or (run.cancel_requested and _is_held(run)):
            return False
        Run.objects.filter(pk=run.pk).update(cancel_requested=True)
        audit.record(actor, Verb.RUN_STOPPED, run)
        if not _is_held(run):
            transcript.append(run.pk, "cancelled", Ended(f"Stopped by {actor.name}."))
    return True


def _is_held(run: Run) -> bool:
    """True if a worker executes it: the worker then reacts to the change."""
    return run.status == Status.RUNNING and run.is_leased()


def has_ended(run: Run) -> str:
    return f"Run {run.pk} has ended ({run.get_status_display().lower()})."


def count_used(run: Run) -> dict[str, Any]:
    """Return how much of each limit the run has used."""
    return {"rounds": run.rounds, "tokens": run.tokens, "cost": run.cost, "seconds": run.seconds}


def list_moves(run: Run) -> list[str]:
    """List what a researcher may do to the run now, by the names of the page's controls."""
    if run.has_ended:
        return ["retry"] if run.status in REOPENABLE else []
    if run.cancel_requested:
        return []
    always = ["note", "limits", "stop"]
    if run.status in ACTIVE:
        return ["keep-going" if run.is_pausing else "pause", *always]
    if run.status == Status.PAUSED:
        return ["resume", *always]
    return always if transcript.awaits_reply(run) else ["try-again", *always]
