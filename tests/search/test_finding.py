"""Search on a real database: SQLite here, and PostgreSQL when tests/house/test_postgres.py runs these again."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, connection

from experiments.core import transcript
from experiments.core.search_index import sqlite, texts, words
from experiments.core.search_index.texts import PIECE
from experiments.models import Image, Label, Layer, Observation, Run, SearchText, TextKind, Unit, VisionModelRow
from experiments.search import finding, runs
from tests.support.builders import experiment, make_run, replied, started
from tests.support.passages import say
from workers.record.events import Ended, ExperimentEnded, Graded
from workers.record.experiments import LogEntry
from workers.record.experiments import Observation as Logged
from workers.record.replies import Conclusion, Hypothesis

pytestmark = pytest.mark.django_db


@pytest.fixture(params=["compared one by one", "from the index"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of finding must agree: with a single passage compared, everything else comes from the index."""
    if request.param == "from the index":
        monkeypatch.setattr(finding, "WALKED", 1)
    return str(request.param)


@pytest.fixture
def run(owner: User) -> Run:
    return make_run(owner, question="Does it like snow?")


def said(typed: str, **scope: Any) -> list[str]:
    """Texts that a search gives, in its order."""
    found = finding.find(words.parse_words(typed).terms, finding.SearchScope(**scope))
    rows = SearchText.objects.in_bulk(found.keys)
    return [rows[key].text for key in found.keys]


def whole_run(run: Run) -> Run:
    """A run with every kind of text."""
    key = Image.objects.create(key="a" * 64, width=8, height=8, origin="generated").key
    logged = LogEntry((Logged("an otter", 3.0, key, prompt="an otter asleep"),), "It likes narwhals.")
    steps = [
        ("started", started()),
        ("reply", replied(prose="I begin with pelicans.", hypotheses=(Hypothesis(1, "It fires for ibexes."),))),
        ("experiment", experiment()),
        ("result", ExperimentEnded(1, 1, "ok", (logged,), output="lemur 3.2", error="KeyError: gecko")),
        ("reply", replied(2, prose="Go on.", hypotheses=(Hypothesis(1, "It fires for ibexes."),))),
        (
            "concluded",
            Ended("", Conclusion("Mostly walruses.", ("furry toucans",), "Since ospreys.", "Against herons.")),
        ),
    ]
    for kind, payload in steps:
        transcript.append(run.pk, kind, payload)
    return run


PLACES = {
    "snow": (TextKind.QUESTION, 0),
    "pelicans": (TextKind.REPLY, 2),
    "ibexes": (TextKind.HYPOTHESIS, 2),
    "display": (TextKind.CODE, 3),
    "lemur": (TextKind.OUTPUT, 4),
    "gecko": (TextKind.OUTPUT, 4),
    "narwhals": (TextKind.OUTPUT, 4),
    "otter asleep": (TextKind.TITLE, 4),
    "walruses": (TextKind.DESCRIPTION, 6),
    "ospreys": (TextKind.DESCRIPTION, 6),
    "herons": (TextKind.DESCRIPTION, 6),
    "toucan": (TextKind.LABEL, 6),
}


def test_every_text_of_a_run_is_found_in_its_event_once(way: str, run: Run) -> None:
    whole_run(run)
    for typed, place in PLACES.items():
        (key,) = finding.find(words.parse_words(typed).terms, finding.SearchScope()).keys
        passage = SearchText.objects.get(pk=key)
        assert (passage.kind, passage.seq) == place, typed
    observation = Observation.objects.get()
    assert SearchText.objects.get(kind=TextKind.TITLE).anchor == observation.pk


