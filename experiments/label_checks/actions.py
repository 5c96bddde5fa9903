"""What may be done: a label, or what a run concluded, is checked."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Q

from experiments.core import audit
from experiments.core.actors import Actor
from experiments.core.audit import Verb
from experiments.core.errors import InvalidInput, StateConflict
from experiments.core.params import clean_line
from experiments.label_checks import requests
from experiments.label_checks.questions import MOST_JUDGES
from experiments.models import LabelCheck, Role, Run, Unit

STARTS = Role.RESEARCHER
"""Who has labels checked: it may cost money."""
LABEL_CHARS = 1_000


@transaction.atomic
def check_label(by: Actor, unit: Unit, text: str, people: int = 0) -> LabelCheck:
    """The label check of a unit, asked for unless it is there. The labels of that text are given it. `people`: how
    many judge each image, 0 for the usual judge."""
    by.require(STARTS)
    _require_judges(people)
    words = clean_line(text)
    if not words or len(words) > LABEL_CHARS:
        raise InvalidInput(f"Write a label of 1 to {LABEL_CHARS:,} characters.", "label")
    method = requests.choose_method(unit.layer.model.name, people=people)
    check = requests.request_check(unit, words, method)
    unit.labels.filter(Q(label_check=None) | Q(label_check__split=""), text=text).update(label_check=check)
    audit.record(by, Verb.LABEL_CHECKED, check)
    return check


@transaction.atomic
def check_run(by: Actor, run: Run, people: int = 0) -> LabelCheck:
    """The check of what a run concluded; `people` as in `check_label`. Raises StateConflict where there is nothing to
    check."""
    by.require(STARTS)
    _require_judges(people)
    if not run.has_ended:
        raise StateConflict(f"Run {run.pk} has not ended: its conclusion is checked when there is one.")
    check = requests.request_check_of(run, people=people)
    if check is None:
        raise StateConflict(
            f"Run {run.pk} concluded no label of a unit that the catalogue has: nothing can be checked."
        )
    audit.record(by, Verb.LABEL_CHECKED, check, run=run.pk)
    return check


def _require_judges(people: int) -> None:
    if not 0 <= people <= MOST_JUDGES:
        raise InvalidInput(f"{people} people for each image: ask 1 to {MOST_JUDGES}.", "judges")
