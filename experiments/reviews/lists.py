"""Queues with how far each is, their items as rows of a table, and who may be asked to review."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db.models import Count, F, IntegerField, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from experiments.core import blindness
from experiments.core.system_names import Names
from experiments.core.visibility import visible_to
from experiments.display import verdicts
from experiments.display.narrowing import ListFilter, Narrowed, narrow_down, offer_each, require_known
from experiments.models import Review, ReviewItem, ReviewQueue, ReviewState, Role, Run
from experiments.reviews import rubric
from experiments.runs.lists import runs_from

MAX_QUEUES = 5
"""Queues that the Overview names."""
SHOWS = {"open": "To review", "complete": "Complete"}
OF_RUNS = ("q", "model", "layer", "backbone", "verdict", "check")
"""Filters of runs that items are chosen by."""


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
    return list(rows.filter(left__gt=0)[:MAX_QUEUES])


def with_progress(queues: QuerySet[Any]) -> list[Any]:
    """Each, counted as by `with_items`, with how many reviews are under way at this moment in `writing`: an item that
    somebody has opened, and said nothing of yet, is not."""
    live = Review.objects.filter(state=ReviewState.DRAFT, slot__isnull=False, reserved_until__gt=timezone.now())
    writing = dict(live.filter(version__gt=1).order_by().values_list("item__queue").annotate(Count("pk")))
    found = list(queues)
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


def items(queue: ReviewQueue) -> QuerySet[ReviewItem]:
    """Its items in their order."""
    return visible_to(queue.items.order_by("position").select_related("run", "queue"))


def items_from(queue: ReviewQueue, params: Mapping[str, str], user: User) -> Narrowed:
    """The items that an address chooses: by how far they are, and by their runs as this person may find these."""
    known = {"show": lambda text: Q(complete=require_known("state", text, SHOWS) == "complete")}
    found = narrow_down(items(queue), params, known)
    asked = {name: params[name] for name in OF_RUNS if params.get(name, "").strip()}
    if not asked:
        return found
    runs = runs_from(asked, user)
    rows = found.rows.filter(run__in=runs.runs.order_by().values("pk"))
    return Narrowed(rows, found.values | runs.values, found.problems | runs.problems)


def list_filters(queue: ReviewQueue, found: Narrowed, user: User) -> list[ListFilter]:
    """The fields that narrow its items down, with what there is to choose."""
    fields = run_fields(Run.objects.filter(review_items__queue=queue), found, Names(user))
    return [*fields, ListFilter("verdict", "Verdict", verdicts.CHOICES)]


def run_fields(runs: QuerySet[Run], found: Narrowed, names: Names) -> list[ListFilter]:
    """Fields for what these runs study and by which agent; systems that are hidden are no choice."""
    known, model = runs.order_by(), found.values.get("model", "")
    told = known.exclude(names.are_hidden())
    layers = offer_each(told.filter(model=model).values_list("layer", flat=True).distinct())
    return [
        ListFilter("model", "Model", offer_each(told.values_list("model", flat=True).distinct()), clears="layer"),
        ListFilter("layer", "Layer", layers, idle="" if model else "Choose a model first"),
        ListFilter("backbone", "Agent", offer_each(known.values_list("backbone", flat=True).distinct())),
    ]


def export_query(queue: ReviewQueue, found: Narrowed) -> str:
    """What chooses the reviews of these items for a file."""
    return urlencode({"queue": queue.pk, **found.values})


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
