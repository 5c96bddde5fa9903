"""The New run form: what it takes, what it says of what it does not take."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.core import compatibility
from experiments.models import Backbone, CausalCheck, Dataset, Layer, Toolset, VisionModelRow
from experiments.runs.asking import form as forms
from experiments.runs.asking import questions, terminal
from tests.support.causal_checks import make_causal_check
from tests.support.run_form import GOOD
from workers.record import tasks
from workers.record.statuses import Status

pytestmark = pytest.mark.django_db
NO_BAL = "Choose a unit: a whole number from 0 to 3, or the name of one. Names with “bal”: ball."
TWO_CRANES = "2 units of logits of toybox are called “crane”. Choose one of: “crane (1)”, “crane (3)”."
CLASSES = ["ball", "crane", "rocket", "crane"]


@pytest.fixture(autouse=True)
def catalogue() -> Layer:
    model = VisionModelRow.objects.create(name="toybox", revision="1")
    Layer.objects.create(model=model, position=0, name="conv1", path="conv1", kind="conv", units=8)
    Layer.objects.create(model=model, position=2, name="logits", path="head", kind="logit", units=4, names=CLASSES)
    Dataset.objects.create(key="toybox", label="toybox validation scenes", images=3000)
    return Layer.objects.create(model=model, position=1, name="layer4", path="layer4", kind="conv", units=16)


def errors(**changes: Any) -> dict[str, list[str]]:
    form = forms.QueryForm(GOOD | changes)
    form.is_valid()
    return {name: [str(message) for message in messages] for name, messages in form.errors.items()}


def test_a_good_query_becomes_a_queued_run(owner: User) -> None:
    form = forms.QueryForm(GOOD)
    assert form.is_valid(), form.errors
    run = form.run(owner)
    assert run.status == Status.QUEUED
    assert (run.question, run.task, run.system, run.owner) == (
        "What excites it?",
        "describe",
        "toybox / layer4 / unit 7",
        owner,
    )
    assert run.limits == {"rounds": 3, "tokens": None, "cost": 0.5, "seconds": 60}
    assert run.seed == 0
    assert (run.system_kind, run.options, run.toolset) == ("unit", {"dataset": "toybox"}, "toybox")
    assert (run.backbone, run.backbone_model) == ("scripted", "")


def test_the_look_around_the_region_is_an_option_of_the_run(owner: User) -> None:
    assert "surroundings" in errors(surroundings="pitch black")
    form = forms.QueryForm(GOOD | {"surroundings": "dark"})
    assert form.is_valid(), form.errors
    run = form.run(owner)
    assert run.options == {"dataset": "toybox", "surroundings": "dark"}
    assert forms.copy_values(run)["surroundings"] == "dark"
    assert "--surroundings dark" in terminal.command_line(form.cleaned_data)


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
        ({"unit": "seven"}, "unit", "Choose a unit: a whole number from 0 to 15."),
        ({"unit": "9" * 40}, "unit", "Choose a unit: a whole number from 0 to 15."),
        ({"layer": "logits", "unit": "bal"}, "unit", NO_BAL),
        ({"layer": "logits", "unit": "crane"}, "unit", TWO_CRANES),
        ({"layer": "logits", "unit": "ball (9)"}, "unit", "There is no unit 9: logits of toybox has units 0 to 3."),
        ({"dataset": "birds"}, "dataset", "There is no dataset “birds”. Choose one of: toybox."),
    ],
)
def test_what_does_not_exist_is_named_with_what_does(changes: dict[str, str], field: str, words: str) -> None:
    assert errors(**changes) == {field: [words]}


@pytest.mark.parametrize(("written", "number"), [("3", 3), ("Ball", 0), ("rocket", 2), ("crane (3)", 3)])
def test_a_class_is_picked_by_number_or_name_and_studied_as_a_logit(owner: User, written: str, number: int) -> None:
    form = forms.QueryForm(GOOD | {"layer": "logits", "unit": written})
    assert form.is_valid(), form.errors
    run = form.run(owner)
    assert (run.unit, run.system_kind) == (number, "logit")


def test_a_synthetic_neuron_is_studied_as_one_and_its_question_does_not_tell_what_it_is(owner: User) -> None:
    model = VisionModelRow.objects.create(name="synthetic:toybox-eyes", revision="1")
    layer = Layer.objects.create(
        model=model, position=0, name="mono", path="mono", kind="concept", units=2, names=["a red ball", "a bus"]
    )
    form = forms.QueryForm(GOOD | {"model": model.name, "layer": "mono", "unit": "a bus"})
    assert form.is_valid(), form.errors
    assert form.run(owner).system_kind == "synthetic"
    suggested = questions.suggestions(layer, [1])
    assert suggested.keys() == tasks.TASKS.keys()
    assert not any(word in text for text in suggested.values() for word in ("bus", "mono", "synthetic"))


def test_the_form_of_a_synthetic_neuron_begins_at_the_first_layer_and_names_none(as_owner: Client) -> None:
    model = VisionModelRow.objects.create(name="synthetic:toybox-eyes", revision="1")
    for position, name in enumerate(("mono", "conditional")):
        Layer.objects.create(
            model=model, position=position, name=name, path=name, kind="concept", units=2, names=["ball | boat", "bus"]
        )
    assert forms.get_first_choice(model.name)["layer"] == "mono"
    for query in (f"model={model.name}", f"model={model.name}&layer=conditional&unit=0"):
        page = as_owner.get(f"/query/?{query}").content.decode()
        assert "ball | boat" not in page
    page = as_owner.get("/query/?model=toybox&layer=logits&unit=0").content.decode()
    assert "ball (0)" in page


MISSING = {"available": False, "remedy": "It is not on this machine. Get it: hf download some/thing"}


def test_what_is_not_here_yet_is_refused_with_the_command_that_gets_it() -> None:
    VisionModelRow.objects.create(name="hf:some/thing", **MISSING)
    Dataset.objects.create(key="folder:/gone", label="gone", **MISSING)
    Toolset.objects.create(key="diffusion", label="Diffusion", **MISSING)
    Backbone.objects.create(key="openai", label="A language model", available=False, remedy="Set OPENAI_API_KEY.")
    found = errors(model="hf:some/thing", dataset="folder:/gone", toolset="diffusion", backbone="openai")
    assert {name: ["hf download some/thing" in each for each in told] for name, told in found.items()} == {
        "model": [True],
        "dataset": [True],
        "toolset": [True],
        "backbone": [False],
    }
    assert "OPENAI_API_KEY" in found["backbone"][0]


def test_the_scripted_scientist_is_refused_tools_it_knows_nothing_of() -> None:
    Toolset.objects.create(key="diffusion", label="Diffusion")
    assert "knows toybox's concepts" in errors(toolset="diffusion")["backbone"][0]


def test_a_backbone_is_asked_for_a_model_it_offers_the_first_by_default(owner: User) -> None:
    Backbone.objects.create(
        key="openai",
        label="A language model",
        model_names=["gpt-4o", "gpt-4.1"],
        prices={"gpt-4o": [2.5, 10], "gpt-4.1": [2, 8]},
    )
    for wanted, asked in {"": "gpt-4o", "gpt-4.1": "gpt-4.1", "gpt-9": "gpt-4o"}.items():
        form = forms.QueryForm(GOOD | {"backbone": "openai", "backbone_model": wanted})
        assert form.is_valid(), form.errors
        assert form.run(owner).backbone_model == asked


@pytest.mark.parametrize("changes", [{"task": "guess"}, {"backbone": "oracle"}, {"seed": "-1"}, {"seed": "x"}])
def test_choices_and_seed_are_checked(changes: dict[str, str]) -> None:
    assert set(errors(**changes)) == set(changes)


def test_the_form_starts_at_the_deepest_convolutional_layer_of_toybox_with_what_suits_it() -> None:
    other = VisionModelRow.objects.create(name="a-model", revision="1")
    Layer.objects.create(model=other, position=0, name="fc", path="fc", kind="mlp", units=4)
    suited = {"dataset": "toybox", "toolset": "toybox", "backbone": "scripted", "backbone_model": ""}
    assert forms.get_first_choice() == {"model": "toybox", "layer": "layer4", "unit": 0} | suited
    assert forms.get_first_choice("a-model")["layer"] == "fc"
    assert forms.get_first_choice("no such model")["model"] == "toybox"


def test_a_model_of_photographs_gets_photographs_and_a_language_model_where_there_are_some() -> None:
    alone = {"dataset": "toybox", "toolset": "toybox", "backbone": "scripted", "backbone_model": ""}
    assert compatibility.find_matching_plugins("hf:microsoft/resnet-152") == alone
    for key in ("toybox", "diffusion"):
        Toolset.objects.create(key=key, label=key)
    assert compatibility.find_matching_plugins("hf:microsoft/resnet-152") == alone, (
        "the scripted scientist cannot use the others"
    )
    for key in ("scripted", "openai"):
        Backbone.objects.create(key=key, label=key)
    Dataset.objects.create(key="folder:/photographs", label="photographs")
    assert compatibility.find_matching_plugins("hf:microsoft/resnet-152") == {
        "dataset": "folder:/photographs",
        "toolset": "diffusion",
        "backbone": "openai",
        "backbone_model": "",
    }
    assert compatibility.find_matching_plugins("toybox") == alone


@pytest.mark.parametrize(
    ("model", "tools", "backbone", "warned"),
    [
        ("hf:microsoft/resnet-152", "diffusion", "person", True),
        ("toybox", "diffusion", "person", True),
        ("hf:microsoft/resnet-152", "toybox", "scripted", True),
        ("toybox", "toybox", "person", False),
        ("hf:microsoft/resnet-152", "diffusion", "openai", False),
    ],
)
def test_it_is_said_beforehand_where_nobody_describes_images(
    model: str, tools: str, backbone: str, warned: bool
) -> None:
    assert ("No model here describes photographs" in compatibility.advise(model, tools, backbone)) == warned


def test_there_is_a_question_for_every_task(catalogue: Layer) -> None:
    assert questions.suggestions(catalogue, [3]).keys() == tasks.TASKS.keys()
    assert questions.suggestions(catalogue, [3])["describe"] == "What does unit 3 of layer4 in toybox respond to?"
    logits = Layer.objects.get(name="logits")
    assert questions.suggestions(logits, [2])["bias"] == (
        "In which contexts does toybox find “rocket” (unit 2 of logits) more or less probable?"
    )


def test_the_command_line_asks_the_same_and_quotes_what_a_shell_would_read() -> None:
    values = GOOD | {"question": "What's; rm -rf / ?\n", "task": "bias", "seed": "4"}
    assert terminal.command_line(values) == (
        "python manage.py investigate --model toybox --layer layer4 --unit 7 --task bias --seed 4 --max-rounds 3 "
        "--max-tokens none --max-cost 0.5 --max-seconds 60 --question 'What'\"'\"'s; rm -rf / ?'"
    )
    others = {"dataset": "folder:/a b", "toolset": "diffusion", "backbone": "openai", "backbone_model": "gpt-4o"}
    assert terminal.command_line({"model": "toybox", "layer": "layer4", "unit": 7} | others) == (
        "python manage.py investigate --model toybox --layer layer4 --unit 7 --dataset 'folder:/a b' "
        "--toolset diffusion --backbone openai --backbone-model gpt-4o"
    )


def test_reflections_are_kept_where_some_are_wanted(owner: User) -> None:
    assert "reflections" in errors(reflections="11")
    assert "reflections" in errors(reflections="-1")
    form = forms.QueryForm(GOOD | {"reflections": "3"})
    assert form.is_valid()
    run = form.run(owner)
    assert run.options["reflections"] == 3
    assert forms.copy_values(run)["reflections"] == 3
    assert "--reflections 3" in terminal.command_line(form.cleaned_data)
    assert terminal.request_body(form.cleaned_data)["reflections"] == 3
    without = forms.QueryForm(GOOD | {"reflections": "0"})
    assert without.is_valid()
    assert "reflections" not in without.run(owner).options
    assert "reflections" not in terminal.request_body(without.cleaned_data)


def test_ablation_is_an_option_of_the_run_and_travels_by_every_way(owner: User) -> None:
    form = forms.QueryForm(GOOD | {"ablation": "on"})
    assert form.is_valid(), form.errors
    run = form.run(owner)
    assert run.options["ablation"] is True
    again = forms.QueryForm(GOOD | {"ablation": forms.copy_values(run)["ablation"]})
    assert again.is_valid()
    assert again.run(owner).options == run.options
    assert "--ablation" in terminal.command_line(GOOD | {"ablation": "on"}).split()
    assert terminal.request_body(form.cleaned_data)["ablation"] is True
    for value in ({}, {"ablation": ""}, {"ablation": "False"}):
        without = forms.QueryForm(GOOD | value)
        assert without.is_valid()
        assert "ablation" not in without.run(owner).options
        assert "ablation" not in terminal.request_body(without.cleaned_data)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("logit", "A class is an output of the model itself"),
        ("concept", "A synthetic neuron is built on a detector"),
        ("function", "A function is no part of a network"),
    ],
)
def test_ablation_of_what_no_output_follows_from_is_refused(catalogue: Layer, kind: str, words: str) -> None:
    Layer.objects.filter(pk=catalogue.pk).update(kind=kind)
    (problem,) = errors(ablation="on")["ablation"]
    assert problem.startswith(words)
    assert problem.endswith("Or leave out ablation.")
    assert "ablation" not in errors()


def test_what_a_worker_found_of_the_layer_is_told_before_a_run_begins(catalogue: Layer) -> None:
    dataset = Dataset.objects.get()
    row = make_causal_check(catalogue, dataset, 1)
    CausalCheck.objects.filter(pk=row.pk).update(impossible="toybox has no output of its own.", measured=None)
    assert errors(ablation="on") == {"ablation": ["toybox has no output of its own. Or leave out ablation."]}
    VisionModelRow.objects.update(revision="2")
    assert errors(ablation="on") == {}, "other weights may have one"
