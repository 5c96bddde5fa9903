"""Opinions and agreement as files: the same in every format, and no more than the pages show."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from experiments.core.actors import Actor
from experiments.core.errors import StateConflict
from experiments.exchange import export_query, tables
from experiments.exchange.safe_zip import ExchangeError
from experiments.models import Adjudication, ExportSubject, Format, Review, ReviewItem, ReviewQueue
from experiments.reviews import actions
from tests.support.builders import make_run
from tests.support.bundles import exported
from tests.support.people import member

pytestmark = pytest.mark.django_db

SCORES = ("supported", "specific", "complete", "confounds", "samples")


@pytest.fixture
def reviewers() -> list[User]:
    return [member(name, "REVIEWER") for name in ("first", "second", "third")]


@pytest.fixture
def queue(owner: User, reviewers: list[User]) -> ReviewQueue:
    """Two items, each reviewed by the first two of three reviewers; blind and open."""
    queue = ReviewQueue.objects.create(name="Look", owner=owner, blind=True, reviewers_per_item=3)
    for position, verdict in enumerate(("accept", "reject"), 1):
        item = ReviewItem.objects.create(queue=queue, run=make_run(owner, unit=position), position=position)
        for slot, reviewer in enumerate(reviewers[:2], 1):
            known = {"verdict": verdict, "note": "=x", "submitted": timezone.now(), **dict.fromkeys(SCORES, position)}
            Review.objects.create(item=item, reviewer=reviewer, slot=slot, state="submitted", **known)
    return queue


def written(what: ExportSubject, viewer: User, form: Format = Format.JSONL, query: str = "") -> str:
    target = io.BytesIO()
    tables.write(tables.TABLES[what], form, export_query.select_rows(what, query, viewer), target, lambda *_: None)
    return target.getvalue().decode("utf-8-sig")


def rows(what: ExportSubject, viewer: User, query: str = "") -> list[dict[str, Any]]:
    return [json.loads(line) for line in written(what, viewer, query=query).splitlines()]


def test_reviews_are_a_table(queue: ReviewQueue, reviewers: list[User]) -> None:
    found = rows(ExportSubject.REVIEWS, reviewers[0], f"queue={queue.pk}")
    assert [(row["item"], row["reviewer"], row["verdict"], row["samples"]) for row in found] == [
        (1, "first", "accept", 1),
        (1, "second", "accept", 1),
        (2, "first", "reject", 2),
        (2, "second", "reject", 2),
    ]
    (row, *_) = csv.DictReader(io.StringIO(written(ExportSubject.REVIEWS, reviewers[0], Format.CSV)))
    assert (row["note"], row["queue_name"]) == ("'=x", "Look")
    assert [row["unit"] for row in rows(ExportSubject.REVIEWS, reviewers[0], "unit=2&model=toybox&layer=layer4")] == [
        2,
        2,
    ]


def test_agreement_is_a_table_of_every_measure(queue: ReviewQueue, reviewers: list[User]) -> None:
    found = rows(ExportSubject.AGREEMENT, reviewers[0])
    assert len(found) == 6 * 3 == export_query.select_rows(ExportSubject.AGREEMENT, "", reviewers[0]).count()
    verdict = {row["measure"]: row for row in found if row["line"] == "verdict"}
    assert verdict["krippendorff_alpha"]["value"] == pytest.approx(1)
    assert (verdict["cohen_kappa"]["one"], verdict["cohen_kappa"]["other"]) == ("first", "second")
    assert verdict["cohen_kappa"]["n"] == 2


def test_who_has_yet_to_review_exports_nothing_of_others(queue: ReviewQueue, reviewers: list[User]) -> None:
    for what in (ExportSubject.REVIEWS, ExportSubject.AGREEMENT):
        assert rows(what, reviewers[2]) == []
    ReviewQueue.objects.update(closed=timezone.now())
    assert len(rows(ExportSubject.REVIEWS, reviewers[2])) == 4
    assert len(rows(ExportSubject.AGREEMENT, reviewers[2])) == 18


@pytest.mark.parametrize("query", ["queue=x", "queue=1e3", "reviewer=first"])
def test_a_filter_of_reviews_that_makes_no_sense_is_refused(queue: ReviewQueue, owner: User, query: str) -> None:
    with pytest.raises(ExchangeError):
        export_query.select_rows(ExportSubject.REVIEWS, query, owner)


def test_both_are_asked_for_by_page_and_api(queue: ReviewQueue, reviewers: list[User], client: Any) -> None:
    client.force_login(reviewers[0])
    assert "This selection holds 4 reviews" in client.get("/exports/?what=reviews").content.decode()
    assert "This selection holds 18 measures" in client.get("/exports/?what=agreement").content.decode()
    client.force_login(reviewers[2])
    assert "This selection holds 0 reviews" in client.get("/exports/?what=reviews").content.decode()


# --- final verdicts -----------------------------------------------------------------------------------------


@pytest.fixture
def final(queue: ReviewQueue, owner: User) -> Adjudication:
    """On the first item; one that stood before it is kept."""
    ReviewItem.objects.update(complete=True)
    item = queue.items.get(position=1)
    Adjudication.objects.create(item=item, adjudicator=owner, verdict="accept", reason="At first.")
    known = {"verdict": "revise", "corrected_label": "=blue balls", "reason": "Both <b>are</b> wrong."}
    return Adjudication.objects.create(item=item, adjudicator=owner, **known)


def test_final_verdicts_are_a_table(final: Adjudication, reviewers: list[User]) -> None:
    found = rows(ExportSubject.VERDICTS, reviewers[2], f"queue={final.item.queue_id}")
    known = [(row["item"], row["verdict"], row["reason"], row["adjudicator"], row["stands"]) for row in found]
    assert known == [(1, "accept", "At first.", "owner", False), (1, "revise", "Both <b>are</b> wrong.", "owner", True)]
    assert (found[1]["run"], found[1]["model"], found[1]["unit"]) == (final.item.run_id, "toybox", 1)
    row = list(csv.DictReader(io.StringIO(written(ExportSubject.VERDICTS, reviewers[2], Format.CSV))))[1]
    assert (row["corrected_label"], row["stands"]) == ("'=blue balls", "true")
    assert len(rows(ExportSubject.VERDICTS, reviewers[2], "unit=1")) == 2
    assert rows(ExportSubject.VERDICTS, reviewers[2], "unit=2") == []
    with pytest.raises(ExchangeError):
        export_query.select_rows(ExportSubject.VERDICTS, "queue=x", reviewers[2])


def test_a_final_verdict_is_hidden_from_who_is_to_review_its_run_unseen(
    final: Adjudication, queue: ReviewQueue, owner: User, reviewers: list[User]
) -> None:
    again = ReviewQueue.objects.create(name="Again", owner=owner, blind=True, reviewers_per_item=1)
    ReviewItem.objects.create(queue=again, run=final.item.run, position=1)
    assert rows(ExportSubject.VERDICTS, reviewers[0]) == [], "nor from who may still take a review of it back"
    assert rows(ExportSubject.VERDICTS, reviewers[2]) == []
    assert len(rows(ExportSubject.VERDICTS, member("viewer", "VIEWER"))) == 2
    again.closed = timezone.now()
    again.save()
    assert len(rows(ExportSubject.VERDICTS, reviewers[2])) == 2
    assert export_query.select_rows(ExportSubject.VERDICTS, "", None).count() == 0, "nobody in particular sees none"


def test_final_verdicts_are_asked_for_by_page_and_api(final: Adjudication, reviewers: list[User], client: Any) -> None:
    client.force_login(reviewers[2])
    assert "This selection holds 2 final verdicts" in client.get("/exports/?what=verdicts").content.decode()


# --- files --------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("redis_url")
@pytest.mark.parametrize(
    ("what", "count"), [(ExportSubject.REVIEWS, 4), (ExportSubject.VERDICTS, 2), (ExportSubject.AGREEMENT, 18)], ids=str
)
def test_each_holds_the_same_in_every_format(
    final: Adjudication, reviewers: list[User], what: ExportSubject, count: int
) -> None:
    from pyarrow import parquet

    ReviewQueue.objects.update(closed=timezone.now())
    files = {form: exported(reviewers[2], what, form)[1] for form in ("jsonl", "csv", "parquet")}
    lines = [json.loads(line) for line in files["jsonl"].splitlines()]
    cells = list(csv.DictReader(io.StringIO(files["csv"].decode("utf-8-sig"))))
    table = parquet.read_table(io.BytesIO(files["parquet"])).to_pylist()
    assert len(lines) == len(cells) == len(table) == count
    for line, row, cell in zip(lines, table, cells, strict=True):
        assert list(line) == list(row) == list(cell)
        plain = {name: value.isoformat() if hasattr(value, "isoformat") else value for name, value in row.items()}
        assert plain == line
        shown = {name: str(value).lower() if isinstance(value, bool) else value for name, value in line.items()}
        for name, value in shown.items():
            assert cell[name] in ({""} if value is None else {str(value), f"'{value}"})


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("redis_url")
@pytest.mark.parametrize(
    ("what", "form"),
    [(ExportSubject.REVIEWS, "csv"), (ExportSubject.AGREEMENT, "parquet"), (ExportSubject.BUNDLE, "zip")],
    ids=str,
)
def test_whose_file_holds_opinions_of_others_cannot_take_back_their_own(
    queue: ReviewQueue, reviewers: list[User], what: ExportSubject, form: str
) -> None:
    assert actions.find_undoable(queue, reviewers[0])
    assert exported(reviewers[0], ExportSubject.RUNS, "csv")[0].status == "done"
    assert actions.find_undoable(queue, reviewers[0]), "a file without opinions shows none"
    job, data = exported(reviewers[0], what, form)
    assert (job.status, bool(data)) == ("done", True)
    assert not actions.find_undoable(queue, reviewers[0])
    with pytest.raises(StateConflict, match="have seen other reviews"):
        actions.undo(Actor(reviewers[0]), queue)
    assert actions.find_undoable(queue, reviewers[1]), "who has seen nothing is not meant"
