"""Reviews and agreement as files: the same in every format, and no more than the pages of a queue show."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from experiments.models import Item, Queue, Review
from experiments.models.transfer import Format, What
from experiments.transfer import choosing, tables
from experiments.transfer.reading import Refused
from tests.builders import make_run
from tests.conftest import member

pytestmark = pytest.mark.django_db

SCORES = ("supported", "specific", "complete", "confounds", "samples")


@pytest.fixture
def reviewers() -> list[User]:
    return [member(name, "REVIEWER") for name in ("first", "second", "third")]


@pytest.fixture
def queue(owner: User, reviewers: list[User]) -> Queue:
    """Two items, each reviewed by the first two of three reviewers; blind and open."""
    queue = Queue.objects.create(name="Look", owner=owner, blind=True, reviewers_per_item=3)
    for position, verdict in enumerate(("accept", "reject"), 1):
        item = Item.objects.create(queue=queue, run=make_run(owner, unit=position), position=position)
        for slot, reviewer in enumerate(reviewers[:2], 1):
            known = {"verdict": verdict, "note": "=x", "submitted": timezone.now(), **dict.fromkeys(SCORES, position)}
            Review.objects.create(item=item, reviewer=reviewer, slot=slot, state="submitted", **known)
    return queue


def written(what: What, viewer: User, form: Format = Format.JSONL, query: str = "") -> str:
    target = io.BytesIO()
    tables.write(tables.TABLES[what], form, choosing.chosen(what, query, viewer), target, lambda *_: None)
    return target.getvalue().decode()


def rows(what: What, viewer: User, query: str = "") -> list[dict[str, Any]]:
    return [json.loads(line) for line in written(what, viewer, query=query).splitlines()]


def test_reviews_are_a_table(queue: Queue, reviewers: list[User]) -> None:
    found = rows(What.REVIEWS, reviewers[0], f"queue={queue.pk}")
    assert [(row["item"], row["reviewer"], row["verdict"], row["samples"]) for row in found] == [
        (1, "first", "accept", 1),
        (1, "second", "accept", 1),
        (2, "first", "reject", 2),
        (2, "second", "reject", 2),
    ]
    (row, *_) = csv.DictReader(io.StringIO(written(What.REVIEWS, reviewers[0], Format.CSV)))
    assert (row["note"], row["queue_name"]) == ("'=x", "Look")
    assert [row["unit"] for row in rows(What.REVIEWS, reviewers[0], "unit=2&model=toybox&layer=layer4")] == [2, 2]


def test_agreement_is_a_table_of_every_measure(queue: Queue, reviewers: list[User]) -> None:
    found = rows(What.AGREEMENT, reviewers[0])
    assert len(found) == 6 * 3 == choosing.chosen(What.AGREEMENT, "", reviewers[0]).count()
    verdict = {row["measure"]: row for row in found if row["line"] == "verdict"}
    assert verdict["krippendorff_alpha"]["value"] == pytest.approx(1)
    assert (verdict["cohen_kappa"]["one"], verdict["cohen_kappa"]["other"]) == ("first", "second")
    assert verdict["cohen_kappa"]["n"] == 2


def test_who_has_yet_to_review_exports_nothing_of_others(queue: Queue, reviewers: list[User]) -> None:
    for what in (What.REVIEWS, What.AGREEMENT):
        assert rows(what, reviewers[2]) == []
    Queue.objects.update(closed=timezone.now())
    assert len(rows(What.REVIEWS, reviewers[2])) == 4
    assert len(rows(What.AGREEMENT, reviewers[2])) == 18


@pytest.mark.parametrize("query", ["queue=x", "queue=1e3", "reviewer=first"])
def test_a_filter_of_reviews_that_makes_no_sense_is_refused(queue: Queue, owner: User, query: str) -> None:
    with pytest.raises(Refused):
        choosing.chosen(What.REVIEWS, query, owner)


def test_both_are_asked_for_by_page_and_api(queue: Queue, reviewers: list[User], client: Any) -> None:
    client.force_login(reviewers[0])
    assert "this holds 4 reviews" in client.get("/exports/?what=reviews").content.decode()
    assert "this holds 18 measures" in client.get("/exports/?what=agreement").content.decode()
    client.force_login(reviewers[2])
    assert "this holds 0 reviews" in client.get("/exports/?what=reviews").content.decode()
