"""Measures of agreement of a queue, from the reviews that the viewer may see: the figures reveal reviews too.

While a blind queue is open, they are shown to admins and to reviewers who have submitted all their reviews of it. An
admin who may still review in the queue gets figures from the reviews open to them, like other reviewers. Once the
queue is closed, all users see all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from operator import or_
from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import User
from django.db.models import Case, Count, F, IntegerField, Max, Min, Q, QuerySet, Value, When

from experiments.core import blindness
from experiments.core.access import role_of
from experiments.core.display_name import person
from experiments.models import Review, ReviewItem, ReviewQueue, ReviewState, ReviewVerdict, Role
from experiments.reviews import rubric
from experiments.reviews.lists import ItemRow

if TYPE_CHECKING:
    from experiments.reviews.agreement.measures import AgreementEstimate


def reviews(user: User, queue: ReviewQueue) -> QuerySet[Review]:
    """Return the submitted reviews that count for this user, who may see the agreement."""
    may_review = blindness.queues_of(user).filter(pk=queue.pk).exists()
    # An admin who may still review must not learn what others gave.
    sees_all = role_of(user) == Role.ADMIN and not may_review
    unblinded = Review.objects.exclude(item__run__in=blindness.list_blinded_runs(user))
    rows = unblinded if sees_all else blindness.list_visible_reviews(user)
    return rows.filter(item__queue=queue, state=ReviewState.SUBMITTED)


def count_left_out(user: User, queue: ReviewQueue) -> int:
    """Count submitted reviews that are not counted for this user, because they may still review those items."""
    return Review.objects.filter(item__queue=queue, state=ReviewState.SUBMITTED).count() - reviews(user, queue).count()


@dataclass(frozen=True)
class AgreementRow:
    """One measure of agreement. `one` and `other` are the two reviewers, or empty if it covers all."""

    queue: ReviewQueue
    line: str
    measure: str
    one: str
    other: str
    figure: AgreementEstimate


def measures_of(queue: ReviewQueue, viewer: User) -> Iterator[AgreementRow]:
    """Yield per criterion alpha and Fleiss' kappa of all reviewers, and Cohen's kappa of each pair."""
    # Imported here: pages without figures start without NumPy
    from experiments.reviews.agreement import measures
    from experiments.reviews.agreement.ratings import ratings

    rated = ratings(reviews(viewer, queue))
    people = User.objects.in_bulk(next(iter(rated.values())).reviewers)
    for name, line in rated.items():
        found = [
            ("krippendorff_alpha", "", "", measures.krippendorff_alpha(line)),
            ("fleiss_kappa", "", "", measures.fleiss_kappa(line)),
        ]
        for one, other in combinations(line.reviewers, 2):
            kappa = measures.cohen_kappa(line, one, other)
            found.append(("cohen_kappa", person(people[one]), person(people[other]), kappa))
        yield from (AgreementRow(queue, name, *each) for each in found)


# --- disagreements --------------------------------------------------------------------------------------------

APART = 2
"""Scores that differ by this much disagree."""


def disagreements(reviews: QuerySet[Review]) -> QuerySet[Review, Any]:
    """Return ids of items with two or more reviews that differ in the verdict, or on a criterion by `APART` or more.

    The largest difference in the verdict comes first, then the largest sum of differences over the criteria.
    """
    places = [When(verdict=value, then=Value(place)) for place, value in enumerate(ReviewVerdict.values)]
    verdict = Case(*places, output_field=IntegerField())
    ranges = {f"range_{name}": Max(name) - Min(name) for name in rubric.NAMES}
    grouped = reviews.order_by().values("item_id").annotate(opinions=Count("pk"), **ranges)
    grouped = grouped.annotate(apart=Max(verdict) - Min(verdict)).filter(opinions__gte=2)
    total = sum((F(f"range_{name}") for name in rubric.NAMES), Value(0))
    differs = reduce(or_, (Q(**{f"range_{name}__gte": APART}) for name in rubric.NAMES), Q(apart__gt=0))
    return grouped.annotate(total=total).filter(differs).order_by("-apart", "-total", "item_id").values("item_id")


def list_rows(ids: Sequence[int], reviews: QuerySet[Review]) -> list[ItemRow]:
    """Return these items as rows of the queue's table, with all reviews but without declined ones. Two queries."""
    rows = {item.pk: item for item in ReviewItem.objects.filter(pk__in=ids).select_related("run", "queue")}
    of_item: dict[int, list[Review]] = defaultdict(list)
    for review in reviews.filter(item__in=ids).select_related("reviewer").order_by("slot", "pk"):
        of_item[review.item_id].append(review)
    # In the order of the keys, which the query of the rows does not keep.
    found = [(rows[pk], of_item[pk]) for pk in ids if pk in rows]
    return [ItemRow(item, opinions, opinions, mine=None, hears=False) for item, opinions in found]
