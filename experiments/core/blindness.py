"""Who may review what, and who may see whose opinion. Every page, answer of the API, export and figure that shows
reviews of others asks here.

In a blind queue an opinion is seen by those who have submitted theirs of the same item; by everybody once the item is
complete or its queue closed, save for who still writes a draft of it. Whoever is to judge the run in another blind
queue sees none of others, wherever they were given. Drafts are their writer's alone. Whatever shows somebody the
opinions of others says so with `note_shown`: from then on their own submissions on that run stand.

What a synthetic neuron is called waits for the same: see `names`.
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
"""Who may make queues and put runs into theirs."""
UNDO = timedelta(minutes=10)
"""How long a submission can be taken back, by who has not seen what others say."""
OPEN = Q(item__complete=True) | Q(item__queue__closed__isnull=False)
"""Of reviews: those that everybody may read who is not to review the run themselves."""


def queues_of(user: User) -> QuerySet[ReviewQueue]:
    """Open queues in which this person may review."""
    member = Member.objects.filter(user=user, user__is_active=True, role__gte=Role.REVIEWER)
    named = ReviewQueue.reviewers.through.objects.filter(reviewqueue=OuterRef("pk"))
    return ReviewQueue.objects.filter(Exists(member), ~Exists(named) | Exists(named.filter(user=user)), closed=None)


def waiting(user: User) -> QuerySet[ReviewItem]:
    """Items with a slot for this person, who has neither submitted nor declined them."""
    reviews = Review.objects.filter(item=OuterRef("pk")).order_by()
    done = reviews.filter(reviewer=user).exclude(state=ReviewState.DRAFT)
    live = Q(state=ReviewState.SUBMITTED) | Q(reserved_until__gt=timezone.now())
    taken = reviews.filter(live, slot__isnull=False).exclude(reviewer=user)
    counted = taken.values("item").annotate(count=Count("pk")).values("count")
    rows = visible_to(ReviewItem.objects.filter(queue__in=queues_of(user), complete=False)).exclude(Exists(done))
    return rows.alias(taken=Coalesce(Subquery(counted), 0)).filter(taken__lt=F("queue__reviewers_per_item"))


# --- opinions ---


def visible(user: User) -> QuerySet[Review]:
    """The submitted reviews that this person may read: their own always."""
    mine = Review.objects.filter(item=OuterRef("item"), reviewer=user).order_by()
    own = Exists(mine.filter(state=ReviewState.SUBMITTED))
    over = Q(item__complete=True) & ~Exists(mine.filter(state=ReviewState.DRAFT))
    allowed = Q(item__queue__blind=False) | Q(item__queue__closed__isnull=False) | own | over
    others = allowed & ~Q(item__run__in=blinded_runs(user))
    return visible_to(Review.objects.filter(Q(reviewer=user) | others, state=ReviewState.SUBMITTED))


def may_read_declines(user: User, item: ReviewItem, mine: Review | None, *, blind: bool) -> bool:
    """Whether this person may read why others declined the item: as with opinions, and the queue's owner always.
    `blind`: whether they are, to its run."""
    if item.queue.owner_id == user.pk:
        return True
    if blind:
        return False
    if not item.queue.blind or item.queue.closed:
        return True
    return mine.state == ReviewState.SUBMITTED if mine and mine.state != ReviewState.DECLINED else item.complete


def blinded_runs(user: User) -> QuerySet[ReviewItem, int]:
    """Keys of the runs of which this person is still to form an opinion of their own: what others say of them, in
    comments too, is not for their eyes."""
    mine = Review.objects.filter(item=OuterRef("pk"), reviewer=user).order_by()
    due = Q(complete=False) & ~Exists(mine.exclude(state=ReviewState.DRAFT))
    blind = ReviewItem.objects.filter(queue__in=queues_of(user).filter(blind=True))
    return blind.filter(due | Exists(mine.filter(state=ReviewState.DRAFT))).order_by().values_list("run_id", flat=True)


def is_blind(user: User, run: int) -> bool:
    """Whether that is so of one run."""
    return blinded_runs(user).filter(run_id=run).exists()


def is_under_review(run: int) -> bool:
    """Whether anybody is still to form an opinion of the run unseen: then no link to it tells what others say."""
    return ReviewItem.objects.filter(run_id=run, complete=False, queue__blind=True, queue__closed=None).exists()


def note_shown(user: User, items: Iterable[int]) -> None:
    """Keep that this person was shown what others say of the runs of these items: whatever they have submitted of them
    unseen, here or in another queue, stands."""
    runs = ReviewItem.objects.filter(pk__in=items).order_by().values("run")
    mine = Review.objects.filter(reviewer=user, item__run__in=runs, state=ReviewState.SUBMITTED, opinions_shown=None)
    others = _of_the_same_run().exclude(reviewer=user)
    new = mine.filter(Exists(others), item__queue__blind=True).order_by()
    if keys := list(new.values_list("pk", flat=True)):
        Review.objects.filter(pk__in=keys, opinions_shown=None).update(opinions_shown=timezone.now())


def _of_the_same_run() -> QuerySet[Review]:
    """What was submitted of the run that an outer review is of."""
    return Review.objects.filter(item__run=OuterRef("item__run"), state=ReviewState.SUBMITTED).order_by()


def has_hidden_verdict(user: User | None) -> Q:
    """Of runs: their verdict is not for this person's eyes yet. They are to review the run unseen, or may still take
    back what they submitted of it, while there is or may come more to it than that. Without a person: so of anybody."""
    blind = ReviewItem.objects.filter(queue__blind=True, queue__closed=None)
    recent = Review.objects.filter(item__in=blind, state=ReviewState.SUBMITTED)
    recent = recent.filter(opinions_shown=None, submitted__gt=timezone.now() - UNDO).order_by()
    others = _of_the_same_run().exclude(reviewer=OuterRef("reviewer"))
    recent = recent.filter(Q(item__queue__reviewers_per_item__gt=1) | Exists(others))
    if user is None:
        anybody = blind.filter(complete=False).order_by().values_list("run_id", flat=True)
        return Q(pk__in=anybody) | Q(pk__in=recent.values("item__run_id"))
    return Q(pk__in=blinded_runs(user)) | Q(pk__in=recent.filter(reviewer=user).values("item__run_id"))


def may_see_agreement(user: User, queue: ReviewQueue) -> bool:
    """Whether this person may see now how far the reviewers of a queue agree: figures tell of opinions too."""
    if queue.closed or not queue.blind or role_of(user) == Role.ADMIN:
        return True
    mine = Review.objects.filter(item__queue=queue, reviewer=user, state=ReviewState.SUBMITTED)
    return mine.exists() and not blinded_runs(user).filter(queue=queue).exists()
