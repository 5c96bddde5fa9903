"""The measures of agreement of a queue, and of which reviews somebody may see them: figures tell of opinions too.

While a blind queue is open: reviewers who have submitted all that is blind to them, and admins. An admin who may still
review there sees the figures of the reviews that are open to them, as anybody else. Afterwards everybody sees all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db.models import QuerySet

from experiments.core import blindness, review_rights
from experiments.core.access import role_of
from experiments.core.display_name import person
from experiments.models import Review, ReviewQueue
from experiments.models.member import Role
from experiments.models.review import ReviewState


def reviews(user: User, queue: ReviewQueue) -> QuerySet[Review]:
    """The submitted reviews that count for this person, who may see the agreement."""
    may_review = review_rights.queues_of(user).filter(pk=queue.pk).exists()
    sees_all = role_of(user) == Role.ADMIN and not may_review
    unblinded = Review.objects.exclude(item__run__in=blindness.blinded_runs(user))
    rows = unblinded if sees_all else blindness.visible(user)
    return rows.filter(item__queue=queue, state=ReviewState.SUBMITTED)


def left_out(user: User, queue: ReviewQueue) -> int:
    """Opinions that are submitted and not counted for this person, since they may still review what they are of."""
    return Review.objects.filter(item__queue=queue, state=ReviewState.SUBMITTED).count() - reviews(user, queue).count()


@dataclass(frozen=True)
class AgreementRow:
    """One measure of agreement. `one` and `other` are the reviewers it is of; empty where it is of all."""

    queue: ReviewQueue
    line: str
    measure: str
    one: str
    other: str
    n: int
    value: float | None
    low: float | None
    high: float | None
    why: str


def measures_of(queue: ReviewQueue, viewer: User) -> Iterator[AgreementRow]:
    """Of each line: alpha and Fleiss' kappa of all reviewers, Cohen's kappa of each two."""
    from experiments.reviews.agreement import measures
    from experiments.reviews.agreement.ratings import ratings

    rated = ratings(reviews(viewer, queue))
    people = User.objects.in_bulk(next(iter(rated.values())).reviewers)
    for name, line in rated.items():
        found = [("krippendorff_alpha", "", "", measures.krippendorff_alpha(line))]
        found.append(("fleiss_kappa", "", "", measures.fleiss_kappa(line)))
        for one, other in line.pairs():
            kappa = measures.cohen_kappa(line, one, other)
            found.append(("cohen_kappa", person(people[one]), person(people[other]), kappa))
        for measure, one_name, other_name, of in found:
            yield AgreementRow(queue, name, measure, one_name, other_name, of.n, of.value, of.low, of.high, of.why)
