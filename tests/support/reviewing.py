"""Queues of runs to review, and what reviewers do with them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from experiments.core.actors import Actor
from experiments.models import Review, ReviewQueue, Run
from experiments.reviews import actions, reservation, rubric
from tests.support.builders import make_run

FULL = {"supported": 4, "specific": 3, "complete": 5, "confounds": 2, "samples": 1, "verdict": "revise"}
FULL_FORM = {"supported": "4", "specific": "3", "complete": "5", "confounds": "2", "samples": "1", "verdict": "reject"}
JSON = {"Accept": "application/json"}


def opinion(**fields: Any) -> dict[str, Any]:
    return rubric.opinion_from(FULL | {"corrected_label": "red balls", "note": ""} | fields)


def queue_of(owner: User, runs: int = 2, **fields: Any) -> ReviewQueue:
    made = [make_run(owner, status="concluded").pk for _ in range(runs)]
    reviewers = fields.pop("reviewers", [])
    queue = ReviewQueue(**({"name": "q"} | fields))
    return actions.make_queue(Actor(owner), Run.objects.filter(pk__in=made).order_by("pk"), queue, reviewers)


def taken(queue: ReviewQueue, user: User) -> Review:
    review = reservation.reserve_item(queue, user)
    assert review is not None
    return review


def lapse(review: Review) -> None:
    Review.objects.filter(pk=review.pk).update(reserved_until=timezone.now() - timedelta(seconds=1))


def submit(review: Review, user: User, **more: Any) -> Review:
    fields = opinion(**{name: more.pop(name) for name in list(more) if name in rubric.FIELDS})
    return actions.submit(Actor(user), review.item_id, **{"version": review.version, "fields": fields, "seq": 0} | more)


def send(client: Client, path: str, **fields: Any) -> Any:
    return client.post(path, {"version": 1, "seq": 0} | fields, headers=JSON)


def give(queue: ReviewQueue, user: User, verdict: str, label: str = "") -> Review:
    """This person's opinion of the next item, submitted so long ago that it stands."""
    review = taken(queue, user)
    submit(review, user, verdict=verdict, corrected_label=label)
    Review.objects.filter(pk=review.pk).update(submitted=timezone.now() - timedelta(hours=1))
    return review


def run_of(queue: ReviewQueue) -> Run:
    return Run.objects.get(review_items__queue=queue)


def reviewed(owner: User, *opinions: tuple[User, str], **fields: Any) -> ReviewQueue:
    queue = queue_of(owner, runs=1, reviewers_per_item=max(1, len(opinions)), **fields)
    for user, verdict in opinions:
        give(queue, user, verdict, f"{user.username}'s label")
    return queue
