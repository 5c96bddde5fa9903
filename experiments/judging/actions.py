"""Actions of judging: answer, undo and close."""

from __future__ import annotations

import math

from django.db import transaction

from experiments.core import audit
from experiments.core.actors import Actor
from experiments.core.errors import InvalidInput, StateConflict
from experiments.judging.desk import DESKS
from experiments.models import Role

MAX_SECONDS = 3600.0
"""Longest plausible time for one answer, in seconds. A longer one means a break; the time is then not stored."""


@transaction.atomic
def answer(actor: Actor, kind: str, pk: int, item_id: int, said: str, seconds: float | None = None) -> None:
    """Store a person's answer to an item. Sending the same answer again changes nothing.

    Raises InvalidInput for an unknown answer. Raises StateConflict if the item belongs to another row, if the person
    has given a different answer, or if judging is closed.
    """
    actor.require(Role.REVIEWER)
    known = DESKS[kind]
    if said not in known.ANSWERS:
        choices = ", ".join(f"“{each}” ({words})" for each, words in known.ANSWERS.items())
        raise InvalidInput(f"“{said[:40]}” is not an answer. Choose one of: {choices}.", "answer")
    # Locked, so that a trial is not closed between this check and the write
    desk = known.lock_open(pk)
    item = desk.find_item(item_id)
    if item is None:
        raise StateConflict(f"This {desk.ITEM} does not belong to this {desk.NOUN}.")
    # The time comes from the browser's clock, so it may be anything.
    plausible = seconds is not None and math.isfinite(seconds) and 0 <= seconds <= MAX_SECONDS
    same, new = desk.keep(actor.person, item, said, seconds if plausible else None)
    if not same:
        words = f"You have already judged this {desk.ITEM}. Undo removes your last answer."
        raise StateConflict(words)
    # A repeated request must not be recorded twice, nor resume a check twice.
    if new:
        audit.record(actor, desk.GIVEN, item, **{desk.NOUN: pk})
        desk.follow(item)


@transaction.atomic
def undo(actor: Actor, kind: str, pk: int) -> bool:
    """Delete the person's last answer. Returns False if there is none. Raises StateConflict if judging is closed."""
    actor.require(Role.REVIEWER)
    desk = DESKS[kind].lock_open(pk)
    if (last := desk.find_last(actor.person)) is None:
        return False
    given, item = last
    # Before the deletion, of the item, which stays.
    audit.record(actor, desk.UNDONE, item, **{desk.NOUN: pk})
    given.delete()
    desk.follow(None)
    return True


@transaction.atomic
def close(actor: Actor, kind: str, pk: int) -> None:
    """Close judging. Raises PermissionDenied for a role that is too low, StateConflict if it is closed already or
    too early."""
    actor.require(DESKS[kind].CLOSES)
    # The lock waits for answers that are being stored.
    DESKS[kind].lock_open(pk).close(actor)
