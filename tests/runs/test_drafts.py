"""Drafts of runs: what is left out becomes what suits the model; what is named stays."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from experiments.core.actors import Actor
from experiments.evaluations import people
from experiments.models import Dataset, Evaluation, EvaluationItem, Layer, Toolset, Unit, VisionModelRow
from experiments.runs.drafts import draft_like, draft_run
from tests.support.builders import make_run
from workers.jobs.evaluations.sources import find_toolset, spec_of
from workers.record.systems import SystemSpec

pytestmark = pytest.mark.django_db

PHOTOS, MODEL = "folder:/data/photos", "hf:lab/net"


@pytest.fixture(autouse=True)
def parts() -> None:
    """Toys and photographs, with tools for each."""
    for key in ("toybox", PHOTOS):
        Dataset.objects.create(key=key, label=key)
    for key in ("toybox", "diffusion", "toybox-exemplars", "diffusion-exemplars"):
        Toolset.objects.create(key=key, label=key)


@pytest.fixture
def unit() -> Unit:
    row = VisionModelRow.objects.create(name=MODEL, revision="1")
    layer = Layer.objects.create(model=row, position=1, name="layer4", path="net.4", kind="conv", units=8)
    return Unit.objects.create(layer=layer, number=3)


@pytest.mark.parametrize(
    ("model", "dataset", "toolset"),
    [
        (MODEL, PHOTOS, "diffusion"),
        ("toybox", "toybox", "toybox"),
        ("toybox-biased:seed-3", "toybox", "toybox"),
        ("synthetic:toybox-eyes:seed-3", "toybox", "toybox"),
    ],
)
def test_what_is_left_out_suits_the_model(model: str, dataset: str, toolset: str) -> None:
    run = draft_run(SystemSpec("unit", model, "layer4", 3), backbone="openai")
    assert (run.options, run.toolset) == ({"dataset": dataset}, toolset)
    assert "unit 3" in run.question


def test_the_scripted_scientist_gets_the_tools_that_it_works_with() -> None:
    assert draft_run(SystemSpec("unit", MODEL, "layer4", 3), backbone="scripted").toolset == "toybox"


def test_what_is_named_stays() -> None:
    system = SystemSpec("unit", MODEL, "layer4", 3, {"dataset": "toybox", "exemplars": 5})
    run = draft_run(system, question="Why?", toolset="diffusion-exemplars", options={"label_check": False}, seed=7)
    assert run.options == {"dataset": "toybox", "exemplars": 5, "label_check": False}
    assert (run.question, run.toolset, run.seed) == ("Why?", "diffusion-exemplars", 7)


def test_a_classifier_that_was_trained_on_toys_gets_the_tools_of_toys() -> None:
    run = draft_run(
        SystemSpec("unit", "classifier:grounds", "layer4", 3, {"dataset": "toybox-grounds:validation"}),
        backbone="openai",
    )
    assert run.toolset == "toybox"


def test_a_function_has_no_dataset() -> None:
    run = draft_run(SystemSpec("function", "functions", "numeric", 3), task="function")
    assert (run.options, run.toolset) == ({}, "toybox")


def test_a_class_is_asked_about_by_name(unit: Unit) -> None:
    layer = Layer.objects.create(
        model=unit.layer.model, position=2, name="logits", path="net.fc", kind="logit", units=2, names=["dog", "cat"]
    )
    assert "“cat”" in draft_run(layer.spec(1)).question


def test_a_fork_keeps_what_its_parent_was_made_with(owner: User) -> None:
    parent = make_run(owner, model=MODEL, options={"surroundings": "dark"}, toolset="toybox", question="Why?")
    draft = draft_like(parent, seed=5)
    assert (draft.options, draft.toolset, draft.question, draft.seed) == ({"surroundings": "dark"}, "toybox", "Why?", 5)


def test_an_evaluation_with_everything_left_empty_studies_photographs_with_photographs(owner: User, unit: Unit) -> None:
    """It was given toys and the tools of toys, while its labels were checked on photographs."""
    evaluation = Evaluation.objects.create(owner=owner, name="Eight", kind="units", backbone="openai")
    item = EvaluationItem.objects.create(
        evaluation=evaluation, position=1, group="layer4", source="agent", unit=unit, unit_name=str(unit)
    )
    assert (spec_of(evaluation, item).options["dataset"], find_toolset(evaluation, item)) == (PHOTOS, "diffusion")
    (written,) = people.add_items(Actor(owner), evaluation)
    assert written.run is not None
    assert (written.run.options["dataset"], written.run.toolset) == (PHOTOS, "diffusion")
    evaluation.options = {"dataset": "toybox", "toolset": "diffusion-exemplars"}
    assert spec_of(evaluation, item).options["dataset"] == "toybox"
    assert find_toolset(evaluation, item) == "diffusion-exemplars"
