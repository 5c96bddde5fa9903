"""Decide who may review a run, and who may see the reviews of others. Every page, API response, export and figure
that shows reviews of others asks here.

In a blind queue, reviewers see the opinions about an item once they have submitted their own. Everyone else sees
them once the item is complete or its queue closed, except people who still write a draft of it. A person who has
yet to judge the run in another blind queue sees no opinions of others, wherever they were given. Only its writer
sees a draft. Code that shows a person the opinions of others calls `record_disclosure`: after that, the person cannot
take back their own submissions on that run.

The name of a synthetic neuron is hidden by the same rules; see `system_names`.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from django.contrib.auth.models import User
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from experiments.core.access import role_of
from experiments.core.visibility import visible_to
from experiments.models import Member, Review, ReviewItem, ReviewQueue, ReviewState, Role

MAKES_QUEUES = Role.RESEARCHER
"""Role that may create queues and add runs to them."""
UNDO = timedelta(minutes=10)
"""How long a submission can be taken back by a person who has not seen what others say."""
OPEN = Q(item__complete=True) | Q(item__queue__closed__isnull=False)
"""Filter for reviews that everyone may read, except people who have yet to review the run."""


def queues_of(user: User) -> QuerySet[ReviewQueue]:
    """Return the open queues in which this person may review."""
    member = Member.objects.filter(user=user, user__is_active=True, role__gte=Role.REVIEWER)
    named = ReviewQueue.reviewers.through.objects.filter(reviewqueue=OuterRef("pk"))
    return ReviewQueue.objects.filter(Exists(member), ~Exists(named) | Exists(named.filter(user=user)), closed=None)


def waiting(user: User) -> QuerySet[ReviewItem]:
    """Return the items with a slot for this person that they have neither submitted nor declined."""
    reviews = Review.objects.filter(item=OuterRef("pk")).order_by()
    done = reviews.filter(reviewer=user).exclude(state=ReviewState.DRAFT)
    # A draft holds its slot only until its reservation runs out.
    live = Q(state=ReviewState.SUBMITTED) | Q(reserved_until__gt=timezone.now())
    taken = reviews.filter(live, slot__isnull=False).exclude(reviewer=user)
    counted = taken.values("item").annotate(count=Count("pk")).values("count")
    rows = visible_to(ReviewItem.objects.filter(queue__in=queues_of(user), complete=False)).exclude(Exists(done))
    return rows.alias(taken=Coalesce(Subquery(counted), 0)).filter(taken__lt=F("queue__reviewers_per_item"))


# --- opinions ---


def list_visible_reviews(user: User) -> QuerySet[Review]:
    """Return the submitted reviews that this person may read, which always include their own."""
    mine = Review.objects.filter(item=OuterRef("item"), reviewer=user).order_by()
    own = Exists(mine.filter(state=ReviewState.SUBMITTED))
    # A complete item is not shown to a person who still drafts: they could copy from it.
    over = Q(item__complete=True) & ~Exists(mine.filter(state=ReviewState.DRAFT))
    allowed = Q(item__queue__blind=False) | Q(item__queue__closed__isnull=False) | own | over
    others = allowed & ~Q(item__run__in=list_blinded_runs(user))
    return visible_to(Review.objects.filter(Q(reviewer=user) | others, state=ReviewState.SUBMITTED))


def may_read_declines(user: User, item: ReviewItem, mine: Review | None, *, blind: bool) -> bool:
    """True if this person may read why others declined the item: by the rules for opinions, and always for the
    queue's owner. `blind` says if the person is blind to the item's run."""
    if item.queue.owner_id == user.pk:
        return True
    if blind:
        return False
    if not item.queue.blind or item.queue.closed:
        return True
    return mine.state == ReviewState.SUBMITTED if mine and mine.state != ReviewState.DECLINED else item.complete


def list_blinded_runs(user: User) -> QuerySet[ReviewItem, int]:
    """Return the keys of the runs that this person has yet to judge for themselves. Opinions and comments of others
    about these runs are hidden from them."""
    mine = Review.objects.filter(item=OuterRef("pk"), reviewer=user).order_by()
    due = Q(complete=False) & ~Exists(mine.exclude(state=ReviewState.DRAFT))
    blind = ReviewItem.objects.filter(queue__in=queues_of(user).filter(blind=True))
    return blind.filter(due | Exists(mine.filter(state=ReviewState.DRAFT))).order_by().values_list("run_id", flat=True)


def is_blind(user: User, run: int) -> bool:
    """True if this person has yet to judge the run for themselves."""
    return list_blinded_runs(user).filter(run_id=run).exists()


def is_under_review(run: int) -> bool:
    """True if any person has yet to judge the run blind; then no shared link may show opinions."""
    return ReviewItem.objects.filter(run_id=run, complete=False, queue__blind=True, queue__closed=None).exists()


def record_disclosure(user: User, items: Iterable[int]) -> None:
    """Record that this person was shown the opinions of others about the runs of these items."""
    runs = ReviewItem.objects.filter(pk__in=items).order_by().values("run")
    mine = Review.objects.filter(reviewer=user, item__run__in=runs, state=ReviewState.SUBMITTED, opinions_shown=None)
    others = _of_the_same_run().exclude(reviewer=user)
    new = mine.filter(Exists(others), item__queue__blind=True).order_by()
    # From now on they cannot take back what they submitted about these runs, here or in another queue.
    if keys := list(new.values_list("pk", flat=True)):
        Review.objects.filter(pk__in=keys, opinions_shown=None).update(opinions_shown=timezone.now())


def _of_the_same_run() -> QuerySet[Review]:
    """Return the reviews of the run that the review of the outer query is about."""
    return Review.objects.filter(item__run=OuterRef("item__run"), state=ReviewState.SUBMITTED).order_by()


def has_hidden_verdict(user: User | None) -> Q:
    """Return a filter for runs whose verdict is hidden from this person; without a person, from any person."""
    # Hidden while the person has yet to review the run blind, …
    blind = ReviewItem.objects.filter(queue__blind=True, queue__closed=None)
    # … and while they may take back their submission and the run has, or may get, reviews by others.
    recent = Review.objects.filter(item__in=blind, state=ReviewState.SUBMITTED)
    recent = recent.filter(opinions_shown=None, submitted__gt=timezone.now() - UNDO).order_by()
    others = _of_the_same_run().exclude(reviewer=OuterRef("reviewer"))
    recent = recent.filter(Q(item__queue__reviewers_per_item__gt=1) | Exists(others))
    if user is None:
        anybody = blind.filter(complete=False).order_by().values_list("run_id", flat=True)
        return Q(pk__in=anybody) | Q(pk__in=recent.values("item__run_id"))
    return Q(pk__in=list_blinded_runs(user)) | Q(pk__in=recent.filter(reviewer=user).values("item__run_id"))


def may_see_agreement(user: User, queue: ReviewQueue) -> bool:
    """True if this person may see the agreement of a queue's reviewers, since agreement figures reveal opinions too."""
    if queue.closed or not queue.blind or role_of(user) == Role.ADMIN:
        return True
    mine = Review.objects.filter(item__queue=queue, reviewer=user, state=ReviewState.SUBMITTED)
    return mine.exists() and not list_blinded_runs(user).filter(queue=queue).exists()
