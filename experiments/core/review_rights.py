"""Who may review what: queues that are open to a person, items with room for them, and which opinions count."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from experiments.models import Member, Review, ReviewItem, ReviewQueue
from experiments.models.member import Role
from experiments.models.review import ReviewState

MAKES_QUEUES = Role.RESEARCHER
"""Who may make queues and put runs into theirs."""
UNDO = timedelta(minutes=10)
"""How long a submission can be taken back, by who has not seen what others say."""
OPEN = Q(item__complete=True) | Q(item__queue__closed__isnull=False)
"""Of reviews: those that everybody may read who is not to review the run themselves."""


def queues_of(user: User) -> QuerySet[ReviewQueue]:
    """Open queues in which this person may review."""
    member = Member.objects.filter(user=user, user__is_active=True, role__gte=Role.REVIEWER)
    named = ReviewQueue.reviewers.through.objects.filter(reviewqueue=OuterRef("pk"))
    return ReviewQueue.objects.filter(Exists(member), ~Exists(named) | Exists(named.filter(user=user)), closed=None)


def waiting(user: User, now: datetime | None = None) -> QuerySet[ReviewItem]:
    """Items with a slot for this person, who has neither submitted nor declined them."""
    reviews = Review.objects.filter(item=OuterRef("pk")).order_by()
    done = reviews.filter(reviewer=user).exclude(state=ReviewState.DRAFT)
    live = Q(state=ReviewState.SUBMITTED) | Q(reserved_until__gt=now or timezone.now())
    taken = reviews.filter(live, slot__isnull=False).exclude(reviewer=user)
    counted = taken.values("item").annotate(count=Count("pk")).values("count")
    rows = ReviewItem.objects.filter(queue__in=queues_of(user), complete=False).exclude(Exists(done))
    return rows.alias(taken=Coalesce(Subquery(counted), 0)).filter(taken__lt=F("queue__reviewers_per_item"))
