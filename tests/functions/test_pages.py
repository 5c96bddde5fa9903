"""New run, unit pages and sweeps of functions: what is offered, what is left out, and what is refused."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.core.management import call_command
from django.test import Client

from experiments.core import compatibility
from experiments.models import Backbone, Dataset, Layer, Run, Sweep, Toolset, UnitProfile, VisionModelRow
from experiments.runs.asking.form import get_first_choice
from tests.support.builders import make_run
from tests.support.run_form import GOOD

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_catalogue")]
SHOWN = {"shown_model": "toybox", "shown_layer": "layer4", "shown_task": "describe"}
FUNCTION = {"model": "functions", "layer": "numeric", "unit": "3", "task": "function", "backbone": "scripted-functions"}


@pytest.fixture
def _catalogue(db: None, redis_url: str) -> None:
    cache.clear()
    model = VisionModelRow.objects.create(name="toybox", revision="1")
    Layer.objects.create(model=model, position=0, name="layer4", path="layer4", kind="conv", units=16)
    functions = VisionModelRow.objects.create(name="functions", revision="1")
    for place, family in enumerate(("numeric", "strings")):
        Layer.objects.create(model=functions, position=place, name=family, path=family, kind="function", units=1000)
    Dataset.objects.create(key="toybox", label="toybox validation scenes", images=3000)
    Toolset.objects.create(key="toybox", label="Toys")
    for key in ("scripted", "scripted-functions"):
        Backbone.objects.create(key=key, label=key)


def pick(client: Client, **query: str) -> str:
    chosen = {"model": "toybox", "layer": "layer4", "unit": "7", "task": "describe"} | SHOWN | query
    return client.get("/query/unit/", chosen).content.decode()


def is_checked(page: str, value: str, name: str = "task") -> bool:
    tag = page[page.index(f'name="{name}" value="{value}"') :]
    return " checked" in tag[: tag.index(">")]


@pytest.mark.parametrize("model", ["functions", "find:/data/find-dataset"])
def test_a_model_of_functions_is_told_by_its_name(as_owner: Client, model: str) -> None:
    row, _ = VisionModelRow.objects.get_or_create(name=model, defaults={"revision": "1"})
    Layer.objects.get_or_create(
        model=row, name="numeric", defaults={"position": 0, "path": "numeric", "kind": "function", "units": 9}
    )
    assert compatibility.has_functions(model)
    assert compatibility.explain_incompatibility("scripted-functions", "toybox", model) == ""
    assert "calls no function" in compatibility.explain_incompatibility("scripted", "toybox", model)
    assert compatibility.find_matching_plugins(model)["backbone"] == "scripted-functions"
    page = pick(as_owner, model=model, layer="numeric")
    assert is_checked(page, "function")
    assert is_checked(page, "scripted-functions", "backbone")
    page = as_owner.get("/sweeps/new/", {"model": model}).content.decode()
    assert '<option value="function" selected' in page


def test_the_task_leads_to_functions_of_ours_first(as_owner: Client) -> None:
    row = VisionModelRow.objects.create(name="find:/data/find-dataset", revision="1")
    Layer.objects.create(model=row, position=0, name="numeric", path="numeric", kind="function", units=9)
    assert "functions / numeric / function 0" in pick(as_owner, task="function")
    assert get_first_choice("find:/data/find-dataset", "function")["model"] == "find:/data/find-dataset"
    assert get_first_choice("", "function")["model"] == "functions"


def test_the_model_functions_brings_its_task_and_backbone(as_owner: Client) -> None:
    page = pick(as_owner, model="functions")
    assert is_checked(page, "function")
    assert is_checked(page, "scripted-functions", "backbone")
    assert "functions / numeric / function 7" in page
    assert "1000 functions" in page
    assert "Its code is hidden" in page
    assert 'data-function="What does function 7 of numeric compute?"' in page
    assert 'name="toolset" value="toybox"' in page
    assert "Tools<" not in page
    assert not UnitProfile.objects.exists()


def test_the_task_leads_to_functions_and_another_task_back(as_owner: Client) -> None:
    page = pick(as_owner, task="function")
    assert "functions / numeric / function 0" in page
    assert '<option value="functions" selected>' in page
    before = {"model_before": "toybox", "layer_before": "layer4", "unit_before": "7"}
    for name, value in before.items():
        assert f'name="{name}" value="{value}"' in page
    shown = {"shown_model": "functions", "shown_layer": "numeric", "shown_task": "function"}
    back = pick(as_owner, model="functions", layer="numeric", unit="0", **shown, **before)
    assert "toybox / layer4 / unit 7" in back
    assert is_checked(back, "scripted", "backbone")
    assert "toybox / layer4" in pick(as_owner, model="functions", layer="numeric", **shown)


def test_another_model_ends_the_task(as_owner: Client) -> None:
    shown = {"shown_model": "functions", "shown_layer": "numeric", "shown_task": "function"}
    page = pick(as_owner, layer="numeric", task="function", **shown)
    assert is_checked(page, "describe")
    assert "toybox / layer4 / unit 7" in page


def test_refresh_does_the_same_without_javascript(as_owner: Client) -> None:
    sent = {**GOOD, "model": "functions", "question": "", "look": "yes", **SHOWN}
    page = as_owner.post("/query/", sent).content.decode()
    assert is_checked(page, "function")
    assert "What does function 0 of numeric compute?</textarea>" in page


def test_an_address_that_names_functions_opens_their_form(as_owner: Client) -> None:
    page = as_owner.get("/query/?model=functions&layer=strings&unit=4").content.decode()
    assert is_checked(page, "function")
    assert "functions / strings / function 4" in page
    assert "What does function 4 of strings compute?" in page


def test_each_scripted_backbone_is_refused_what_it_does_not_know(as_owner: Client) -> None:
    asked = {**GOOD, "backbone": "scripted-functions"}
    assert "and toybox has none" in as_owner.post("/query/", asked).content.decode()
    asked = {**GOOD, **FUNCTION, "backbone": "scripted"}
    assert "calls no function" in as_owner.post("/query/", asked).content.decode()
    assert not Run.objects.exists()
    assert as_owner.post("/query/", {**GOOD, **FUNCTION}).status_code == 302
    assert Run.objects.get().system_kind == "function"


def test_the_baseline_of_functions_is_proposed_for_nothing_else() -> None:
    assert compatibility.find_matching_plugins("functions")["backbone"] == "scripted-functions"
    assert compatibility.find_matching_plugins("hf:microsoft/resnet-152")["backbone"] == "scripted"
    Backbone.objects.create(key="openai", label="A language model")
    assert compatibility.find_matching_plugins("functions")["backbone"] == "openai"
    assert compatibility.find_matching_plugins("toybox")["backbone"] == "scripted"


def test_the_page_of_a_function_shows_its_newest_conclusion(as_owner: Client, owner: User) -> None:
    conclusion = {"description": "It <doubles>.", "domain": "all numbers", "code": "def f(x):\n    return 2 * x"}
    make_run(owner, **FUNCTION | {"unit": 3}, status="concluded", conclusion=conclusion)
    page = as_owner.get("/units/functions/numeric/3/").content.decode()
    for words in ("<h1>Function 3", "It &lt;doubles&gt;.", "all numbers", "New run on this function"):
        assert words in page
    assert "return" in page
    for words in ("Exemplars", "Evidence for", "Similar units", "Find the exemplars"):
        assert words not in page
    assert "has concluded yet" in as_owner.get("/units/functions/numeric/4/").content.decode()
    assert not UnitProfile.objects.exists()


@pytest.mark.parametrize("address", ["numeric/", "numeric/?view=map", "", "numeric/3/card/"])
def test_pages_of_functions_offer_no_exemplars(as_owner: Client, address: str) -> None:
    page = as_owner.get(f"/units/functions/{address}")
    assert page.status_code == 200
    assert "xemplars" not in page.content.decode().partition("<main")[2].partition("</main")[0]


def test_exemplars_of_a_function_are_refused(as_owner: Client) -> None:
    answer = as_owner.post("/units/functions/numeric/exemplars/", {"dataset": "toybox"}, follow=True)
    assert "take no images" in answer.content.decode()
    assert not UnitProfile.objects.exists()


def test_a_sweep_over_functions_starts(as_owner: Client) -> None:
    form = as_owner.get("/sweeps/new/?model=functions").content.decode()
    assert '<option value="function" selected>' in form
    asked = {"model": "functions", "choose": "list", "units": "numeric,0\nnumeric,1\nnumeric,3", "task": "function"}
    sent = {**asked, "agent": "scripted-functions", "toolset": "toybox", "rounds": "10"}
    assert "takes no images" in as_owner.post("/sweeps/new/", {**sent, "task": "describe"}).content.decode()
    answer = as_owner.post("/sweeps/new/", {**sent, "start": "yes"})
    assert answer.status_code == 302, answer.content.decode()
    assert Sweep.objects.get().planned == 3


def test_the_command_takes_task_and_baseline_by_itself(settings: Any, tmp_path: Any) -> None:
    settings.STATE = tmp_path
    out = StringIO()
    call_command("investigate", "--model=functions", "--layer=numeric", "--unit=10", "--json", stdout=out)
    told = json.loads(out.getvalue())
    assert (told["status"], told["task"]) == ("concluded", "function")
    assert "def f(" in told["code"]
    assert told["domain"]
