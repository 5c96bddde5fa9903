"""What people may do with images that a label check asks them about: answer, take an answer back, finish."""

from __future__ import annotations

import math

from django.db import transaction

from experiments.core import audit
from experiments.core.actors import Actor
from experiments.core.audit import Verb
from experiments.core.clock import tell_time
from experiments.core.errors import InvalidInput, StateConflict
from experiments.core.queue import ask_for
from experiments.label_checks.actions import STARTS
from experiments.label_checks.questions import describe_waiting, list_open
from experiments.models import CheckStatus, LabelCheck, PresenceAnswer, PresenceChoice, Role

LONGEST_SECONDS = 3600.0
"""Above this somebody was away; nothing is kept."""


@transaction.atomic
def answer(by: Actor, check_id: int, question_id: int, said: str, seconds: float | None = None) -> PresenceAnswer:
    """Keep what a person says of an image: "yes", "no" or "unsure". The same answer twice is one. The last one that was
    lacking has a worker go on with the check."""
    by.require(Role.REVIEWER)
    if said not in PresenceChoice.values:
        words = f"“{said[:40]}” is no answer: say yes, no, or that you cannot tell."
        raise InvalidInput(words, "answer")
    check = _lock_open(check_id)
    question = check.questions.filter(pk=question_id).first()
    if question is None:
        raise StateConflict("This image is not of this check.")
    plausible = seconds is not None and math.isfinite(seconds) and 0 <= seconds <= LONGEST_SECONDS
    known = {"answer": said, "seconds": seconds if plausible else None}
    row, new = PresenceAnswer.objects.get_or_create(question=question, user=by.person, defaults=known)
    if row.answer != said:
        raise StateConflict("You have judged this image before, and that answer stands. Undo takes the last one back.")
    if new:
        audit.record(by, Verb.IMAGE_JUDGED, question, check=check_id)
    if list_open(check).exists():
        _say_how_far(check)
    else:
        _go_on(check)
    return row


@transaction.atomic
def undo_answer(by: Actor, check_id: int) -> PresenceAnswer | None:
    """Take the person's last answer back; None if there is none."""
    by.require(Role.REVIEWER)
    check = _lock_open(check_id)
    own = PresenceAnswer.objects.filter(question__label_check=check, user=by.person)
    last = own.select_related("question").last()
    if last is not None:
        audit.record(by, Verb.JUDGEMENT_UNDONE, last.question, check=check_id)
        PresenceAnswer.objects.filter(pk=last.pk).delete()
        _say_how_far(check)
    return last


@transaction.atomic
def finish(by: Actor, check_id: int) -> LabelCheck:
    """Ask nobody any more, and have a worker measure the label by the images judged so far: a random part of all, since
    they are offered by lot. For who asked for the check, and admins. Raises PermissionDenied, and StateConflict
    before anybody has judged a natural image."""
    by.require(STARTS)
    check = _lock_open(check_id)
    by.require_own("asked for this check", *audit.list_authors(check, Verb.LABEL_CHECKED))
    judged = check.questions.filter(expected=None, answers__isnull=False).distinct().count()
    if not judged:
        raise StateConflict("Nobody has judged a natural image yet, so there is nothing to measure the label by.")
    audit.record(by, Verb.JUDGING_FINISHED, check, judged=judged)
    _go_on(check)
    return check


def _lock_open(pk: int) -> LabelCheck:
    """The check, so that nobody finishes it meanwhile. Raises StateConflict if it asks nobody any more."""
    check = LabelCheck.objects.select_for_update().get(pk=pk)
    if not check.waits_for_people:
        raise StateConflict("Nobody is asked about images of this check any more: its answers are complete.")
    return check


def _say_how_far(check: LabelCheck) -> None:
    LabelCheck.objects.filter(pk=check.pk, status=CheckStatus.UNFINISHED).update(reason=describe_waiting(check))


def _go_on(check: LabelCheck) -> None:
    check.status, check.reason, check.waits_for_people = CheckStatus.QUEUED, "", False
    check.save(update_fields=["status", "reason", "waits_for_people"])
    LabelCheck.objects.filter(pk=check.pk).update(beat=tell_time())
    ask_for("check_label", check.pk)
