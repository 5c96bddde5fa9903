"""`manage.py evaluate compare`: backbones on the same units beside the scripted scientist, within one budget."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from experiments.core import notify, sweep_totals
from experiments.models import Evaluation, EvaluationItem, Run, Sweep
from tests.support.provider import Handler, Provider, prices, refuses, says
from workers.jobs import laboratory as place

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("on_toybox")]
MODEL = "openai:gpt-4o"
PROGRAM = """[HYPOTHESIS LIST]:
Hypothesis_1: red balls

[CODE]:
```python
def run_experiment(system, tools):
    activations, images = system.neuron(tools.text2image(["a red ball", "a blue cube"]))
    tools.log_experiment(activations, images, ["red ball", "blue cube"], [])
```"""
ANSWER = """[DESCRIPTION]: It responds to balls.
[BIAS]: More at night.
[REASONING]: It answers to balls on any ground.
[LABEL]: {}"""
A_REPLY = 0.1
"""US dollars: 100 tokens of the question at 1000 dollars a million."""


def experiment_and_conclude(handler: Handler) -> None:
    """A provider's whole run: one experiment, then the form of answer that its task asks for."""
    said = json.dumps(handler.body["messages"])
    label = "SELECTIVE" if "SELECTIVE" in said else "balls"
    has_looked = any(message["role"] == "assistant" for message in handler.body["messages"])
    says(ANSWER.format(label) if has_looked else PROGRAM, usage=(100, 10))(handler)


@pytest.fixture
def provider(settings: Any, tmp_path: Path, on_toybox: None) -> Iterator[Provider]:
    with Provider(experiment_and_conclude) as server:
        settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL = "key", server.public_url
        settings.OPENAI_MODELS = ["gpt-4o"]
        settings.OPENAI_PRICES = prices(tmp_path, "gpt-4o", 1000, 0)
        place.build_laboratory.cache_clear()
        yield server
    place.build_laboratory.cache_clear()
    notify.muted.clear()


def compare(*options: str) -> dict[str, Any]:
    out = StringIO()
    call_command("evaluate", "compare", *options, "--json", stdout=out, stderr=StringIO())
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def read(told: dict[str, Any], kind: str, figure: str) -> dict[str, Any]:
    """The values of a line of the table, by backbone."""
    (row,) = [each for each in told["rows"] if (each["kind"], each["figure"]) == (kind, figure)]
    return {name: cell["value"] for name, cell in row["values"].items()}


def list_units(backbone: str) -> list[str]:
    rows = EvaluationItem.objects.filter(evaluation__backbone=backbone).order_by("evaluation__kind", "position")
    return list(rows.values_list("unit_name", flat=True))


def test_it_stops_before_the_budget_is_passed_and_pays_nothing_twice(provider: Provider) -> None:
    asked = ("--backbones", MODEL, "--kinds", "units", "--units", "1", "--seed", "3")
    told = compare(*asked, "--max-cost", "0.25")
    assert len(provider.asked) == 1  # a second reply might cost twice as much
    assert read(told, "all", "cost") == {"scripted": 0, MODEL: pytest.approx(A_REPLY)}
    assert told["undone"] == [f"{MODEL}, units of a network: 1 of 1 units"]
    (run,) = Run.objects.filter(backbone="openai")
    assert (run.status, Sweep.objects.get(evaluation__backbone="openai").status) == ("running", "paused")
    assert "the next reply may cost" in sweep_totals.explain_wait(run)

    told = compare(*asked, "--max-cost", "0.9")
    assert told["undone"] == []
    assert told["backbones"] == ["scripted", MODEL]
    assert read(told, "units", "items") == {"scripted": 1, MODEL: 1}
    assert read(told, "all", "cost")[MODEL] == pytest.approx(2 * A_REPLY)
    assert read(told, "all", "tokens")[MODEL] == 2 * 110
    assert read(told, "units", "pearson")["scripted"] is not None
    assert read(told, "units", "seconds")[MODEL] > 0
    assert list_units("openai") == list_units("scripted")
    assert len(provider.asked) == 2  # the first reply was kept

    assert compare(*asked, "--max-cost", "0.9") == told
    assert (len(provider.asked), Evaluation.objects.count(), Run.objects.count()) == (2, 2, 2)
    out = StringIO()
    call_command("evaluate", "compare", *asked, stdout=out, stderr=StringIO())
    heading, *lines = out.getvalue().splitlines()
    assert heading.split() == ["scripted", MODEL]
    assert "0.2000" in next(line for line in lines if line.startswith("All: US dollars"))


@pytest.mark.more
def test_a_provider_that_refuses_the_key_is_asked_again_once_it_is_put_right(provider: Provider) -> None:
    provider.answers[:] = [refuses(401, "Incorrect API key")]
    asked = ("--backbones", MODEL, "--kinds", "units", "--units", "1")
    told = compare(*asked)
    assert told["undone"] == [f"{MODEL}, units of a network: 1 of 1 units"]
    provider.answers[:] = [experiment_and_conclude]
    assert compare(*asked)["undone"] == []
    assert Run.objects.filter(backbone="openai").count() == 1


def test_what_cannot_be_compared_is_told_before_anything_is_spent(provider: Provider) -> None:
    for options, words in (
        ((), "Say which backbones"),
        (("--backbones", "gpt-4o"), "'gpt-4o' is no backbone"),
        (("--backbones", "person"), "'person' is no backbone"),
        (("--backbones", MODEL, "--kinds", "labels"), "'labels' cannot be compared"),
        (("--backbones", MODEL, "--units", "0"), "--units 0 compares nothing"),
        (("--backbones", MODEL, "--repeats", "2"), "takes no --repeats"),
        (("--backbones", "openai:gpt-of-tomorrow"), "No price is known"),
    ):
        with pytest.raises(CommandError, match=words):
            compare(*options)
    with pytest.raises(CommandError, match="are for a comparison"):
        call_command("evaluate", "units", "--backbones", MODEL)
    assert (provider.asked, Evaluation.objects.count()) == ([], 0)


@pytest.mark.more
@pytest.mark.timeout(1800)  # classifiers are trained, and images of new neurons measured
@pytest.mark.parametrize(
    ("kinds", "units", "figure", "task"),
    [("synthetic", 4, "mono.right", "describe"), ("bias", 1, "false", "bias"), ("spurious", 1, "items", "spurious")],
)
def test_each_kind_and_task_stands_in_the_table(
    provider: Provider, kinds: str, units: int, figure: str, task: str
) -> None:
    told = compare("--backbones", MODEL, "--kinds", kinds, "--units", "1", "--seed", "7")
    assert told["undone"] == []
    assert list_units("openai") == list_units("scripted")
    assert read(told, "all", "failed") == {"scripted": 0, MODEL: 0}
    assert read(told, kinds, "items") == {"scripted": units, MODEL: units}
    assert all(value is not None for value in read(told, kinds, figure).values())
    assert {run.task for run in Run.objects.filter(backbone="openai")} == {task}