def test_a_label_that_failed_its_test_is_found_there_and_one_concluded_with_where_it_is_concluded(
    way: str, run: Run
) -> None:
    transcript.append(run.pk, "started", started())
    transcript.append(run.pk, "graded", Graded(1, "spotted quokkas", pearson=0.1, left=1))
    transcript.append(run.pk, "graded", Graded(2, "striped numbats", reason="Nothing testable, said the axolotl."))
    transcript.append(run.pk, "concluded", Ended("", Conclusion("", ("striped numbats",))))
    for typed, place in {"quokka": ("label", 2), "axolotl": ("output", 3), "numbats": ("label", 4)}.items():
        (key,) = finding.find(words.parse_words(typed).terms, finding.SearchScope()).keys
        passage = SearchText.objects.get(pk=key)
        assert (passage.kind, passage.seq) == place, typed


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("龙", ["海滩上的龙"]),
        ("海滩", ["海滩上的龙"]),
        ("滩上的", ["海滩上的龙"]),
        ("ete", ["L'Été à Łódź"]),
        ("ÉT", ["L'Été à Łódź"]),
        ("ź", ["L'Été à Łódź", "zebra"]),
        ("lodz ete", ["L'Été à Łódź"]),
        ("пинг", ["Пингвин"]),
        ("ви", ["Пингвин"]),
        ("ガラ", ["ガラス"]),
        ("カ", []),
        ("q", []),
        ("🐟", ["a 🐟"]),
    ],
)
def test_parts_of_words_are_found_in_any_language_however_short(
    way: str, run: Run, typed: str, found: list[str]
) -> None:
    say(run, "海滩上的龙", "L'Été à Łódź", "zebra", "Пингвин", "ガラス", "a 🐟")
    assert sorted(said(typed)) == found


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("100%", ["100% red"]),
        ("a_b", ["a_b"]),
        ("_b", ["a_b"]),
        ("*x", ["2*x"]),
        ("*", []),
        ("\\n", ["a\\nb"]),
        ("'; --", ["'; --"]),
        ("x OR y", ["x OR y"]),
        ('"x OR"', ["x OR y"]),
        ("NEAR(a", ["NEAR(a b)"]),
        ('"a b"', ["NEAR(a b)"]),
        ('say"', ['say"']),
    ],
)
def test_no_character_is_special(way: str, run: Run, typed: str, found: list[str]) -> None:
    say(run, "100% red", "1000 red", "a_b", "aXb", "2*x", "a\\nb", "'; --", "x OR y", "NEAR(a b)", 'say"')
    terms = words.parse_words(typed).terms
    assert (said(typed) if terms else []) == found


def test_all_words_must_occur_and_phrases_as_they_stand(way: str, run: Run) -> None:
    say(run, "a red ball on snow", "snow\n  red", "red snow in the ball", "a red car")
    assert set(said("red snow")) == {"a red ball on snow", "snow\n  red", "red snow in the ball"}
    assert said('"red snow"') == ["red snow in the ball"]
    assert said('"snow red"') == ["snow\n  red"]
    assert said("red boat") == []


def test_long_texts_are_found_to_their_end_and_across_their_pieces(way: str, run: Run) -> None:
    words = " ".join(f"word{number}" for number in range(2_000))
    transcript.append(run.pk, "reply", replied(prose=words))
    assert SearchText.objects.filter(kind=TextKind.REPLY).count() > len(words) / PIECE
    for number in range(0, 1_999, 53):
        assert said(f'"word{number} word{number + 1}"'), number
    assert said("word1999")


def test_few_are_ranked_whole_words_and_conclusions_first(way: str, run: Run) -> None:
    say(
        run,
        "catalogue " * 20,
        "a cat on a mat and much more beside it",
        "a bobcat on a mat and much more beside it",
        kind="output",
    )
    say(run, "cat", kind="label")
    assert said("cat") == [
        "cat",
        "a cat on a mat and much more beside it",
        "catalogue " * 20,
        "a bobcat on a mat and much more beside it",
    ]


def test_of_equal_rank_the_newer_comes_first(way: str, run: Run) -> None:
    keys = say(run, "red one", "red two", "red six")
    assert list(finding.find(["red"], finding.SearchScope()).keys) == keys[::-1]


def all_pages(terms: list[str], scope: finding.SearchScope, limit: int) -> list[finding.Found]:
    pages = [finding.find(terms, scope, limit=limit)]
    while pages[-1].cursor:
        pages.append(finding.find(terms, scope, pages[-1].cursor, limit=limit))
    return pages


@pytest.mark.parametrize("ranked", [True, False])
def test_pages_follow_each_other_without_a_gap_or_a_repeat(
    way: str, run: Run, monkeypatch: pytest.MonkeyPatch, ranked: bool
) -> None:
    monkeypatch.setattr(finding, "RANKED", 100 if ranked else 10)
    keys = say(run, *[f"red {number}" for number in range(25)])
    pages = all_pages(["red"], finding.SearchScope(), 4)
    assert [page.ranked for page in pages] == [ranked] * 7
    assert [page.total for page in pages] == [25 if ranked else None] * 7
    shown = [key for page in pages for key in page.keys]
    assert sorted(shown) == keys
    assert ranked or shown == keys[::-1]


def test_what_is_written_meanwhile_does_not_move_later_pages(run: Run) -> None:
    keys = say(run, *[f"red {number}" for number in range(9)])
    first = finding.find(["red"], finding.SearchScope(), limit=3)
    say(run, "red and new")
    second = finding.find(["red"], finding.SearchScope(), first.cursor, limit=3)
    assert [*first.keys, *second.keys] == keys[:2:-1]


