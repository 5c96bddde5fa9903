"""A run and its reviews, seen from the run: the verdict, the queues it is in, and who may put it into another."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import AnonymousUser, User

from experiments.core.review_rights import MAKES_QUEUES
from experiments.display import verdicts
from experiments.models import Adjudication, ReviewItem, ReviewQueue, Run
from experiments.models.member import Role
from experiments.reviews import actions

OFFERED = 50
"""Open queues that a run is offered to, the newest."""


def card(run: Run, user: User | AnonymousUser, role: Role) -> dict[str, Any]:
    """What the page of a run shows of its reviews: the verdict with the reason of a final one, the queues, what this
    person may do."""
    assert isinstance(user, User)
    items = list(run.review_items.select_related("queue", "run__owner").order_by("-pk"))
    seen = verdicts.find_verdicts([run], user).get(run.pk)
    return {
        "verdict": seen,
        "final": final(run) if seen and seen.is_final else None,
        "items": items,
        "settles": next((item for item in items if seen and not actions.why_not_settle(user, item)), None),
        "may_put_up": may_put_up(run, user, role),
    }


def final(run: Run) -> Adjudication | None:
    """The final verdict that stands."""
    return Adjudication.objects.filter(item__run=run).select_related("adjudicator", "item__queue").first()


def may_put_up(run: Run, user: User, role: Role) -> bool:
    """Whether this person, who has this role, may have the run reviewed."""
    return run.has_ended and (role == Role.ADMIN or (role >= MAKES_QUEUES and run.owner_id == user.pk))


def list_offered(run: Run) -> list[ReviewQueue]:
    """Open queues that the run is not in."""
    there = ReviewItem.objects.filter(run=run).values("queue")
    return list(ReviewQueue.objects.filter(closed=None).exclude(pk__in=there).select_related("owner")[:OFFERED])
