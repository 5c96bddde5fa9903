"""The items on which reviewers differ, most first: by the verdict, then by the lines of the rubric together.

A 4 beside a 5 is no disagreement: scores are, that lie 2 or more apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Case, Count, F, IntegerField, Max, Min, Q, QuerySet, Value, When

from experiments.models import Review, ReviewItem
from experiments.models.review import ReviewVerdict
from experiments.reviews import rubric
from experiments.reviews.lists import ItemRow

ORDER = (ReviewVerdict.ACCEPT, ReviewVerdict.REVISE, ReviewVerdict.REJECT)
"""Verdicts by how far they are from each other."""
APART = 2
"""Scores that differ so much disagree."""


def items(reviews: QuerySet[Review]) -> QuerySet[Review, Any]:
    """Ids of the items with two opinions or more that differ by the verdict, or on a line by `APART`; most first."""
    verdict = Case(
        *(When(verdict=value, then=Value(place)) for place, value in enumerate(ORDER)),
        output_field=IntegerField(),
    )
    ranges = {f"range_{name}": Max(name) - Min(name) for name in rubric.NAMES}
    grouped = reviews.order_by().values("item_id").annotate(opinions=Count("pk"), **ranges)
    grouped = grouped.annotate(apart=Max(verdict) - Min(verdict)).filter(opinions__gte=2)
    total = sum((F(f"range_{name}") for name in rubric.NAMES), Value(0))
    differs = reduce(or_, (Q(**{f"range_{name}__gte": APART}) for name in rubric.NAMES), Q(apart__gt=0))
    ordered = grouped.annotate(total=total).filter(differs)
    return ordered.order_by("-apart", "-total", "item_id").values("item_id")


def laid_out(ids: Sequence[int], reviews: QuerySet[Review]) -> list[ItemRow]:
    """These items with all opinions on each, side by side; two queries."""
    rows = {item.pk: item for item in ReviewItem.objects.filter(pk__in=ids).select_related("run", "queue")}
    of_item: dict[int, list[Review]] = {}
    for review in reviews.filter(item__in=ids).select_related("reviewer").order_by("slot", "pk"):
        of_item.setdefault(review.item_id, []).append(review)
    return [row(rows[pk], of_item.get(pk, [])) for pk in ids if pk in rows]


def row(item: ReviewItem, opinions: Sequence[Review]) -> ItemRow:
    """The item as the queue's table has it; who declined is not told here."""
    return ItemRow(item=item, reviews=opinions, opinions=opinions, mine=None, hears=False)
