"""What waits for somebody to judge it: open trials, and label checks that ask people about images."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.urls import reverse

from experiments.label_checks.desk import CheckDesk, list_asking
from experiments.pairwise.desk import TrialDesk
from experiments.pairwise.lists import trials

MAX_ROWS = 10
"""Rows of either kind, at most."""


@dataclass(frozen=True)
class OpenDesk:
    """An open row. `name`: of the trial, or the label that images may show; `total`: its items; `left`: those that are
    left for one person."""

    kind: str
    pk: int
    name: str
    item: str
    created: datetime
    total: int
    left: int
    address: str
    """Of the row itself."""

    @property
    def desk(self) -> str:
        """The address where it is judged."""
        return reverse("judging", args=[self.kind, self.pk])


def list_waiting(user: User, *, only_left: bool = False) -> list[OpenDesk]:
    """What is open, trials before checks, the newest first; `only_left`: that of which something is left for this
    person."""
    rows = trials(user).filter(closed=None).exclude(judges_wanted=0)
    found = [
        *(
            OpenDesk(
                "trials", row.pk, row.name, TrialDesk.ITEM, row.created, row.size, row.left, row.get_absolute_url()
            )
            for row in (rows.filter(left__gt=0) if only_left else rows)[:MAX_ROWS]
        ),
        *(
            OpenDesk("checks", row.pk, row.text, CheckDesk.ITEM, row.created, total, left, row.get_absolute_url())
            for row, total, left in list_asking(user, MAX_ROWS)
        ),
    ]
    return [each for each in found if each.left or not only_left]
