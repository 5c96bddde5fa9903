"""Which runs an address chooses: each filter, and what is said of one that makes no sense."""

from __future__ import annotations

import datetime as dt

import pytest
from django.utils import timezone

from experiments.models import Label, Run, Tag
from experiments.runs import lists

pytestmark = pytest.mark.django_db


@pytest.fixture
def runs(owner, teammate):
    """Three runs that differ in everything."""
    made = [
        {"question": "Balls?", "layer": "layer4", "unit": 3, "task": "describe", "backbone": "scripted", "rounds": 2},
        {"question": "Cones?", "layer": "layer3", "unit": 5, "task": "bias", "backbone": "openai", "rounds": 9},
        {"question": "Boats?", "layer": "layer4", "unit": 9, "task": "free", "backbone": "openai", "rounds": 4},
    ]
    rows = [Run.objects.create(owner=owner, model="toybox", status="concluded", **each) for each in made]
    rows[1].backbone_model, rows[1].owner, rows[1].status = "gpt-4o", teammate, "waiting"
    rows[2].created = timezone.now() - dt.timedelta(days=40)
    for row in rows:
        row.save()
    Label.objects.create(text="Toy Boats", source="run", run=rows[2])
    Tag.objects.create(name="odd").runs.add(rows[0])
    return rows


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, [0, 1, 2]),
        ({"status": "waiting"}, [1]),
        ({"status": "active"}, []),
        ({"task": "free"}, [2]),
        ({"layer": "layer4"}, [0, 2]),
        ({"layer": "layer4", "unit": "9"}, [2]),
        ({"backbone": "openai"}, [1, 2]),
        ({"backbone": "openai:gpt-4o"}, [1]),
        ({"owner": "teammate"}, [1]),
        ({"label": "boat"}, [2]),
        ({"tag": "odd"}, [0]),
        ({"model": "nothing like it"}, []),
    ],
)
def test_each_filter_chooses_its_runs(runs, params, expected):
    found = lists.runs_from(params)
    assert sorted(run.pk for run in found.runs) == sorted(runs[at].pk for at in expected)
    assert found.problems == {}


def test_days_are_whole_days(runs):
    today = timezone.now().date()
    assert set(lists.runs_from({"since": str(today), "until": str(today)}).runs) == set(runs[:2])
    assert list(lists.runs_from({"until": str(today - dt.timedelta(days=30))}).runs) == [runs[2]]


def test_numbers_choose_runs(runs):
    assert set(lists.runs_from({"run": f"{runs[0].pk},{runs[2].pk}"}).runs) == {runs[0], runs[2]}


def test_runs_are_sorted_by_a_column_either_way(runs):
    assert [run.rounds for run in lists.runs_from({"sort": "rounds"}).runs] == [2, 4, 9]
    assert [run.rounds for run in lists.runs_from({"sort": "-rounds"}).runs] == [9, 4, 2]
    assert list(lists.runs_from({}).runs)[-1] == runs[2]


@pytest.mark.parametrize(("sort", "expected"), [("best", [2.5, 7.0, None]), ("-best", [7.0, 2.5, None])])
def test_runs_without_a_figure_come_last_either_way(runs, sort, expected):
    for run, best in zip(runs, (7.0, None, 2.5), strict=True):
        Run.objects.filter(pk=run.pk).update(best_activation=best)
    assert [run.best_activation for run in lists.runs_from({"sort": sort}).runs] == expected


def test_every_column_whose_figure_may_lack_is_known(runs):
    """Of the others the order is as an index has it."""
    lacking = {name for name, column in lists.SORTS.items() if may_lack(column)}
    assert lacking == lists.MAY_LACK


def may_lack(column):
    if column in {"tokens_used", "verdict_rank"}:
        return column == "verdict_rank"
    column, _, _ = column.partition("__")
    return column != "pk" and Run._meta.get_field(column).null


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("status", "dancing"),
        ("task", "cook"),
        ("unit", "abc"),
        ("unit", "-1"),
        ("unit", "٣"),
        ("since", "yesterday"),
        ("since", "2026-02-31"),
        ("until", "9999-12-31"),
        ("sort", "colour"),
        ("q", "%%%"),
        ("q", "x" * 10_000),
        ("label", "x" * 10_000),
        ("run", "1,two"),
    ],
)
def test_a_filter_that_makes_no_sense_is_left_out_and_said(runs, name, text):
    found = lists.runs_from({name: text, "layer": "layer3"})
    assert list(found.runs) == [runs[1]]
    assert name in found.problems
    assert len(found.problems[name]) < 300


def test_days_in_the_wrong_order_are_said(runs):
    found = lists.runs_from({"since": "2026-02-01", "until": "2026-01-01"})
    assert "swap the two" in found.problems["until"]
    assert found.values == {"since": "2026-02-01"}, "the other is left out, as the page says"
    assert found.runs.exists()
