"""The Experiments page: what passes which filters, in which order, with what beside it; nonsense; queries."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.http import QueryDict
from django.test import Client

from experiments.core import paging
from experiments.exchange import export_query
from experiments.models import Experiment, ExportSubject, Layer, Observation, Run, VisionModelRow
from tests.support.gallery import add, edit, run_with, titles
from tests.support.pictures import seen

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def fresh_counts() -> None:
    cache.clear()


def page(client: Client, query: str = "") -> str:
    response = client.get(f"/experiments/{query}")
    assert response.status_code == 200
    return response.content.decode()


@pytest.fixture
def two_runs(owner: User, teammate: User) -> tuple[Run, Run]:
    red = seen("a red ball", 30.0, "red")
    first = run_with(owner, red, seen("a tree", 1.5, "green"), edit("make it blue", 4.0, "blue", red))
    return first, run_with(teammate, seen("a red car", 12.0, "orange"), unit=9, layer="layer3")


def test_an_empty_page_says_what_will_stand_there(as_owner: Client) -> None:
    assert "Nothing was measured yet" in page(as_owner)
    assert "Nothing was measured yet" in page(as_owner, "?view=list")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["a red car", "a red ball", "make it blue", "a tree"]),
        ("?sort=strongest", ["a red ball", "a red car", "a red ball", "make it blue", "a tree"]),
        ("?sort=weakest&high=5", ["a tree", "a red ball", "make it blue"]),
        ("?low=2&high=12", ["a red car", "a red ball", "make it blue"]),
        ("?origin=edited", ["a red ball", "make it blue"]),
        ("?origin=original", ["a red ball"]),
        ("?sort=drop", ["a red ball", "make it blue"]),
        ("?unit=9", ["a red car"]),
        ("?layer=layer3&model=toybox&sort=strongest", ["a red car"]),
        ("?owner=teammate", ["a red car"]),
        ("?q=red", ["a red car", "a red ball"]),
        ("?q=RED&owner=owner", ["a red ball"]),
        ("?q=tree&low=9", []),
        ("?model=nowhere", []),
    ],
)
def test_it_shows_what_passes_the_filters_in_order(
    as_owner: Client, two_runs: tuple[Run, Run], query: str, expected: list[str]
) -> None:
    """An edit stands behind its original, which does not stand alone as well."""
    assert titles(page(as_owner, query)) == expected


def add_engine_images(run: Run) -> None:
    """Three images of the game engine, in another light each."""
    lights = {"dark": 0.5, "usual": 1.0, "bright": 2.0}
    colours = ("cyan", "salmon", "violet")
    logged = [
        replace(seen(title, light, colour), parameters={"camera": 0.0, "light": light})
        for (title, light), colour in zip(lights.items(), colours, strict=True)
    ]
    add(run, *logged, number=2)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?parameter=light", ["bright", "usual", "dark"]),
        ("?parameter=light&parameter_low=1", ["bright", "usual"]),
        ("?parameter=light&parameter_high=0.5&sort=weakest", ["dark"]),
        ("?parameter=light&parameter_low=0.9&parameter_high=1.1", ["usual"]),
        ("?parameter=count", []),
        ("?parameter=camera&low=2&sort=strongest", ["bright"]),
    ],
)
def test_images_of_the_game_engine_are_found_by_parameter(
    as_owner: Client, two_runs: tuple[Run, Run], query: str, expected: list[str]
) -> None:
    add_engine_images(two_runs[0])
    assert titles(page(as_owner, query)) == expected
    rows = as_owner.get(f"/experiments/{query.partition('&sort')[0]}&view=list").context["page"].count.rows
    assert rows == bool(expected)
    given = {name: values[0] for name, values in dict(QueryDict(query[1:]).lists()).items() if name != "sort"}
    chosen = export_query.select_rows(ExportSubject.OBSERVATIONS, urlencode(given))
    assert sorted(row.title for row in chosen) == sorted(expected)


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("?parameter=speed", "Game engine: "),
        ("?parameter_low=1", "Choose the parameter of the game engine that the values are of."),
        ("?parameter=light&parameter_low=2&parameter_high=1", "No value is at least 2 and at most 1: swap the two."),
        ("?parameter=light&parameter_low=nan", "Parameter from: "),
    ],
)
def test_a_range_of_no_parameter_is_named(as_owner: Client, query: str, problem: str) -> None:
    assert problem in html.unescape(page(as_owner, query))


@pytest.mark.parametrize("query", ["?layer=layer4", "?layer=layer4&low=2", "?q=red&layer=layer4", "?model=toybox"])
def test_both_ways_of_finding_find_the_same(
    as_owner: Client, two_runs: tuple[Run, Run], monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    gathered = titles(page(as_owner, query))
    monkeypatch.setattr("experiments.gallery.observations.MAX_SORTED", 0)
    assert titles(page(as_owner, query)) == gathered != []


def test_an_edit_stands_beside_its_original_with_what_changed_and_a_link_to_the_event(
    as_owner: Client, two_runs: tuple[Run, Run]
) -> None:
    first, _ = two_runs
    text = page(as_owner, "?origin=edited")
    assert 'class="edit-head change down"' in text
    assert "\N{MINUS SIGN}26.0" in text
    assert f'href="/runs/{first.pk}/?at=2#e2"' in text
    row = Observation.objects.get(origin="edited")
    assert (row.run, row.change) == (first, -26.0)


def test_an_edit_whose_original_was_logged_before_knows_its_change(owner: User) -> None:
    red = seen("a red ball", 30.0, "red")
    run = run_with(owner, red)
    add(run, edit("make it brighter", 31.0, "orange", red), number=2)
    assert Observation.objects.get(origin="edited").change == 1.0
    rows = Experiment.objects.order_by("number").values_list("seq", "observation_count", "best_activation")
    assert list(rows) == [(2, 1, 30.0), (4, 1, 31.0)]


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("?low=x", "Activation from: Enter a number"),
        ("?low=nan", "Activation from: Enter a number"),
        ("?low=5&high=1", "No activation is at least 5 and at most 1"),
        ("?unit=-1", "Unit:"),
        ("?run=99999999999999999999", "Run:"),
        ("?origin=%3Cscript%3E", "Origin:"),
        ("?sort=upwards", "Order:"),
        ("?page=0", "is no number of a page"),
        ("?page=%00", "is no number of a page"),
        ("?q=%25%25", "wildcards"),
        (f"?q={'x' * 9000}", "at most 200"),
        ("?page=99", "There is no page 99"),
        ("?origin=external", "Nothing matches"),
    ],
)
@pytest.mark.parametrize("view", ["", "&view=list"])
def test_nonsense_is_named_and_nothing_breaks(
    as_owner: Client, two_runs: tuple[Run, Run], query: str, says: str, view: str
) -> None:
    text = page(as_owner, query + view)
    if view and query == "?origin=external":
        return
    assert says in text.replace("&#x27;", "'")
    assert "<script>" not in text.replace('<script src="/static', "")


def test_pages_follow_each_other(as_owner: Client, owner: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.gallery.observations.PER_PAGE", 2)
    run_with(owner, *(seen(f"image {n}", float(n), "red") for n in range(5)))
    assert titles(page(as_owner, "?sort=strongest&page=2")) == ["image 2", "image 1"]
    text = page(as_owner, "?sort=strongest&page=2")
    assert "3\N{EN DASH}4 of 5" in text
    assert 'href="?sort=strongest&amp;page=3"' in text
    monkeypatch.setattr(paging, "COUNTED", 3)
    assert "of about 5" in page(as_owner)


def test_htmx_gets_what_was_found_and_the_layers_of_the_model(as_owner: Client) -> None:
    model = VisionModelRow.objects.create(name="toybox")
    Layer.objects.create(model=model, position=0, name="layer4", path="layer4", kind="conv", units=4)
    text = as_owner.get("/experiments/?model=toybox", headers={"HX-Request": "true"}).content.decode()
    assert text.lstrip().startswith('<div id="found"')
    assert 'hx-swap-oob="true"' in text
    assert '<option value="layer4">layer4</option>' in text


def test_the_list_shows_experiments_with_their_strongest_images(as_owner: Client, two_runs: tuple[Run, Run]) -> None:
    text = page(as_owner, "?view=list&sort=strongest")
    assert text.index(f"Experiment 1 of run {two_runs[0].pk}") < text.index(f"Experiment 1 of run {two_runs[1].pk}")
    assert ">30.00</td>" in text
    assert f"of run {two_runs[0].pk}" not in page(as_owner, "?view=list&q=car")
    assert f"of run {two_runs[1].pk}" not in page(as_owner, "?view=list&low=20")


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("", 4),
        ("?low=2&high=12", 2),
        ("?origin=edited&sort=strongest&page=1", 1),
        ("?sort=drop", 1),
        ("?q=RED&owner=owner", 1),
        ("?layer=layer3&model=toybox", 1),
        ("?view=list", 2),
        ("?view=list&q=car", 1),
        ("?view=list&low=20&sort=strongest", 1),
    ],
)
def test_what_is_shown_can_be_exported(as_owner: Client, two_runs: tuple[Run, Run], query: str, rows: int) -> None:
    (form,) = re.findall(r'<form class="export-list".*?</form>', page(as_owner, query), re.S)
    given = dict(re.findall(r'name="(what|query)" value="([^"]*)"', form))
    what, asked = given["what"], QueryDict(html.unescape(given["query"]))
    assert what == (ExportSubject.EXPERIMENTS if "view=list" in query else ExportSubject.OBSERVATIONS)
    assert export_query.select_rows(ExportSubject(what), asked.urlencode()).count() == rows
    assert as_owner.post("/exports/make/", {**given, "query": asked.urlencode(), "format": "csv"}).status_code == 302


def test_an_experiment_has_a_page(as_owner: Client, owner: User) -> None:
    run = run_with(owner, seen("<b>red</b>", 30.0, "red"))
    add(run, number=2)
    text = as_owner.get(f"/runs/{run.pk}/experiments/1/").content.decode()
    assert "tools" in text
    assert "30.00" in text
    assert "<b>red</b>" not in text
    assert f'href="/runs/{run.pk}/experiments/2/"' in text
    assert as_owner.get(f"/runs/{run.pk}/experiments/9/").status_code == 404


@pytest.mark.parametrize("query", ["", "?sort=drop", "?q=ball", "?view=list", "?unit=7&low=0"])
def test_the_number_of_queries_does_not_grow(
    as_owner: Client, owner: User, django_assert_max_num_queries: Any, query: str
) -> None:
    red = seen("a red ball", 30.0, "red")
    for n in range(3):
        run_with(owner, red, edit("a blue ball", float(n), "blue", red))
    with django_assert_max_num_queries(20):
        page(as_owner, query)
    for n in range(12):
        run_with(owner, red, edit("a blue ball", float(n), "blue", red))
    with django_assert_max_num_queries(20):
        page(as_owner, query)
