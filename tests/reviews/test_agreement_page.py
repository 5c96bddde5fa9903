"""The page of agreement: figures, disagreements, and to whom they are shown."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from experiments.models import Review, ReviewQueue
from experiments.reviews import rubric
from experiments.reviews.agreement import measures
from experiments.reviews.agreement.ratings import LINES
from tests.support.builders import make_run
from tests.support.people import member


def opinion(
    queue: ReviewQueue, position: int, reviewer: User, score: int, verdict: str, state: str = "submitted"
) -> Review:
    item = queue.items.get(position=position)
    scores = dict.fromkeys(rubric.NAMES, score)
    return Review.objects.create(
        item=item, reviewer=reviewer, state=state, verdict=verdict, submitted="2026-11-01T00:00Z", **scores
    )


@pytest.fixture
def reviewers(db: None) -> list[User]:
    return [member(name, "REVIEWER") for name in ("first", "second", "third")]


@pytest.fixture
def queue(owner: User, reviewers: list[User]) -> ReviewQueue:
    """Six runs, two reviews of each: they differ by a lot on the fourth, a little on the second, by nothing that counts
    on the third."""
    queue = ReviewQueue.objects.create(name="All <b>", owner=owner, reviewers_per_item=2)
    given = [(1, 1, "reject", "reject"), (3, 4, "revise", "accept"), (4, 5, "accept", "accept")]
    given += [(1, 5, "reject", "accept"), (2, 2, "revise", "revise"), (4, 4, "accept", "accept")]
    for position, (one, other, first, second) in enumerate(given, 1):
        run = make_run(owner, unit=position, question=f"What about {position}?")
        queue.items.create(run=run, position=position, complete=True)
        opinion(queue, position, reviewers[0], one, first)
        opinion(queue, position, reviewers[1], other, second)
    return queue


def page_of(queue: ReviewQueue, user: User, query: str = "?figures=now") -> str:
    client = Client()
    client.force_login(user)
    return client.get(f"/review/{queue.pk}/agreement/{query}").content.decode()


def test_figures_stand_by_line_and_by_reviewer_with_a_warning(queue: ReviewQueue, reviewers: list[User]) -> None:
    page = page_of(queue, reviewers[0])
    assert all(line.words in page for line in LINES)
    assert "Few items." in page
    assert page.count(", 95 % interval") == 2 * len(LINES) + 1, "of every line two measures, and of the pair one"
    assert re.search(r"first <span[^>]*>and</span> second", page)
    assert "quadratic weights" not in page
    assert "quadratic weights" in page_of(queue, reviewers[0], "?figures=now&line=samples")
    assert "There is one reviewer alone." in page, "alpha without one of two"


def test_disagreements_come_widest_first_with_both_opinions_side_by_side(
    queue: ReviewQueue, reviewers: list[User]
) -> None:
    page = page_of(queue, reviewers[1], "")
    assert re.findall(r"What about (\d)\?", page) == ["4", "2"]
    assert page.count("2 reviews side by side") == 2
    assert "All &lt;b&gt;" in page
    assert page.index('class="verdict reject"') < page.index('class="verdict revise"')


def test_the_page_is_there_before_the_figures_are(queue: ReviewQueue, reviewers: list[User]) -> None:
    client = Client()
    client.force_login(reviewers[0])
    assert "Measuring agreement" in page_of(queue, reviewers[0], "")
    part = client.get(f"/review/{queue.pk}/agreement/", headers={"HX-Request": "true", "HX-Target": "figures"})
    assert part.content.decode().startswith('<div id="figures"')


def test_in_a_blind_queue_only_who_submitted_everything_sees_it(
    queue: ReviewQueue, reviewers: list[User], owner: User, teammate: User
) -> None:
    queue.items.create(run=make_run(owner, unit=7), position=7)
    assert "Hidden until you have reviewed" in page_of(queue, reviewers[0]), "the seventh is due"
    opinion(queue, 7, reviewers[0], 3, "revise")
    assert "By criterion" in page_of(queue, reviewers[0])
    for user in (reviewers[1], reviewers[2], owner, teammate):
        assert "Hidden until you have reviewed" in page_of(queue, user)
    assert "By criterion" in page_of(queue, member("admin", "ADMIN"))
    ReviewQueue.objects.update(closed="2026-11-02T00:00Z")
    assert "By criterion" in page_of(queue, teammate)


def test_drafts_count_for_nothing(queue: ReviewQueue, reviewers: list[User]) -> None:
    opinion(queue, 3, reviewers[2], 1, "reject", state="draft")
    ReviewQueue.objects.update(closed="2026-11-02T00:00Z")
    page = page_of(queue, reviewers[0])
    assert re.findall(r"What about (\d)\?", page) == ["4", "2"]
    assert "third" not in page


def test_a_queue_without_opinions_has_its_own_words(owner: User) -> None:
    queue = ReviewQueue.objects.create(name="new", owner=owner, blind=False)
    page = page_of(queue, owner)
    assert "Nothing has been submitted yet" in page
    assert measures.ONE_REVIEWER in page


def test_the_page_asks_the_database_as_often_for_many_as_for_few(
    queue: ReviewQueue, reviewers: list[User], owner: User, django_assert_num_queries
) -> None:
    client = Client()
    client.force_login(reviewers[0])
    with CaptureQueriesContext(connection) as few:
        client.get(f"/review/{queue.pk}/agreement/")
    for position in range(7, 30):
        queue.items.create(run=make_run(owner, unit=position), position=position, complete=True)
        opinion(queue, position, reviewers[0], 1, "reject")
        opinion(queue, position, reviewers[1], 5, "accept")
    with django_assert_num_queries(len(few)):
        client.get(f"/review/{queue.pk}/agreement/")
