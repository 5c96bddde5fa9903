"""Who may see how far reviewers of a queue agree, and of which reviews: figures tell of opinions too.

While a blind queue is open: admins, and reviewers who have submitted all that is blind to them. Afterwards everybody.
"""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db.models import QuerySet

from experiments.access import role_of
from experiments.models import Queue, Review
from experiments.models.member import Role
from experiments.models.review import State
from experiments.review import blindness


def may_see(user: User, queue: Queue) -> bool:
    """Whether this person may see the agreement of a queue now."""
    if queue.closed or not queue.blind or role_of(user) == Role.ADMIN:
        return True
    mine = Review.objects.filter(item__queue=queue, reviewer=user, state=State.SUBMITTED)
    return mine.exists() and not blindness.blinded_runs(user).filter(queue=queue).exists()


def reviews(user: User, queue: Queue) -> QuerySet[Review]:
    """The submitted reviews that count for this person, who may see the agreement."""
    rows = Review.objects if role_of(user) == Role.ADMIN else blindness.visible(user)
    return rows.filter(item__queue=queue, state=State.SUBMITTED)
