"""Lists of queues with their progress, of their items as table rows, and of users who can review."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db.models import Count, F, IntegerField, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from experiments.core import blindness
from experiments.core.system_names import SystemNameMasker
from experiments.core.visibility import visible_to
from experiments.display.narrowing import (
    Filter,
    ListFilter,
    Narrowed,
    Rows,
    index_filters,
    list_fields,
    narrow_down,
    offer_values,
    require_known,
)
from experiments.models import Review, ReviewItem, ReviewQueue, ReviewState, Role, Run
from experiments.reviews import rubric
from experiments.runs.filters import FILTERS
from experiments.runs.lists import runs_from

MAX_QUEUES = 5
"""Maximum number of queues on the Overview."""
SHOWS = {"open": "To review", "complete": "Complete"}
_OF_RUNS = ("q", "model", "layer", "backbone", "verdict", "check")
"""Filters of runs that also filter items."""
ITEM_FILTERS = index_filters(
    Filter(
        "show",
        "Items",
        lambda text: Q(complete=require_known("state", text, SHOWS) == "complete"),
        Literal["open", "complete"],
        "`open`: to be reviewed",
        choices=list(SHOWS.items()),
        in_fields=False,
    ),
    *(FILTERS[name] for name in _OF_RUNS),
)
"""Of the items of a queue, for its page, the API and exports."""


def reviewers() -> QuerySet[User]:
    """Return all active users whose role lets them review."""
    return User.objects.filter(member__role__gte=Role.REVIEWER, is_active=True).order_by("username")


# --- queues ---------------------------------------------------------------------------------------------------


def with_items(queues: QuerySet[ReviewQueue]) -> QuerySet[Any]:
    """Add the owner of each queue, its number of items (`total`) and of complete items (`complete`)."""
    items = ReviewItem.objects.filter(queue=OuterRef("pk")).order_by()

    def count(rows: QuerySet[ReviewItem]) -> Coalesce:
        counts = rows.values("queue").annotate(count=Count("pk")).values("count")
        return Coalesce(Subquery(counts, output_field=IntegerField()), 0)

    return queues.select_related("owner").annotate(total=count(items), complete=count(items.filter(complete=True)))


def list_unfinished(user: Any) -> list[Any]:
    """Return the newest queues with open items in which this person may review."""
    rows = with_items(blindness.queues_of(user)).annotate(left=F("total") - F("complete"))
    return list(rows.filter(left__gt=0)[:MAX_QUEUES])


def with_progress(queues: QuerySet[Any]) -> list[Any]:
    """Add to each queue the number of reviews that are being written now (`writing`). Opened but empty drafts do not
    count."""
    live = Review.objects.filter(state=ReviewState.DRAFT, slot__isnull=False, reserved_until__gt=timezone.now())
    # Version 1 was opened and never saved
    writing = dict(live.filter(version__gt=1).order_by().values_list("item__queue").annotate(Count("pk")))
    found = list(queues)
    for queue in found:
        queue.writing = writing.get(queue.pk, 0)
    return found


# --- items ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ItemRow:
    """One item. The viewer may read only those of its `reviews` that are in `opinions`."""

    item: ReviewItem
    reviews: Sequence[Review]
    opinions: Sequence[Review]
    mine: Review | None
    hears: bool
    """True if the viewer may read why others declined."""

    @property
    def people(self) -> list[tuple[User, str, Review]]:
        """Return the people who work on the item, each as "submitted", "reviewing", "lapsed" or "declined".

        People who only opened the item some time ago do not count.
        """
        found = []
        for review in self.reviews:
            if review.state != ReviewState.DRAFT:
                found.append((review.reviewer, str(review.state), review))
            elif review.version > 1 or review.holds():
                found.append((review.reviewer, "reviewing" if review.holds() else "lapsed", review))
        return found

    @property
    def hidden(self) -> int:
        """Number of submitted reviews that the viewer may not see yet."""
        return sum(review.state == ReviewState.SUBMITTED for review in self.reviews) - len(self.opinions)

    @property
    def lines(self) -> list[tuple[rubric.RubricLine, list[int | None], bool]]:
        """Return the criteria, the scores, and whether these differ by 2 or more."""
        found = []
        for line in rubric.LINES:
            scores = [getattr(review, line.name) for review in self.opinions]
            found.append((line, scores, max(scores, default=0) - min(scores, default=0) > 1))
        return found

    @property
    def state(self) -> str:
        """State of the item for the viewer, as the name of a mark."""
        if self.mine and self.mine.state != ReviewState.DRAFT:
            return str(self.mine.state)
        if self.item.complete:
            return "complete"
        if self.mine and self.mine.holds():
            return "mine"
        held = sum(review.holds() for review in self.reviews)
        return "taken" if held >= self.item.queue.reviewers_per_item else "free"


def items(queue: ReviewQueue) -> QuerySet[ReviewItem]:
    """Return the items of the queue in order."""
    return visible_to(queue.items.order_by("position").select_related("run", "queue"))


def items_from(queue: ReviewQueue, params: Mapping[str, str], user: User) -> Narrowed:
    """Return the items that a query selects: by progress, and by filters of runs as this person may use them."""
    found = narrow_down(items(queue), params, {"show": ITEM_FILTERS["show"]})
    asked = {name: params[name] for name in _OF_RUNS if params.get(name, "").strip()}
    if not asked:
        return found
    # By the filters of the Runs page, which know what is hidden from this person.
    runs = runs_from(asked, user)
    rows = found.rows.filter(run__in=runs.runs.order_by().values("pk"))
    return Narrowed(rows, found.values | runs.values, found.problems | runs.problems)


def list_filters(queue: ReviewQueue, found: Narrowed, user: User) -> list[ListFilter]:
    """Return the filter fields of the item list, which offer what its runs have."""
    offered = index_filters(*filters_of(lambda _: Run.objects.filter(review_items__queue=queue)))
    return list_fields({**ITEM_FILTERS, **offered}, found.values, SystemNameMasker(user))


def filters_of(runs: Rows) -> list[Filter]:
    """Return the filters by system and agent, which offer what these runs have. Hidden systems are no choice."""

    def list_named(names: SystemNameMasker) -> QuerySet[Any]:
        return runs(names).exclude(names.are_hidden())

    offered = {
        "model": offer_values(list_named, "model"),
        "layer": offer_values(list_named, "layer", "model"),
        "backbone": offer_values(runs, "backbone"),
    }
    return [replace(FILTERS[name], choices=choices) for name, choices in offered.items()]


def export_query(queue: ReviewQueue, found: Narrowed) -> str:
    """Return the query that exports the reviews of these items."""
    return urlencode({"queue": queue.pk, **found.values})


def item_rows(items: Sequence[ReviewItem], user: User) -> list[ItemRow]:
    """Return the items with everything that pages show of them. Three queries."""
    reviews: dict[int, list[Review]] = {}
    for review in Review.objects.filter(item__in=items).select_related("reviewer").order_by("slot", "pk"):
        reviews.setdefault(review.item_id, []).append(review)
    seen = set(blindness.list_visible_reviews(user).filter(item__in=items).values_list("pk", flat=True))
    blind = set(blindness.list_blinded_runs(user).filter(run__in=[item.run_id for item in items]))
    found = []
    for item in items:
        known = reviews.get(item.pk, [])
        opinions = [review for review in known if review.pk in seen]
        mine = next((review for review in known if review.reviewer_id == user.pk), None)
        hears = blindness.may_read_declines(user, item, mine, blind=item.run_id in blind)
        found.append(ItemRow(item, known, opinions, mine, hears))
    return found


def record_disclosure(rows: Sequence[ItemRow], user: User) -> None:
    """Record for which items the user was shown reviews of others. Items are recorded once."""
    if new := [row.item.pk for row in rows if any(review.reviewer_id != user.pk for review in row.opinions)]:
        blindness.record_disclosure(user, new)
