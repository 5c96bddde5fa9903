"""List what waits for judges: open trials, and label checks that ask people about images."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.urls import reverse

from experiments.label_checks.desk import CheckDesk, list_asking
from experiments.pairwise.desk import TrialDesk
from experiments.pairwise.lists import trials

MAX_ROWS = 10
"""Maximum number of rows of each kind."""


@dataclass(frozen=True)
class OpenDesk:
    """An open row.

    `name` is the name of the trial, or the label that images may show. `total` counts its items, `left` those that
    one person has left.
    """

    kind: str
    pk: int
    name: str
    item: str
    created: datetime
    total: int
    left: int
    address: str
    """URL of the row itself."""

    @property
    def desk(self) -> str:
        """Return the URL of its judging page."""
        return reverse("judging", args=[self.kind, self.pk])


def list_waiting(user: User, *, only_left: bool = False) -> list[OpenDesk]:
    """List open desks, trials before checks, newest first. `only_left` drops those that this person has finished."""
    # A trial that wants no human judges is judged by models alone.
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
    # Checks are filtered here, since the database does not count what one person has left of them.
    return [each for each in found if each.left or not only_left]
