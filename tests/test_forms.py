"""The New query form: what it takes, what it says of what it does not take."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from experiments import forms
from experiments.models import Layer, Model
from experiments.models.run import Status

pytestmark = pytest.mark.django_db
GOOD = {
    "question": "What excites it?",
    "task": "describe",
    "model": "toybox",
    "layer": "layer4",
    "unit": "7",
    "backbone": "scripted",
    "rounds": "3",
    "tokens": "",
    "cost": "0.5",
    "seconds": "60",
    "seed": "",
}


@pytest.fixture(autouse=True)
def catalogue() -> Layer:
    model = Model.objects.create(name="toybox", revision="1")
    Layer.objects.create(model=model, position=0, name="conv1", path="conv1", kind="conv", units=8)
    Layer.objects.create(model=model, position=2, name="logits", path="head", kind="logit", units=20)
    return Layer.objects.create(model=model, position=1, name="layer4", path="layer4", kind="conv", units=16)


def errors(**changes: Any) -> dict[str, list[str]]:
    form = forms.QueryForm(GOOD | changes)
    form.is_valid()
    return {name: [str(message) for message in messages] for name, messages in form.errors.items()}


def test_a_good_query_becomes_a_queued_run(owner: User) -> None:
    form = forms.QueryForm(GOOD)
    assert form.is_valid(), form.errors
    run = form.save(owner)
    assert run.status == Status.QUEUED
    assert (run.question, run.task, run.system, run.owner) == (
        "What excites it?",
        "describe",
        "toybox / layer4 / unit 7",
        owner,
    )
    assert run.limits == {"rounds": 3, "tokens": None, "cost": 0.5, "seconds": 60}
    assert run.seed == 0


@pytest.mark.parametrize("question", ["", "   ", "\n\t "])
def test_an_empty_question_is_asked_for(question: str) -> None:
    assert "Write a question" in errors(question=question)["question"][0]


def test_a_question_of_100_kb_is_told_its_length_and_the_limit() -> None:
    assert errors(question="x" * 100_000) == {
        "question": ["This question has 100000 characters; at most 4000 are taken. Shorten it."]
    }
    assert errors(question="x" * 4_000) == {}


@pytest.mark.parametrize("limit", ["rounds", "tokens", "cost", "seconds"])
@pytest.mark.parametrize("value", ["0", "-1"])
def test_a_limit_of_0_is_refused_and_no_limit_is_not(limit: str, value: str) -> None:
    assert errors(**{limit: value}) == {limit: [forms.ABOVE_ZERO]}
    assert errors(**{limit: ""}) == {}


@pytest.mark.parametrize("value", ["nan", "inf", "many", "1e400"])
def test_a_limit_is_a_number(value: str) -> None:
    assert set(errors(cost=value)) == {"cost"}


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"model": "vgg"}, "model", "There is no model “vgg”. Choose one of: toybox."),
        ({"layer": "layer9"}, "layer", "toybox has no layer “layer9”. Choose one of: conv1, layer4, logits."),
        ({"unit": "16"}, "unit", "There is no unit 16: layer4 of toybox has units 0 to 15."),
        ({"unit": "-1"}, "unit", "There is no unit -1: layer4 of toybox has units 0 to 15."),
        ({"unit": ""}, "unit", "Choose a unit."),
        ({"unit": "seven"}, "unit", "A unit is a whole number."),
    ],
)
def test_what_does_not_exist_is_named_with_what_does(changes: dict[str, str], field: str, words: str) -> None:
    assert errors(**changes) == {field: [words]}


@pytest.mark.parametrize("changes", [{"task": "guess"}, {"backbone": "oracle"}, {"seed": "-1"}, {"seed": "x"}])
def test_choices_and_seed_are_checked(changes: dict[str, str]) -> None:
    assert set(errors(**changes)) == set(changes)


def test_the_form_starts_at_the_deepest_convolutional_layer() -> None:
    assert forms.first_choice() == {"model": "toybox", "layer": "layer4", "unit": 0}


def test_there_is_a_question_for_every_task() -> None:
    from workers.registry import TASKS

    assert forms.suggestions("toybox", "layer4", 37).keys() == TASKS.keys() == forms.TASK_LINES.keys()
    assert forms.suggestions("toybox", "layer4", 37)["describe"] == "What does unit 37 of layer4 in toybox respond to?"


def test_the_command_line_asks_the_same_and_quotes_what_a_shell_would_read() -> None:
    values = GOOD | {"question": "What's; rm -rf / ?\n", "task": "bias", "seed": "4"}
    assert forms.command_line(values) == (
        "python manage.py investigate --model toybox --layer layer4 --unit 7 --task bias --seed 4 --max-rounds 3 "
        "--question 'What'\"'\"'s; rm -rf / ?'"
    )
