"""Actions on label checks: check a label or a run's conclusion, and finish asking people."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Q

from experiments.core import audit
from experiments.core.actors import Actor
from experiments.core.audit import Verb
from experiments.core.clock import database_now
from experiments.core.errors import InvalidInput, StateConflict
from experiments.core.params import clean_line
from experiments.core.queue import ask_for
from experiments.label_checks import requests
from experiments.label_checks.questions import MAX_JUDGES, describe_waiting
from experiments.models import CheckStatus, LabelCheck, Role, Run, Unit

STARTS = Role.RESEARCHER
"""Minimum role to check labels, which may cost money."""
LABEL_CHARS = 1_000


@transaction.atomic
def check_label(actor: Actor, unit: Unit, text: str, people: int = 0) -> LabelCheck:
    """Return the label check of a unit, starting it if needed, and assign it to labels with this text. `people` is the
    number of judges per image, 0 for the default judge."""
    actor.require(STARTS)
    _require_judges(people)
    words = clean_line(text)
    if not words or len(words) > LABEL_CHARS:
        raise InvalidInput(f"Write a label of 1 to {LABEL_CHARS:,} characters.", "label")
    method = requests.choose_method(unit.layer.model.name, people=people)
    check = requests.request_check(unit, words, method)
    # Checks without a split are outdated, see `requests`
    unit.labels.filter(Q(label_check=None) | Q(label_check__split=""), text=text).update(label_check=check)
    audit.record(actor, Verb.LABEL_CHECKED, check)
    return check


@transaction.atomic
def check_run(actor: Actor, run: Run, people: int = 0) -> LabelCheck:
    """Return the check of a run's conclusion. `people` as in `check_label`. Raises StateConflict if there is nothing to
    check."""
    actor.require(STARTS)
    _require_judges(people)
    if not run.has_ended:
        raise StateConflict(f"Run {run.pk} has not ended: its conclusion is checked when there is one.")
    check = requests.request_check_of(run, people=people)
    if check is None:
        raise StateConflict(
            f"Run {run.pk} concluded no label of a unit that the catalogue has: nothing can be checked."
        )
    audit.record(actor, Verb.LABEL_CHECKED, check, run=run.pk)
    return check


def _require_judges(people: int) -> None:
    if not 0 <= people <= MAX_JUDGES:
        raise InvalidInput(f"{people} people for each image: ask 1 to {MAX_JUDGES}.", "judges")


# --- judging by people ---


@transaction.atomic
def finish_asking(actor: Actor, check_id: int) -> None:
    """Stop asking people and measure the label by the images judged so far. Images are offered in random order, so
    these are a random sample. Only for the person who started the check, and admins. Raises PermissionDenied, and
    StateConflict if no natural image has been judged."""
    actor.require(STARTS)
    check = lock_asking(check_id)
    actor.require_own("asked for this check", *audit.list_authors(check, Verb.LABEL_CHECKED))
    # Known cases measure the judges, not the label
    judged = check.questions.filter(expected=None, answers__isnull=False).distinct().count()
    if not judged:
        raise StateConflict("No natural image has been judged yet, so there is nothing to measure.")
    audit.record(actor, Verb.JUDGING_FINISHED, check, judged=judged)
    resume_check(check)


def lock_asking(pk: int) -> LabelCheck:
    """Return the check, locked so that it cannot be finished meanwhile. Raises StateConflict if people are no longer
    asked."""
    check = LabelCheck.objects.select_for_update().get(pk=pk)
    if not check.waits_for_people:
        raise StateConflict("The answers of this check are complete: no more images are judged.")
    return check


def update_progress_message(check: LabelCheck) -> None:
    """Update the check's message about how many images are judged."""
    LabelCheck.objects.filter(pk=check.pk, status=CheckStatus.UNFINISHED).update(reason=describe_waiting(check))


def resume_check(check: LabelCheck) -> None:
    """Resume a check with people's answers."""
    check.status, check.reason, check.waits_for_people = CheckStatus.QUEUED, "", False
    check.save(update_fields=["status", "reason", "waits_for_people"])
    # A fresh heartbeat, or the recovery job would enqueue it as well
    LabelCheck.objects.filter(pk=check.pk).update(beat=database_now())
    ask_for("check_label", check.pk)
