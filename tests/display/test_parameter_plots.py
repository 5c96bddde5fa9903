"""Activation against a parameter of the game engine: where it is drawn, what it holds, and who may follow its links."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.core import transcript
from experiments.display import events
from experiments.display.parameter_plots import draw_parameters
from experiments.models import Observation
from tests.support.gallery import run_with
from tests.support.pictures import seen
from workers.record.decoding import encode, read
from workers.record.events import Audience
from workers.record.experiments import Observation as Logged
from workers.record.origins import Origin

USUAL = {"camera": 0.0, "elevation": 23.0, "distance": 14.0, "light": 1.0, "size": 1.0}


def rendered(activation: float, prompt: str = "a car", seed: int = 1, **parameters: float) -> Logged:
    given = USUAL | parameters
    return Logged(
        f"{prompt} {activation}", activation, "a" * 64, None, Origin.GENERATED, prompt, seed, parameters=given
    )


def test_one_parameter_that_varies_is_drawn_with_a_line_for_each_prompt() -> None:
    cars = [rendered(activation, light=light) for activation, light in ((1.0, 0.5), (2.0, 1.0), (4.0, 2.0))]
    balls = [rendered(activation, "a ball", light=light) for activation, light in ((3.0, 0.5), (3.5, 2.0))]
    (plot,) = draw_parameters([*cars, *balls])
    assert plot.label == "Activation against light"
    assert [name for _, name in plot.legend] == ["a car", "a ball"]
    assert (len(plot.dots), len(plot.paths)) == (5, 2)
    assert plot.table is not None
    assert plot.table.columns == ("Series", "Light", "Activation")
    assert plot.table.rows[1] == ("a car", "1", 2.0)


def test_each_prompt_may_vary_another_parameter() -> None:
    logged = [rendered(1.0, camera=0.0), rendered(2.0, camera=90.0)]
    logged += [rendered(3.0, "a ball", count=1), rendered(4.0, "a ball", count=3)]
    assert [plot.label for plot in draw_parameters(logged)] == ["Activation against camera", "Activation against count"]


def test_seeds_of_a_prompt_have_a_line_each() -> None:
    logged = [rendered(light, seed=seed, light=light) for seed in (1, 2) for light in (0.5, 1.0)]
    (plot,) = draw_parameters(logged)
    assert [name for _, name in plot.legend] == ["a car, seed 1", "a car, seed 2"]


@pytest.mark.parametrize(
    "logged",
    [
        [],
        [rendered(1.0)],
        [rendered(1.0), rendered(2.0)],
        [rendered(1.0), rendered(2.0, light=0.5, camera=40.0), rendered(3.0, light=0.5)],
        [rendered(1.0), rendered(math.inf, light=0.5)],
        [rendered(1.0), rendered(2.0, light=1e300)],
        [rendered(1.0), rendered(2.0, pose=20.0)],
        [replace(rendered(light, light=light), origin=Origin.EDITED) for light in (0.5, 1.0)],
    ],
)
def test_nothing_is_drawn_where_no_parameter_varies_alone(logged: list[Logged]) -> None:
    assert draw_parameters(logged) == []


@pytest.mark.django_db
def test_the_run_and_the_experiment_show_it_as_svg_and_as_a_table(owner: User, as_owner: Client) -> None:
    known: list[Any] = [
        replace(seen(f"a car, light {light}", activation, colour), prompt="a car", parameters=USUAL | {"light": light})
        for light, activation, colour in ((0.5, 1.0, "red"), (1.0, 2.0, "blue"), (2.0, 7.5, "green"))
    ]
    run = run_with(owner, *known)
    for page in (f"/runs/{run.pk}/", f"/runs/{run.pk}/experiments/1/"):
        text = as_owner.get(page, follow=True).content.decode()
        (figure,) = re.findall(r'<figure class="parameter-plot">.*?</figure>', text, re.DOTALL)
        assert "<svg" in figure
        assert "Show as table" in figure
        assert figure.count('scope="row"') == 3
        assert f"/images/{known[0].image}" in figure
        assert "style=" not in figure
    told = events.render_events(run, list(run.events.all()), audience=Audience.LINK)
    shared = "".join(html for _, html in told)
    assert 'class="parameter-plot"' in shared
    assert known[0].image not in re.findall(r'<figure class="parameter-plot">.*?</figure>', shared, re.DOTALL)[0]


@pytest.mark.django_db
def test_rows_and_events_hold_the_parameters_and_old_events_none(owner: User) -> None:
    run = run_with(
        owner, replace(seen("a car", 1.0, "red"), parameters=USUAL | {"unheard": 3.0}), seen("b", 1.0, "blue")
    )
    assert list(Observation.objects.order_by("position").values_list("parameters", flat=True)) == [USUAL, None]
    old = encode(transcript.list_events(run.pk, 0)[-1].content)
    for entry in old["entries"]:
        for each in entry["observations"]:
            del each["parameters"]
    payload, whole = read("result", old)
    assert whole
    assert [each.parameters for each in payload.observations] == [{}, {}]
