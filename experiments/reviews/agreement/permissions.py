"""Who may see how far reviewers of a queue agree, and of which reviews: figures tell of opinions too.

While a blind queue is open: reviewers who have submitted all that is blind to them, and admins. An admin who may still
review there sees the figures of the reviews that are open to them, as anybody else. Afterwards everybody sees all.
"""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db.models import QuerySet

from experiments.core import blindness, review_rights
from experiments.core.access import role_of
from experiments.models import Review, ReviewQueue
from experiments.models.member import Role
from experiments.models.review import State


def reviews(user: User, queue: ReviewQueue) -> QuerySet[Review]:
    """The submitted reviews that count for this person, who may see the agreement."""
    sees_all = role_of(user) == Role.ADMIN and not may_review(user, queue)
    unblinded = Review.objects.exclude(item__run__in=blindness.blinded_runs(user))
    rows = unblinded if sees_all else blindness.visible(user)
    return rows.filter(item__queue=queue, state=State.SUBMITTED)


def left_out(user: User, queue: ReviewQueue) -> int:
    """Opinions that are submitted and not counted for this person, since they may still review what they are of."""
    return Review.objects.filter(item__queue=queue, state=State.SUBMITTED).count() - reviews(user, queue).count()


def may_review(user: User, queue: ReviewQueue) -> bool:
    return review_rights.queues_of(user).filter(pk=queue.pk).exists()
