"""A run goes out as a bundle and comes in again: nothing is lost, nothing comes twice, hostile words stay words."""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from experiments.core import transcript
from experiments.exchange import export_query, tables
from experiments.exchange.safe_zip import ExchangeError
from experiments.models import (
    Event,
    ExportSubject,
    Image,
    ImportedRun,
    Label,
    Observation,
    Run,
)
from experiments.models.mapped import MAP_COLUMNS
from experiments.search.runs import runs_matching
from tests.support.builders import make_run, started
from tests.support.bundles import HOSTILE, brought, bundled, exported, forgotten, full_run

pytestmark = pytest.mark.usefixtures("redis_url")


@pytest.fixture
def run(owner: User) -> Run:
    return full_run(owner)


def test_a_round_trip_loses_nothing(run: Run, teammate: User, tmp_path: Path) -> None:
    before = [
        list(Event.objects.values("seq", "kind", "payload", "time")),
        list(
            Observation.objects.values(
                *("position", "title", "activation", "image", "masked", "origin", "prompt", "seed"), *MAP_COLUMNS
            )
        ),
        list(
            Image.objects.order_by("key").values("key", "width", "height", "origin", "prompt", "seed", "scene", "raw")
        ),
        list(Label.objects.values("text", "source", "position", "scores", "units", "run__tags__name")),
        bytes(run.experiments.get().state),
    ]
    row = {
        name: value for name, value in vars(run).items() if name not in {"_state", "id", "_prefetched_objects_cache"}
    }
    there, first = run.pk, bundled(run, path=tmp_path / "first.zip")
    forgotten(run)
    (taken,) = brought(first, teammate)
    again = Run.objects.get()
    assert not taken.known
    assert again == taken.run
    assert [
        list(Event.objects.values("seq", "kind", "payload", "time")),
        list(
            Observation.objects.values(
                *("position", "title", "activation", "image", "masked", "origin", "prompt", "seed"), *MAP_COLUMNS
            )
        ),
        list(
            Image.objects.order_by("key").values("key", "width", "height", "origin", "prompt", "seed", "scene", "raw")
        ),
        list(Label.objects.values("text", "source", "position", "scores", "units", "run__tags__name")),
        bytes(again.experiments.get().state),
    ] == before
    assert again.owner == teammate
    left = {"due", "run_queue_id", "claims", "fence", "owner_id"}
    assert {name: value for name, value in vars(again).items() if name in row and name not in left} == {
        name: value for name, value in row.items() if name not in left
    }
    assert list(runs_matching("red ball")) == [again.pk]
    second = bundled(again, path=tmp_path / "second.zip")
    with zipfile.ZipFile(first) as one, zipfile.ZipFile(second) as two:
        data = {name: one.read(name) for name in one.namelist() if name not in {"run.html", "manifest.json"}}
        assert {name: two.read(name) for name in data} == data
        assert one.namelist() == two.namelist()
        number = "MAIA Web · run {}<"
        page = one.read("run.html").decode().replace(number.format(there), number.format(again.pk))
        assert two.read("run.html").decode() == page, "but for its number here"


def test_the_same_run_gives_the_same_bytes(run: Run, tmp_path: Path) -> None:
    one, two = bundled(run, path=tmp_path / "1.zip"), bundled(run, path=tmp_path / "2.zip")
    assert one.read_bytes() == two.read_bytes()


def test_a_bundle_that_is_brought_twice_is_recognised(run: Run, owner: User, tmp_path: Path) -> None:
    path = bundled(run, path=tmp_path / "run.zip")
    (here,) = brought(path, owner)
    assert (here.known, here.run) == (True, run)
    forgotten(run)
    (first,), (second,) = brought(path, owner), brought(path, owner)
    assert (first.known, second.known, second.run) == (False, True, first.run)
    assert Run.objects.count() == 1


def test_who_asked_is_kept_by_name_and_the_importer_answers_for_the_run(
    run: Run, teammate: User, tmp_path: Path
) -> None:
    number, path = run.pk, bundled(run, path=tmp_path / "run.zip")
    forgotten(run)
    brought(path, teammate)
    imported_run = ImportedRun.objects.select_related("run").get()
    assert (imported_run.run.owner, imported_run.owner, imported_run.number) == (teammate, "owner", number), (
        "of the same name or not"
    )
    assert imported_run.name == "run.zip"


@pytest.mark.parametrize("numbers", [(8, 9), (9, 10)])
def test_a_fork_finds_its_parent_again_whichever_comes_first(
    numbers: tuple[int, int], owner: User, tmp_path: Path
) -> None:
    """By name the folder of run 10 stands before that of run 9."""
    above, below = numbers
    run = full_run(owner, pk=above)
    fork = full_run(owner, "a fork", pk=below, parent=run, fork_round=1)
    path = bundled(run, fork, path=tmp_path / "both.zip")
    forgotten(fork, run)
    brought(path, owner)
    parent, child = Run.objects.get(fork_round=None), Run.objects.get(fork_round=1)
    assert (child.parent, parent.parent) == (parent, None)
    assert "a fork" in child.question


def test_a_run_that_had_not_ended_arrives_as_one_that_cannot_go_on(owner: User, tmp_path: Path) -> None:
    run = make_run(owner)
    transcript.append(run.pk, "started", started())
    run.refresh_from_db()
    path = bundled(run, path=tmp_path / "run.zip")
    run.delete()
    (taken,) = brought(path, owner)
    assert taken.run.status == "cancelled"
    assert "had not ended" in taken.run.reason


