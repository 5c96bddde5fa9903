"""A queue as a table: its items, who reviews them and how far they are, and the opinions that may be seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db.models import F, QuerySet

from experiments.core import blindness
from experiments.models import Review, ReviewItem, ReviewQueue
from experiments.models.review import State
from experiments.reviews import rubric

SHOWS = {"": "All", "open": "To review", "complete": "Complete"}
BEFORE, AFTER = 6, 14
"""Items that stand around the current one in focus mode."""


@dataclass(frozen=True)
class Row:
    """One item; of its `reviews` only the `opinions` may be read by who asks."""

    item: ReviewItem
    reviews: Sequence[Review]
    opinions: Sequence[Review]
    mine: Review | None
    hears: bool
    """Whether who asks may read why others declined."""

    @property
    def people(self) -> list[tuple[User, str, Review]]:
        """Who has a hand in it, and how: "submitted", "reviewing", "lapsed" or "declined"."""
        return [(review.reviewer, standing(review), review) for review in self.reviews if is_begun(review)]

    @property
    def hidden(self) -> int:
        """Submitted opinions that are not for these eyes yet."""
        return sum(review.state == State.SUBMITTED for review in self.reviews) - len(self.opinions)

    @property
    def lines(self) -> list[tuple[rubric.Line, list[int | None], bool]]:
        """The rubric, the scores of the opinions, and whether they are 2 or more apart."""
        found = []
        for line in rubric.LINES:
            scores = [getattr(review, line.name) for review in self.opinions]
            found.append((line, scores, max(scores, default=0) - min(scores, default=0) > 1))
        return found

    @property
    def state(self) -> str:
        """How the item stands for who asks, as the name of a mark."""
        if self.mine and self.mine.state != State.DRAFT:
            return str(self.mine.state)
        if self.item.complete:
            return "complete"
        if self.mine and self.mine.holds():
            return "mine"
        held = sum(review.holds() for review in self.reviews)
        return "taken" if held >= self.item.queue.reviewers_per_item else "free"


def is_begun(review: Review) -> bool:
    """Whether it is more than a look that somebody took at the item, some time ago."""
    return review.version > 1 or review.state != State.DRAFT or review.holds()


def standing(review: Review) -> str:
    if review.state != State.DRAFT:
        return str(review.state)
    return "reviewing" if review.holds() else "lapsed"


def items(queue: ReviewQueue, show: str) -> QuerySet[ReviewItem]:
    """The items of one view of the table."""
    rows = queue.items.order_by("position")
    return rows if show not in {"open", "complete"} else rows.filter(complete=show == "complete")


def rows(items: Sequence[ReviewItem], user: User) -> list[Row]:
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
        found.append(Row(item, known, opinions, mine, blindness.hears(user, item, mine, blind=item.run_id in blind)))
    return found


def note_shown(rows: Sequence[Row], user: User) -> None:
    """Keep of which items these rows showed the opinions of others; nothing is written twice."""
    if new := [row.item.pk for row in rows if any(review.reviewer_id != user.pk for review in row.opinions)]:
        blindness.note_shown(user, new)


def around(queue: ReviewQueue, position: int, user: User) -> dict[str, Any]:
    """The items near one, for the side of focus mode; and how many lie before and after them."""
    near = queue.items.filter(position__range=(position - BEFORE, position + AFTER)).order_by("position")
    shown = list(near.select_related("run", "queue"))
    return {
        "rows": rows(shown, user),
        "before": shown[0].position - 1 if shown else 0,
        "last": shown[-1].position if shown else 0,
        "submissions": Review.objects.filter(item__queue=queue, reviewer=user, state=State.SUBMITTED).count(),
    }


def drafts(queue: ReviewQueue, user: User) -> QuerySet[Review]:
    """This person's drafts whose place went to another: they can be sent as additional opinions."""
    rows = Review.objects.filter(item__queue=queue, reviewer=user, state=State.DRAFT, slot=None)
    return rows.select_related("item").order_by(F("item__position"))
