"""The lists of queues and of their items: what an address chooses, what columns show, what waits for one's own."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from experiments.core.actors import Actor
from experiments.exchange import export_query
from experiments.exchange.safe_zip import ExchangeError
from experiments.models import Export, ExportSubject, ReviewQueue, Run
from experiments.reviews import actions, queue_lists, rubric
from experiments.reviews.lists import items_from
from tests.support.builders import make_run
from tests.support.people import member

pytestmark = pytest.mark.django_db
OPINION = {**dict.fromkeys((line.name for line in rubric.LINES), 4), "verdict": "accept"}


def queue_of(owner: User, name: str, units: int = 2, each: int = 2, **fields: Any) -> ReviewQueue:
    made = [make_run(owner, status="concluded", **({"unit": unit} | fields)).pk for unit in range(units)]
    queue = ReviewQueue(name=name, reviewers_per_item=each)
    return actions.make_queue(Actor(owner), Run.objects.filter(pk__in=made).order_by("pk"), queue)


def review(queue: ReviewQueue, user: User) -> None:
    taken = actions.take_next(Actor(user), queue)
    assert taken is not None
    actions.submit(Actor(user), taken.item_id, taken.version, rubric.opinion_from(OPINION), 0)


def names(user: User, **asked: str) -> list[str]:
    return [queue.name for queue in queue_lists.queues_from(asked, user).rows]


def test_an_address_chooses_queues_by_what_they_hold_and_how_they_stand(owner: User) -> None:
    first = member("first", "REVIEWER")
    queue_of(owner, "Early layers", layer="layer1")
    late = queue_of(owner, "Late layers", layer="layer4", each=1)
    shut = queue_of(owner, "A pilot", backbone="openai")
    actions.close_queue(Actor(owner), shut)
    assert names(first) == ["A pilot", "Late layers", "Early layers"]
    assert names(first, q="lay late") == ["Late layers"]
    assert names(first, layer="layer1") == ["Early layers"]
    assert names(first, backbone="openai") == ["A pilot"]
    assert names(first, status="closed") == ["A pilot"]
    assert names(first, sort="name") == ["A pilot", "Early layers", "Late layers"]
    for _ in range(2):
        review(late, first)
    assert names(first, status="waiting") == ["Early layers"], "of the other they have done their part"
    told = queue_lists.queues_from({"status": "half-open", "q": "early"}, first)
    assert ([queue.name for queue in told.rows], list(told.problems)) == (["Early layers"], ["status"])


def test_the_list_tells_nobody_a_verdict_before_their_own(owner: User) -> None:
    first, second = member("first", "REVIEWER"), member("second", "REVIEWER")
    queue = queue_of(owner, "Pass", units=1, each=1)
    again = ReviewQueue(name="Second look", reviewers_per_item=1)
    again = actions.make_queue(Actor(owner), Run.objects.all(), again, [second])
    review(queue, first)
    assert Run.objects.get().verdict == "accept"
    for who, seen in ((owner, [("accept", "Accepted", 1)]), (second, [])):
        assert queue_lists.read_contents([queue], who)[queue.pk].verdicts == seen
        client = Client()
        client.force_login(who)
        page = client.get(reverse("review-queue", args=[queue.pk])).content.decode()
        assert ('class="verdict accept"' in page) is bool(seen)
        chosen = items_from(queue, {"verdict": "accept"}, who).rows.count()
        assert chosen == len(seen), "nor may the list be narrowed down by it"
        assert export_query.select_rows(ExportSubject.REVIEWS, f"queue={queue.pk}", who).count() == len(seen)


def test_one_press_exports_what_each_list_holds_now(owner: User, as_owner: Client) -> None:
    queue = queue_of(owner, "Pass", layer="layer4", each=1)
    review(queue, member("first", "REVIEWER"))
    for address, button in (
        (f"{reverse('review')}?q=pass", "queues"),
        (f"{reverse('review-queue', args=[queue.pk])}?layer=layer4&model=toybox", "reviews"),
    ):
        page = as_owner.get(address).content.decode()
        form = page.partition('class="export-list"')[2].partition("</form>")[0]
        assert f'name="what" value="{button}"' in form
        query = form.partition('name="query" value="')[2].partition('"')[0].replace("&amp;", "&")
        as_owner.post(reverse("exports-make"), {"what": button, "format": "csv", "query": query})
    queues, reviews = Export.objects.order_by("pk")
    assert (queues.what, queues.query) == ("queues", "q=pass")
    assert reviews.query == f"queue={queue.pk}&model=toybox&layer=layer4"
    assert [row.pk for row in export_query.select_rows(ExportSubject.QUEUES, queues.query, owner)] == [queue.pk]
    assert "Review queues with the words “pass”" in as_owner.get(reverse("exports")).content.decode()


@pytest.mark.parametrize(
    ("what", "query"), [("queues", "status=ajar"), ("reviews", "show=half"), ("sweeps", "status=x")]
)
def test_a_file_is_refused_for_what_makes_no_sense(owner: User, what: str, query: str) -> None:
    with pytest.raises(ExchangeError, match=r"^(status|show): "):
        export_query.select_rows(ExportSubject(what), query, owner)


def test_pages_ask_the_database_as_often_for_many_as_for_few(
    owner: User, as_owner: Client, django_assert_num_queries: Any
) -> None:
    queue = queue_of(owner, "Pass")
    addresses = [reverse("review"), reverse("review-queue", args=[queue.pk])]
    few = []
    for address in addresses:
        as_owner.get(address)
        with CaptureQueriesContext(connection) as asked:
            as_owner.get(address)
        few.append(len(asked))
    for number in range(4):
        queue_of(owner, f"More {number}", units=3)
    for address, count in zip(addresses, few, strict=True):
        with django_assert_num_queries(count):
            as_owner.get(address)
