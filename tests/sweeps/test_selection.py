"""Which units a sweep asks about."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from hypothesis import given
from hypothesis import strategies as some

from experiments.models import CheckStatus, Label, LabelCheck, Layer, Run, Unit
from experiments.sweeps import selection
from experiments.units.unit_ranges import format_ranges, read_stretches
from tests.support.builders import make_run
from tests.support.sweeps import fill_in

pytestmark = pytest.mark.django_db


def chosen(viewer: User, **fields: Any) -> dict[str, list[int]]:
    form = fill_in(viewer, **fields)
    assert form.is_valid(), form.problems
    return selection.list_units(form.draft())


def problems(viewer: User, **fields: Any) -> str:
    form = fill_in(viewer, **fields)
    assert not form.is_valid()
    return " ".join(form.problems)


def test_all_units_of_the_layers(owner: User, layers: list[Layer]) -> None:
    assert chosen(owner, layer=["layer3", "layer4"]) == {"layer3": [*range(8)], "layer4": [*range(16)]}


def test_a_sample_is_that_of_its_seed_and_spreads_over_the_layers(owner: User, layers: list[Layer]) -> None:
    both = {"layer": ["layer3", "layer4"], "choose": "sample", "sample": 12}
    first = chosen(owner, **both, seed=1)
    assert sum(map(len, first.values())) == 12
    assert first == chosen(owner, **both, seed=1) != chosen(owner, **both, seed=2)
    assert chosen(owner, layer=["layer3", "layer4"], choose="sample", sample=24) == {
        "layer3": [*range(8)],
        "layer4": [*range(16)],
    }
    assert "of the 24 units to draw, not 25" in problems(owner, **{**both, "sample": 25})


def test_those_in_a_state_or_with_words(owner: User, layers: list[Layer]) -> None:
    make_run(owner, layer="layer3", unit=2, status="concluded")
    labelled = Unit.objects.create(layer=layers[0], number=5)
    Label.objects.create(text="a red ball", source="person").units.add(labelled)
    assert chosen(owner, choose="filter", state="concluded") == {"layer3": [2]}
    assert chosen(owner, choose="filter", words="ball red") == {"layer3": [5]}
    assert chosen(owner, choose="filter", state="new") == {"layer3": [0, 1, 3, 4, 6, 7]}
    assert "no state “sad”" in problems(owner, choose="filter", state="sad")
    assert "None of the 8 units" in problems(owner, choose="filter", words="zebra")


def test_those_without_a_good_label(owner: User, layers: list[Layer]) -> None:
    for number, r in ((1, 0.9), (2, 0.3)):
        unit = Unit.objects.create(layer=layers[0], number=number)
        check = {"unit": unit, "text": "red", "dataset": "toybox", "options": {}, "status": CheckStatus.DONE}
        LabelCheck.objects.create(key=str(number), pearson=r, **check)
    assert chosen(owner, choose="unlabelled") == {"layer3": [0, 2, 3, 4, 5, 6, 7]}
    assert chosen(owner, choose="unlabelled", below="0.2") == {"layer3": [0, 3, 4, 5, 6, 7]}


@pytest.mark.parametrize(
    "listed",
    [
        "layer4,3\nlayer3,1",
        "model,layer,unit\ntoybox,layer4,3\r\ntoybox,layer3,1\n\n",
        "unit,layer\n3,layer4\n1,layer3",
    ],
)
def test_a_list_names_units(owner: User, layers: list[Layer], listed: str) -> None:
    assert chosen(owner, choose="list", layer=[], units=listed) == {"layer3": [1], "layer4": [3]}


@pytest.mark.parametrize(
    ("listed", "problem"),
    [
        ("", "names no unit"),
        ("layer4,99", "Line 1: There is no unit 99: layer4 has units 0 to 15."),
        ("layer9,1", "Line 1 names the layer “layer9”: choose one of layer3, layer4."),
        ("toybox,layer4,1\nresnet152,layer4,2", "Line 2 names the model “resnet152”, and the sweep is of toybox"),
        ("7", "Line 1 names no layer"),
        ("a,b,c,d", "Line 1 has 4 cells"),
        ("layer4,red", "Line 1: Choose a unit"),
        ('layer4,"1', "The list is no CSV"),
    ],
)
def test_what_is_wrong_with_a_list_names_the_line(owner: User, layers: list[Layer], listed: str, problem: str) -> None:
    assert problem in problems(owner, choose="list", layer=[], units=listed)


def test_no_unit_and_too_many_are_refused(owner: User, layers: list[Layer]) -> None:
    assert "Choose one or more layers" in problems(owner, layer=[])
    Layer.objects.filter(name="layer4").update(units=1_000_000)
    assert "1,000,000 units are chosen, and a sweep takes at most 100,000" in problems(owner, layer=["layer4"])
    assert chosen(owner, layer=["layer4"], choose="sample", sample=3, seed=1).keys() == {"layer4"}


def test_units_are_asked_in_an_order_that_is_the_seeds(owner: User, layers: list[Layer]) -> None:
    form = fill_in(owner, layer=["layer4"], seed=7)
    assert form.is_valid()
    order = selection.order_units(form.draft())
    assert order == selection.order_units(form.draft())
    assert sorted(order) == [("layer4", number) for number in range(16)]
    assert order != sorted(order)


def test_runs_under_way_leave_units_out_of_those_that_are_new(owner: User, layers: list[Layer]) -> None:
    make_run(owner, layer="layer3", unit=0, status="running")
    assert 0 not in chosen(owner, choose="filter", state="new")["layer3"]
    assert Run.objects.count() == 1, "choosing makes no run"


@given(some.sets(some.integers(0, 10**6), max_size=50))
def test_stretches_say_the_same_numbers(numbers: set[int]) -> None:
    assert read_stretches(format_ranges(numbers)) == sorted(numbers)
