"""Queues with how far each is, their items as rows of a table, and who may be asked to review."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Count, F, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from experiments.core import blindness
from experiments.models import Review, ReviewItem, ReviewQueue, ReviewState, Role
from experiments.reviews import rubric

SHOWN = 5
"""Queues that the Overview names."""
SHOWS = {"": "All", "open": "To review", "complete": "Complete"}


def reviewers() -> QuerySet[User]:
    """Everybody whose role lets them review."""
    return User.objects.filter(member__role__gte=Role.REVIEWER, is_active=True).order_by("username")


# --- queues ---------------------------------------------------------------------------------------------------


def with_items(queues: QuerySet[ReviewQueue]) -> QuerySet[Any]:
    """Each with its owner, the number of its items in `total`, of the complete ones in `complete`."""
    items = ReviewItem.objects.filter(queue=OuterRef("pk")).order_by()

    def count(rows: QuerySet[ReviewItem]) -> Coalesce:
        counts = rows.values("queue").annotate(count=Count("pk")).values("count")
        return Coalesce(Subquery(counts, output_field=IntegerField()), 0)

    return queues.select_related("owner").annotate(total=count(items), complete=count(items.filter(complete=True)))


def list_unfinished(user: Any) -> list[Any]:
    """The newest queues in which this person may review and something is `left`."""
    rows = with_items(blindness.queues_of(user)).annotate(left=F("total") - F("complete"))
    return list(rows.filter(left__gt=0)[:SHOWN])


def with_progress(queues: QuerySet[ReviewQueue]) -> list[Any]:
    """Each with its items, and how many reviews are under way at this moment in `writing`: an item that somebody has
    opened, and said nothing of yet, is not."""
    live = Review.objects.filter(state=ReviewState.DRAFT, slot__isnull=False, reserved_until__gt=timezone.now())
    writing = dict(live.filter(version__gt=1).order_by().values_list("item__queue").annotate(Count("pk")))
    found = list(with_items(queues))
    for queue in found:
        queue.writing = writing.get(queue.pk, 0)
    return found


# --- items ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ItemRow:
    """One item; of its `reviews` only the `opinions` may be read by who asks."""

    item: ReviewItem
    reviews: Sequence[Review]
    opinions: Sequence[Review]
    mine: Review | None
    hears: bool
    """Whether who asks may read why others declined."""

    @property
    def people(self) -> list[tuple[User, str, Review]]:
        """Who has a hand in it, and how: "submitted", "reviewing", "lapsed" or "declined". A look that somebody took
        at the item some time ago does not count."""
        found = []
        for review in self.reviews:
            if review.state != ReviewState.DRAFT:
                found.append((review.reviewer, str(review.state), review))
            elif review.version > 1 or review.holds():
                found.append((review.reviewer, "reviewing" if review.holds() else "lapsed", review))
        return found

    @property
    def hidden(self) -> int:
        """Submitted opinions that are not for these eyes yet."""
        return sum(review.state == ReviewState.SUBMITTED for review in self.reviews) - len(self.opinions)

    @property
    def lines(self) -> list[tuple[rubric.RubricLine, list[int | None], bool]]:
        """The rubric, the scores of the opinions, and whether they are 2 or more apart."""
        found = []
        for line in rubric.LINES:
            scores = [getattr(review, line.name) for review in self.opinions]
            found.append((line, scores, max(scores, default=0) - min(scores, default=0) > 1))
        return found

    @property
    def state(self) -> str:
        """How the item stands for who asks, as the name of a mark."""
        if self.mine and self.mine.state != ReviewState.DRAFT:
            return str(self.mine.state)
        if self.item.complete:
            return "complete"
        if self.mine and self.mine.holds():
            return "mine"
        held = sum(review.holds() for review in self.reviews)
        return "taken" if held >= self.item.queue.reviewers_per_item else "free"


def items(queue: ReviewQueue, show: str = "") -> QuerySet[ReviewItem]:
    """The items of one view of the table, in their order."""
    rows = queue.items.order_by("position").select_related("run", "queue")
    return rows if show not in {"open", "complete"} else rows.filter(complete=show == "complete")


def item_rows(items: Sequence[ReviewItem], user: User) -> list[ItemRow]:
    """The items with all about them, in three queries."""
    reviews: dict[int, list[Review]] = {}
    for review in Review.objects.filter(item__in=items).select_related("reviewer").order_by("slot", "pk"):
        reviews.setdefault(review.item_id, []).append(review)
    seen = set(blindness.visible(user).filter(item__in=items).values_list("pk", flat=True))
    blind = set(blindness.blinded_runs(user).filter(run__in=[item.run_id for item in items]))
    found = []
    for item in items:
        known = reviews.get(item.pk, [])
        opinions = [review for review in known if review.pk in seen]
        mine = next((review for review in known if review.reviewer_id == user.pk), None)
        hears = blindness.may_read_declines(user, item, mine, blind=item.run_id in blind)
        found.append(ItemRow(item, known, opinions, mine, hears))
    return found


def note_shown(rows: Sequence[ItemRow], user: User) -> None:
    """Keep of which items these rows showed the opinions of others; nothing is written twice."""
    if new := [row.item.pk for row in rows if any(review.reviewer_id != user.pk for review in row.opinions)]:
        blindness.note_shown(user, new)