def test_what_is_known_of_an_image_here_is_kept(run: Run, owner: User, tmp_path: Path) -> None:
    path = bundled(run, path=tmp_path / "run.zip")
    run.delete()
    Image.objects.filter(prompt="a red ball").update(prompt="ours")
    brought(path, owner)
    assert not Image.objects.filter(prompt="a red ball").exists()


class Seen(HTMLParser):
    """The tags and attributes of a page, and where its sources lie."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.sources: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.sources |= {str(value).partition(",")[0] for name, value in attrs if name == "src"}


# --- the HTML file --------------------------------------------------------------------------------------


def test_the_html_file_shows_hostile_words_as_words_and_asks_for_nothing(owner: User, tmp_path: Path) -> None:
    path = bundled(full_run(owner, HOSTILE), path=tmp_path / "run.zip")
    page = zipfile.ZipFile(path).read("run.html").decode()
    seen = Seen()
    seen.feed(page)
    assert "&lt;script&gt;" in page
    assert seen.tags.isdisjoint({"script", "link", "iframe", "object", "embed", "form", "a", "base"})
    assert seen.attributes.isdisjoint({"href", "action", "style", "srcset", "onerror", "onclick", "onload"})
    assert seen.sources == {"data:image/webp;base64"}
    assert set(re.findall(r"url\([^)]*\)", page)) == {'url("#heat-colours")'}, "what lies in the page itself"
    assert "default-src 'none'" in page


# --- tables -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "what", [ExportSubject.RUNS, ExportSubject.EXPERIMENTS, ExportSubject.OBSERVATIONS, ExportSubject.LABELS]
)
@pytest.mark.django_db(transaction=True)
def test_every_table_holds_the_same_in_every_format(what: str, owner: User) -> None:
    from pyarrow import parquet

    full_run(owner), full_run(owner, "another")
    lines = [json.loads(line) for line in exported(owner, what, "jsonl")[1].splitlines()]
    rows = list(csv.DictReader(io.StringIO(exported(owner, what, "csv")[1].decode("utf-8-sig"))))
    columns = parquet.read_table(io.BytesIO(exported(owner, what, "parquet")[1])).to_pylist()
    assert (
        len(lines) == len(rows) == len(columns) == {"runs": 2, "experiments": 2, "observations": 4, "labels": 4}[what]
    )
    assert list(rows[0]) == list(lines[0]) == list(columns[0])
    for name, value in lines[0].items():
        assert rows[0][name] in {str(value) if value is not None else "", f"'{value}", json.dumps(value)}


@pytest.mark.django_db(transaction=True)
def test_text_that_a_spreadsheet_would_run_is_marked_as_text(owner: User) -> None:
    full_run(owner, "plain")
    for words in ("=cmd()", "+1", "-1", "@x", "\t=1", " =2"):
        run = make_run(owner, question=words)
        (row,) = csv.DictReader(io.StringIO(exported(owner, "runs", "csv", f"run={run.pk}")[1].decode("utf-8-sig")))
        assert row["question"] == f"'{words}"
    rows = list(csv.DictReader(io.StringIO(exported(owner, "observations", "csv")[1].decode("utf-8-sig"))))
    assert rows[1]["activation"] == "-1.5", "numbers stay numbers"


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("", 4),
        ("origin=edited", 2),
        ("low=0", 2),
        ("high=0&q=edit", 2),
        ("model=toybox&unit=7&layer=layer4", 4),
        ("status=failed", 0),
        ("status=concluded&sort=cost&page=3", 4),
        ("q=another", 2),
        ("owner=nobody", 0),
    ],
)
def test_a_filter_chooses(query: str, count: int, owner: User) -> None:
    full_run(owner), full_run(owner, "another")
    assert export_query.select_rows(ExportSubject.OBSERVATIONS, query).count() == count


@pytest.mark.parametrize(
    ("query", "numbers"), [("", [1, 1]), ("low=100", []), ("high=100&q=another", [1]), ("q=nothing+like+it", [])]
)
def test_experiments_are_chosen_as_their_page_chooses_them(query: str, numbers: list[int], owner: User) -> None:
    full_run(owner), full_run(owner, "another")
    assert [each.number for each in export_query.select_rows(ExportSubject.EXPERIMENTS, query)] == numbers


@pytest.mark.parametrize("what", [ExportSubject.OBSERVATIONS, ExportSubject.EXPERIMENTS])
def test_words_that_cannot_be_looked_for_are_refused(what: ExportSubject) -> None:
    with pytest.raises(ExchangeError, match="wildcards are ordinary characters"):
        export_query.select_rows(what, "q=%25%25")


@pytest.mark.parametrize("query", ["unit=abc", "status=odd", "low=high", "nonsense=1", "run=1e9", "origin=odd"])
@pytest.mark.django_db(transaction=True)
def test_a_filter_that_makes_no_sense_is_refused_with_the_reason(query: str, owner: User) -> None:
    job, data = exported(owner, "observations", "csv", query)
    assert (job.status, data) == ("failed", b"")
    assert query.partition("=")[0] in job.result


def test_a_table_asks_the_database_as_often_for_many_rows(owner: User, django_assert_max_num_queries: Any) -> None:
    from experiments.models import Format

    for count in (1, 6):
        for _ in range(count):
            full_run(owner)
        for what, table in tables.TABLES.items():
            with django_assert_max_num_queries(6):
                tables.write(table, Format.JSONL, export_query.select_rows(what, ""), io.BytesIO(), lambda *_: None)