def test_common_words_come_in_order_of_time(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "WALKED", 10)
    keys = say(run, *["red and much more than that", "red"] * 20)
    found = finding.find(["red"], finding.SearchScope(), limit=5)
    assert list(found.keys) == keys[:-6:-1]
    assert (found.ranked, found.total) == (False, None)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL bounds its searches otherwise")
def test_it_says_where_it_gave_up_and_goes_on_from_there(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "WALKED", 1)
    monkeypatch.setattr(sqlite, "BATCH_SIZE", 4)
    monkeypatch.setattr(sqlite, "MAX_CANDIDATES", 8)
    keys = say(run, "red snow", *["red"] * 20, "red snow", *["red"] * 3)
    pages = all_pages(["red", "o"], finding.SearchScope(), 5)
    *before, last = [page.gave_up for page in pages]
    assert (all(before), last) == (True, False)
    assert len(before) in (3, 4), "as the numbers of the passages fall into steps"
    assert [key for page in pages for key in page.keys] == [keys[21], keys[0]]


def test_a_cursor_that_was_changed_is_refused(run: Run) -> None:
    say(run, *["red"] * 9)
    cursor = finding.find(["red"], finding.SearchScope(), limit=3).cursor
    for wrong in ("x", cursor[:-1], "x" + cursor, cursor.replace(":", "")):
        with pytest.raises(finding.WrongCursor):
            finding.find(["red"], finding.SearchScope(), wrong)


def test_a_scope_narrows_by_kind_system_and_run(way: str, owner: User, run: Run) -> None:
    other = make_run(owner, question="Red too?", model="hf:other", layer="fc", unit=3)
    say(run, "red title")
    say(run, "red label", kind="label")
    assert said("red", kind="label") == ["red label"]
    assert said("red", model="hf:other") == ["Red too?"]
    assert said("red", model="hf:other", layer="fc", unit=3) == ["Red too?"]
    assert said("red", unit=7, kind="title") == ["red title"]
    assert said("red", run=other.pk) == ["Red too?"]
    assert said("red", model="hf:none") == []


def test_a_label_from_elsewhere_is_found_for_each_of_its_units() -> None:
    layer = Layer.objects.create(
        model=VisionModelRow.objects.create(name="toybox"), position=0, name="fc", path="fc", units=9
    )
    label = Label.objects.create(text="striped snowmen", source="import")
    texts.keep_label(label, [Unit.objects.create(layer=layer, number=number) for number in (2, 5)])
    assert said("snowmen", unit=5) == ["striped snowmen"]
    assert len(said("striped")) == 2


def test_deleted_runs_are_found_no_more(way: str, run: Run) -> None:
    say(run, "a quokka")
    run.delete()
    assert said("quokka") == []
    assert said("qu") == []


def test_runs_are_matched_by_what_was_asked_and_concluded_their_system_and_number(owner: User, run: Run) -> None:
    other = make_run(owner, question="Why red?", model="hf:resnet", unit=7919)
    conclusion = Conclusion("Sleds, mostly.", ("purple snowmen",))
    transcript.append(run.pk, "concluded", Ended("", conclusion))
    say(other, "a purple ball")

    def matching(typed: str) -> set[int]:
        return set(Run.objects.filter(pk__in=runs.runs_matching(typed)).values_list("pk", flat=True))

    assert matching("snow") == {run.pk}
    assert matching("SNOW purple") == {run.pk}
    assert matching("purple") == {run.pk}, "titles of images are not what one remembers a run by"
    assert matching("SLEDS") == {run.pk}
    assert matching('"snow? toybox"') == set(), "no phrase reaches from one text into the next"
    assert matching("layer4 red") == {other.pk}
    assert matching("7919") == {other.pk}
    assert matching("") == {run.pk, other.pk}
    assert matching("snow unicorn") == set()
    assert matching("%") == set()


@pytest.mark.parametrize(
    ("vendor", "statements", "remedy"),
    [
        ("postgresql", "POSTGRES_INDEX", r"Have an administrator run `CREATE EXTENSION"),
        ("sqlite", "SQLITE_INDEX", r"needs FTS5 with the trigram tokenizer.*or PostgreSQL"),
    ],
)
def test_where_a_database_cannot_search_the_remedy_is_told(
    vendor: str, statements: str, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if connection.vendor != vendor:
        pytest.skip(f"it is about {vendor}")
    migration = importlib.import_module("experiments.migrations.0002_search_and_audit")
    monkeypatch.setattr(migration, statements, ("CREATE EXTENSION no_such_extension",))
    with pytest.raises(DatabaseError, match=remedy):
        migration.make_search_index(None, SimpleNamespace(connection=connection))
