"""Made-up reviews in any number, for measurements and demonstrations.

Reviewers agree more often than chance would have it and each has a bent, so that figures of agreement say something.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from experiments.core.actors import Actor
from experiments.models import Member, Review, ReviewItem, ReviewQueue, ReviewState, ReviewVerdict, Role, Run
from experiments.reviews import actions, projection, rubric

PER_QUEUE = 5_000
"""Runs of one queue."""
OPINIONS = 2
"""Of each item."""
REVIEWERS = 12
OPEN = 200
"""Items at the end of the last queue that are left to review."""
BATCH = 2_000


@dataclass(frozen=True)
class Seeded:
    queues: int
    reviews: int


def seed(count: int, progress: Callable[[str, int, int], None]) -> Seeded:
    """Add so many submitted reviews, in as many queues as they need. Nothing is undone if it is interrupted."""
    chance = random.Random(count)
    people = reviewers()
    items = -(-count // OPINIONS) + OPEN
    sizes = [min(PER_QUEUE, items - start) for start in range(0, items, PER_QUEUE)]
    runs = runs_for(max(sizes), people[0])
    done = 0
    for number, size in enumerate(sizes, 1):
        queue = queue_of(runs[:size], people, number)
        with transaction.atomic():
            made = submitted(queue, people, count - done, chance)
            judged = queue.items.filter(complete=True).values_list("run_id", flat=True)
            projection.project(judged, by=people[0])
            done += made
        progress("reviews", done, count)
    return Seeded(len(sizes), done)


def reviewers() -> list[User]:
    """People who exist only to review; none of them can sign in."""
    found = []
    for number in range(1, REVIEWERS + 1):
        user, _ = User.objects.get_or_create(username=f"seeded-{number}", defaults={"password": "!"})
        Member.objects.get_or_create(user=user, defaults={"role": Role.REVIEWER})
        found.append(user)
    return found


def runs_for(count: int, owner: User) -> list[int]:
    """Keys of so many made-up runs: those there are, then new ones without a transcript."""
    found = list(Run.objects.filter(options__seeded=True).order_by("pk").values_list("pk", flat=True)[:count])
    label = {"description": "It responds to round red things.", "labels": ["round red things"]}
    known = {"task": "describe", "model": "toybox", "layer": "layer4", "backbone": "scripted", "status": "concluded"}
    rows = (
        Run(owner=owner, question=f"What does unit {n} respond to?", unit=n, conclusion=label, **known)
        for n in range(count - len(found))
    )
    made = []
    for row in rows:
        row.options, row.ended = {"seeded": True}, timezone.now()
        made.append(row)
    return found + [row.pk for row in Run.objects.bulk_create(made, batch_size=BATCH)]


def queue_of(runs: list[int], people: list[User], number: int) -> ReviewQueue:
    plan = ReviewQueue(name=f"Made up, {number}", note="For measurements.", reviewers_per_item=OPINIONS)
    return actions.make_queue(Actor(people[0]), Run.objects.filter(pk__in=runs).order_by("pk"), plan)


def submitted(queue: ReviewQueue, people: list[User], wanted: int, chance: random.Random) -> int:
    """Reviews of the queue's items in their order, up to the number that is wanted; how many there are."""
    items = list(queue.items.order_by("position")[: -(-wanted // OPINIONS)])
    rows = [review for item in items for review in reviews_of(item, people, chance)][:wanted]
    Review.objects.bulk_create(rows, batch_size=BATCH)
    ReviewItem.objects.filter(queue=queue, position__lte=len(rows) // OPINIONS).update(complete=True)
    return len(rows)


def reviews_of(item: ReviewItem, people: list[User], chance: random.Random) -> Iterator[Review]:
    """What a few of the reviewers say of one item: all see its quality, each with a bent and some noise."""
    quality = chance.uniform(1.5, 4.8)
    when = timezone.now() - timedelta(minutes=chance.uniform(20, 60 * 24 * 90))
    for slot, who in enumerate(chance.sample(range(len(people)), OPINIONS), 1):
        bent = (who % 3 - 1) * 0.4
        yield opinion(Review(item=item, reviewer=people[who], slot=slot), quality + bent, when, chance)


def opinion(review: Review, quality: float, when: datetime, chance: random.Random) -> Review:
    """The review filled in and submitted."""
    for name in rubric.NAMES:
        setattr(review, name, min(5, max(1, round(chance.gauss(quality, 0.7)))))
    level = chance.gauss(quality, 0.5)
    review.verdict = (
        ReviewVerdict.ACCEPT if level > 3.6 else ReviewVerdict.REVISE if level > 2.3 else ReviewVerdict.REJECT
    )
    review.state, review.submitted, review.saved, review.version = ReviewState.SUBMITTED, when, when, 2
    return review
