"""What a program claimed stands apart from what was measured, wherever an observation is shown."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.core import transcript
from experiments.display import events
from experiments.display.card_drawing import draw_claim
from experiments.display.evidence import read_evidence
from experiments.exchange import export_query, run_html, tables
from experiments.models import ExportSubject, Format, Observation, Run
from tests.support.api_world import token
from tests.support.builders import experiment, make_run, replied, started
from tests.support.pictures import logged, seen
from workers.jobs import parquet

pytestmark = pytest.mark.django_db
MARK = "logged as 7.10"


@pytest.fixture
def run(owner: User) -> Run:
    """A run whose program was right, was wrong, and one image of which nobody knows what was measured."""
    run = make_run(owner)
    right = seen("right", 1.0, "red", claimed=1.0, measured=True)
    wrong = seen("wrong", 0.2, "blue", claimed=7.1, measured=True, differs=True)
    unknown = seen("of old", 3.0, "green")
    told = [("started", started()), ("reply", replied()), ("experiment", experiment())]
    told.append(("result", replace(logged(right, wrong, unknown), best=9.41, measured=3)))
    for kind, payload in told:
        transcript.append(run.pk, kind, payload)
    run.refresh_from_db()
    return run


def rows() -> list[tuple[Any, ...]]:
    return list(Observation.objects.values_list("title", "activation", "claimed", "measured", "differs"))


def test_the_row_keeps_both_numbers(run: Run) -> None:
    assert rows() == [
        ("right", 1.0, 1.0, True, False),
        ("wrong", 0.2, 7.1, True, True),
        ("of old", 3.0, None, False, False),
    ]


def test_the_best_of_a_run_is_the_best_that_was_measured_be_it_logged_or_not(run: Run) -> None:
    assert run.best_activation == 9.41


def test_the_transcript_marks_what_was_logged_wrongly(run: Run) -> None:
    drawn = events.render_event(run.events.get(kind="result"), run)
    assert drawn.count(MARK) == 1
    assert "1 image was logged with another number" in drawn
    assert drawn.count(">as logged<") == 1


def test_an_event_of_old_has_no_claims(run: Run) -> None:
    event = run.events.get(kind="result")
    for each in event.payload["entries"][0]["observations"]:
        for name in ("claimed", "measured", "differs", "plain"):
            del each[name]
    drawn = events.render_event(event, run)
    assert drawn.count(">as logged<") == 3
    assert "another number" not in drawn


@pytest.mark.parametrize("query", ["?differs=on", "?differs=on&model=toybox", "?differs=on&origin=generated&low=0"])
def test_the_gallery_finds_what_was_logged_wrongly(run: Run, as_owner: Client, query: str) -> None:
    page = as_owner.get(f"/experiments/{query}").content.decode()
    assert page.count('class="gallery-item') == 1
    assert MARK in page
    assert [row.title for row in export_query.select_rows(ExportSubject.OBSERVATIONS, query.lstrip("?"))] == ["wrong"]


def test_the_tab_of_images_marks_it(run: Run, as_owner: Client) -> None:
    assert MARK in as_owner.get(f"{run.get_absolute_url()}?tab=images").content.decode()


def test_the_evidence_of_a_unit_marks_it_and_nothing_that_is_right(run: Run) -> None:
    marks = {each.card.title: str(draw_claim(each.card)) for each in read_evidence([run], "", None).others.strongest}
    assert marks["right"] == ""
    assert MARK in marks["wrong"]
    assert "as logged" in marks["of old"]


def test_the_api_has_both_numbers_and_the_filter(run: Run, client: Client, owner: User) -> None:
    head = token(owner)
    (found,) = client.get("/api/v1/observations?differs=true", headers=head).json()["items"]
    assert [found[name] for name in ("title", "activation", "claimed", "measured", "differs")] == [
        *("wrong", 0.2, 7.1, True, True)
    ]
    assert len(client.get("/api/v1/observations", headers=head).json()["items"]) == 3


def test_tables_have_both_numbers(run: Run) -> None:
    files = {form: io.BytesIO() for form in (Format.CSV, Format.JSONL)}
    for form, file in files.items():
        tables.write(tables.OBSERVATIONS, form, Observation.objects.all(), file, lambda *_: None)
    lines = [json.loads(line) for line in files[Format.JSONL].getvalue().splitlines()]
    assert [(line["claimed"], line["measured"], line["claim_differs"]) for line in lines] == [
        *((1.0, True, False), (7.1, True, True), (None, False, False))
    ]
    cells = list(csv.DictReader(io.StringIO(files[Format.CSV].getvalue().decode("utf-8-sig"))))
    assert [cells[1][name] for name in ("activation", "claimed", "measured", "claim_differs")] == [
        *("0.2", "7.1", "true", "true")
    ]
    types = dict(zip((schema := parquet.schema_of(tables.OBSERVATIONS)).names, schema.types, strict=True))
    assert (str(types["claimed"]), str(types["measured"])) == ("double", "bool")


def test_a_page_to_give_away_marks_it(run: Run) -> None:
    page = "".join(run_html.document(run, run.events.order_by("seq"), lambda key: ""))
    assert MARK in page
