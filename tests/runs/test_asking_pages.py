"""The New run page: asking, the picker, and exemplars while a worker makes them."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from experiments.core import notify, transcript
from experiments.models import Backbone, Dataset, Exemplar, Layer, Run, Toolset, Unit, UnitProfile, VisionModelRow
from tests.support.api_world import Script
from tests.support.builders import make_run
from tests.support.pictures import stored
from tests.support.queued import list_queued, waiting_in
from tests.support.run_form import GOOD
from tests.support.unit_pages import labelled
from workers.record.events import Ended
from workers.record.replies import Conclusion

pytestmark = pytest.mark.django_db


@pytest.fixture
def layer() -> Layer:
    cache.clear()
    model = VisionModelRow.objects.create(name="toybox", revision="1")
    Layer.objects.create(model=model, position=0, name="conv1", path="conv1", kind="conv", units=8)
    Dataset.objects.create(key="toybox", label="toybox validation scenes", images=3000)
    return Layer.objects.create(model=model, position=1, name="layer4", path="layer4", kind="conv", units=16)


def written(layer: Layer) -> UnitProfile:
    """The profile of unit 7, as a worker leaves it."""
    unit = Unit.objects.create(layer=layer, number=7)
    return UnitProfile.objects.create(unit=unit, dataset=Dataset.objects.get(), written=timezone.now(), active=0.004)


def picker(client: Client, **query: str) -> str:
    return client.get("/query/unit/", {"model": "toybox", "layer": "layer4", "unit": "7"} | query).content.decode()


def test_without_models_it_says_that_the_worker_is_loading_them_and_looks_again(as_owner: Client) -> None:
    text = as_owner.get("/query/").content.decode()
    assert "The worker is loading the models…" in text
    assert "every 2s" in text


def test_once_the_models_are_there_the_page_that_waits_opens_anew(as_owner: Client, layer: Layer) -> None:
    answer = as_owner.get("/query/", headers={"HX-Request": "true"})
    assert answer["HX-Refresh"] == "true"


def test_a_fresh_form_has_a_question_that_fits(as_owner: Client, layer: Layer, redis_url: str) -> None:
    text = as_owner.get("/query/").content.decode()
    assert "What does unit 0 of layer4 in toybox respond to?" in text
    assert "Is there a bias" in as_owner.get("/query/?unit=3&task=bias").content.decode()


def test_a_good_query_is_kept_enqueued_and_shown(
    as_owner: Client, layer: Layer, redis_url: str, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        response = as_owner.post("/query/", GOOD)
    run = Run.objects.get()
    assert response["Location"] == f"/runs/{run.pk}/"
    assert list_queued() == {run.pk}


def test_a_bad_query_starts_nothing_and_keeps_what_was_typed(as_owner: Client, layer: Layer, redis_url: str) -> None:
    bad = GOOD | {"question": "Keep me " + "x" * 100_000, "unit": "99", "cost": "0", "rounds": "12"}
    response = as_owner.post("/query/", bad)
    text = response.content.decode()
    assert not Run.objects.exists()
    assert bad["question"] in text
    assert "has units 0 to 15" in text
    assert "A limit must be above 0" in text
    assert 'value="12"' in text
    assert 'value="99"' in text


def test_a_body_beyond_all_limits_is_refused_in_words(as_owner: Client, layer: Layer) -> None:
    response = as_owner.post("/query/", GOOD | {"question": "x" * 2_000_000})
    assert response.status_code == 400
    assert "at most 1 MB" in response.content.decode()


def test_it_can_ask_the_same_again(as_owner: Client, owner: User, layer: Layer, redis_url: str) -> None:
    run = make_run(owner, question="Once more?", unit=5, seed=9, limits={"rounds": 4, "tokens": None})
    text = as_owner.get(f"/query/?like={run.pk}").content.decode()
    assert "Once more?" in text
    assert 'name="seed" value="9"' in text
    assert 'name="rounds" value="4"' in text
    assert as_owner.get("/query/?like=999&unit=x").status_code == 200


@pytest.mark.parametrize("unit", ["16", "-1", "", "x", "9" * 40, "²"])
def test_the_picker_names_the_range_and_makes_no_row_for_a_unit_that_does_not_exist(
    as_owner: Client, layer: Layer, unit: str
) -> None:
    assert "0 to 15" in picker(as_owner, unit=unit)
    assert not Unit.objects.exists()


def test_the_picker_says_that_a_model_has_no_layers(as_owner: Client, layer: Layer) -> None:
    VisionModelRow.objects.create(name="bare", revision="1")
    assert "This model has no layers." in picker(as_owner, model="bare")


def test_the_picker_asks_once_for_exemplars_and_shows_their_shape_meanwhile(
    as_owner: Client, layer: Layer, redis_url: str, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        text = picker(as_owner)
        picker(as_owner)
    assert text.count('class="skeleton"') == 15
    assert "every 1s" in text
    assert waiting_in(redis_url, "long") == [f"({UnitProfile.objects.get().pk},)"]


def test_it_asks_again_once_the_first_request_may_be_lost(
    as_owner: Client, layer: Layer, redis_url: str, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        picker(as_owner)
        cache.clear()
        picker(as_owner)
    assert len(waiting_in(redis_url, "long")) == 2


def test_it_shows_how_far_the_worker_is(as_owner: Client, layer: Layer, redis_url: str) -> None:
    picker(as_owner)
    notify.keep_report(f"profile:{UnitProfile.objects.get().pk}", "Indexing layer4", 40, 200)
    assert "Indexing layer4: 40 of 200" in picker(as_owner)


def test_exemplars_are_shown_masked_with_the_raw_image_at_hand(as_owner: Client, layer: Layer, owner: User) -> None:
    profile = written(layer)
    raw, masked = stored("red"), stored("darkred")
    Exemplar.objects.create(profile=profile, rank=1, activation=36.92, image_id=raw, masked_id=masked)
    run = make_run(owner)
    transcript.append(run.pk, "concluded", Ended("", Conclusion("", ("red balls",))))
    text = picker(as_owner)
    assert f'<a class="frame" href="/images/{raw}/"><img class="masked" src="/images/{masked}/thumb-160.webp"' in text
    assert f'<img class="raw" src="/images/{raw}/thumb-160.webp"' in text
    assert f'data-raw="/images/{raw}.png"' in text
    assert "36.92" in text
    assert "red balls" in text
    assert "every 1s" not in text


def test_a_unit_without_exemplars_is_called_what_it_is(as_owner: Client, layer: Layer) -> None:
    written(layer)
    assert "No image of toybox validation scenes activates this unit" in picker(as_owner)


def test_another_model_brings_its_own_layers(as_owner: Client, layer: Layer, redis_url: str) -> None:
    other = VisionModelRow.objects.create(name="dino", revision="1")
    Layer.objects.create(model=other, position=0, name="blocks.1.mlp.fc1", path="b", kind="mlp", units=4)
    text = picker(as_owner, model="dino", unit="3", shown_model="toybox", shown_layer="layer4")
    assert "blocks.1.mlp.fc1 · 4 units" in text
    assert "layer4" not in text
    assert 'id="tools" hx-swap-oob="true"' in text


def test_the_command_line_follows_the_form(as_owner: Client) -> None:
    text = as_owner.get("/query/command/", {"model": "toybox", "layer": "conv1", "unit": "<i>"}).content.decode()
    assert "--layer</span> conv1" in text
    assert "<i>" not in text


def test_a_layer_whose_units_have_names_offers_them(as_owner: Client, layer: Layer, redis_url: str) -> None:
    classes = {"kind": "logit", "units": 2, "names": ["<ball>", "crane"]}
    Layer.objects.create(model=layer.model, position=2, name="logits", path="head", **classes)
    text = picker(as_owner, layer="logits", unit="CRANE", shown_model="toybox", shown_layer="layer4")
    assert '<option value="&lt;ball&gt; (0)">' in text
    assert 'value="crane (1)"' in text
    assert "toybox / logits / unit 1" in text
    assert 'id="tools"' not in text, "the tools stay as somebody chose them"


def test_exemplars_come_from_the_dataset_that_is_picked(as_owner: Client, layer: Layer, redis_url: str) -> None:
    written(layer)
    other = Dataset.objects.create(key="folder:/birds", label="birds", images=12)
    assert "birds · 12 images" in as_owner.get("/query/").content.decode()
    assert "every 1s" in picker(as_owner, dataset="folder:/birds")
    assert UnitProfile.objects.filter(dataset=other).exists()
    gone = {"available": False, "remedy": "The folder /birds is gone."}
    Dataset.objects.filter(pk=other.pk).update(**gone)
    assert "The folder /birds is gone." in picker(as_owner, dataset="folder:/birds")


def test_exemplars_that_failed_say_why_and_are_asked_for_again_by_a_person(
    as_owner: Client, layer: Layer, redis_url: str, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        picker(as_owner)
    UnitProfile.objects.update(problem="The disk is full. Make room.")
    with django_capture_on_commit_callbacks(execute=True):
        text = picker(as_owner)
    assert "The disk is full. Make room." in text
    assert "every 1s" not in text
    assert len(waiting_in(redis_url, "long")) == 1
    with django_capture_on_commit_callbacks(execute=True):
        assert "every 1s" in picker(as_owner, again="1")
    assert len(waiting_in(redis_url, "long")) == 2


def test_what_is_not_installed_is_no_choice_and_stands_behind_add_with_its_command(
    as_owner: Client, layer: Layer
) -> None:
    remedy = {"available": False, "remedy": "Not on this machine. Get it: hf download some/thing"}
    VisionModelRow.objects.create(name="hf:some/thing", label="Some thing", **remedy)
    Toolset.objects.create(key="toybox", label="Toys")
    Toolset.objects.create(key="diffusion", label="Photographs", **remedy)
    Backbone.objects.create(key="scripted", label="Scripted scientist")
    Backbone.objects.create(key="openai", label="Language model", available=False, remedy="Set OPENAI_API_KEY.")
    text = as_owner.get("/query/").content.decode()
    assert 'value="hf:some/thing"' not in text
    assert "Add a model" in text
    assert text.count("<code>hf download some/thing</code>") == 2
    assert 'value="openai"' not in text
    assert "Set OPENAI_API_KEY." in text


def test_a_backbone_with_models_lets_one_choose(as_owner: Client, layer: Layer) -> None:
    Backbone.objects.create(key="scripted", label="Scripted scientist")
    Backbone.objects.create(key="openai", label="Language model", model_names=["gpt-4o", "gpt-4.1"])
    text = as_owner.get("/query/").content.decode()
    assert '<option value="gpt-4.1"' in text
    assert 'value="scripted" checked' in text


def test_the_form_warns_of_tools_and_an_agent_that_do_not_fit(as_owner: Client) -> None:
    chosen = {"model": "hf:x/y", "toolset": "diffusion", "backbone": "scripted"}
    assert "knows toybox&#x27;s concepts" in as_owner.get("/query/command/", chosen).content.decode()
    assert "draw toys" in as_owner.get("/query/command/", chosen | {"toolset": "toybox"}).content.decode()


def test_a_question_that_names_another_unit_is_told_before_it_starts(as_owner: Client, layer: Layer) -> None:
    asked = {"model": "toybox", "layer": "layer4", "unit": "13"}
    told = as_owner.get("/query/command/", asked | {"question": "What does unit 12 respond to?"}).content.decode()
    assert "speaks of unit 12, but unit 13 is chosen" in told
    for fine in ("What does unit 13 respond to?", "Is unit 13 like unit 12?", "What is it?"):
        assert "is chosen" not in as_owner.get("/query/command/", asked | {"question": fine}).content.decode()


def test_a_refused_query_knows_which_words_were_suggested_and_leads_to_the_field(
    as_owner: Client, layer: Layer
) -> None:
    words = "What does unit 12 of layer4 in toybox respond to?"
    text = as_owner.post("/query/", GOOD | {"unit": "500", "question": words, "suggested": words}).content.decode()
    assert f'id="suggested" value="{words}"' in text
    assert '<a href="#id_unit">' in text


def test_several_units_lead_to_the_form_of_a_sweep_with_all_that_was_chosen(as_owner: Client, layer: Layer) -> None:
    Backbone.objects.create(key="scripted", label="Scripted scientist")
    question = "What does unit {unit} do?"
    response = as_owner.post("/query/", GOOD | {"unit": "3, 5, 8-10", "question": question})
    assert not Run.objects.exists()
    address = urlsplit(response["Location"])
    assert address.path == "/sweeps/new/"
    filled = {name: values[0] for name, values in parse_qs(address.query, keep_blank_values=True).items()}
    assert filled["units"].split() == ["3", "5", "8-10"]
    assert (filled["question"], filled["agent"], filled["rounds"], filled["tokens"]) == (question, "scripted", "3", "")
    text = as_owner.get(response["Location"]).content.decode()
    assert "5 units of layer4 in toybox" in text
    assert "5 units: a sweep" in picker(as_owner, unit="3, 5, 8-10")
    assert "What does unit {unit} of {layer} in {model} respond to?" in picker(as_owner, unit="3, 5")


def test_a_task_about_classes_offers_these_by_name_and_gives_the_layer_back(as_owner: Client, layer: Layer) -> None:
    classes = {"kind": "logit", "units": 2, "names": ["ball", "crane"]}
    Layer.objects.create(model=layer.model, position=2, name="logits", path="head", **classes)
    shown = {"shown_model": "toybox", "shown_layer": "layer4", "shown_task": "describe"}
    text = picker(as_owner, task="bias", **shown)
    assert 'value="ball (0)"' in text
    assert '<option value="logits" selected>' in text
    assert "In which contexts does toybox find “ball”" in text
    assert 'name="layer_before" value="layer4"' in text
    back = {"layer_before": "layer4", "unit_before": "7", "shown_layer": "logits", "shown_task": "bias"}
    text = picker(as_owner, layer="logits", unit="ball (0)", task="describe", **shown | back)
    assert "toybox / layer4 / unit 7" in text
    assert "toybox / logits / unit 0" in as_owner.get("/query/?task=bias").content.decode()


def test_without_scripts_choices_are_looked_at_by_hand(as_owner: Client, layer: Layer) -> None:
    words = "What does unit 7 of layer4 in toybox respond to?"
    shown = {"shown_model": "toybox", "shown_layer": "layer4", "shown_task": "describe", "suggested": words}
    again = GOOD | shown | {"unit": "9", "look": "yes"}
    assert "What does unit 9 of" in as_owner.post("/query/", again | {"question": words}).content.decode()
    assert "My own words?" in as_owner.post("/query/", again | {"question": "My own words?"}).content.decode()
    assert not Run.objects.exists()


def test_what_a_run_takes_is_told_from_recorded_ones_or_not_known(as_owner: Client, owner: User, layer: Layer) -> None:
    Backbone.objects.create(key="scripted", label="Scripted scientist")
    assert "not known yet" in as_owner.get("/query/").content.decode()
    for seconds in (60, 80, 100):
        make_run(owner, status="concluded", backbone="scripted", seconds=seconds)
    text = as_owner.get("/query/").content.decode()
    assert "<b>1 min 20 s</b>, <b>free</b>" in text
    assert "n = 3 recorded runs" in text


def test_a_tick_that_was_taken_off_is_a_change(as_owner: Client, owner: User, layer: Layer, redis_url: str) -> None:
    run = make_run(owner, options={"ablation": True})
    text = as_owner.get(f"/query/?from={run.pk}").content.decode()
    assert "checked" in text.partition('name="ablation"')[2].partition(">")[0]
    assert "<dt>Ablation</dt>" in as_owner.get(run.get_absolute_url()).content.decode()
    sent = GOOD | {"parent": run.pk, "ablation": "on"}
    ticked = as_owner.get("/query/command/", sent).content.decode()
    assert "<li>Ablation" not in ticked
    assert "seed 0 · ablation" in ticked
    del sent["ablation"]
    assert "<li>Ablation <s>on</s> <b>none</b>" in as_owner.get("/query/command/", sent).content.decode()


def test_ablation_of_a_class_is_refused_beside_the_tick(as_owner: Client, layer: Layer) -> None:
    Layer.objects.update(kind="logit")
    text = as_owner.post("/query/", GOOD | {"ablation": "on"}).content.decode()
    assert not Run.objects.exists()
    assert "A class is an output of the model itself" in text
    assert '<a href="#id_ablation">Ablation</a>' in text


def test_a_script_asks_for_ablation_and_again(owner: User, layer: Layer, redis_url: str) -> None:
    script = Script(owner)
    asked = {"question": "Why?", "model": "toybox", "layer": layer.name, "unit": 7, "ablation": True}
    made = script.post("/runs", asked)
    assert made.status_code == 201, made.content
    script.post(f"/runs/{made.json()['id']}/again")
    script.post("/runs", asked | {"ablation": False})
    assert [run.options.get("ablation") for run in Run.objects.order_by("pk")] == [True, True, None]
    Layer.objects.update(kind="logit")
    refused = script.post("/runs", asked)
    assert refused.status_code == 422
    assert "A class is an output of the model itself" in refused.content.decode()


def test_units_are_chosen_by_words(as_owner: Client, layer: Layer) -> None:
    def sent(unit: str) -> dict[str, str]:
        address = urlsplit(as_owner.post("/query/", GOOD | {"unit": unit})["Location"])
        assert address.path == "/sweeps/new/"
        return {name: values[0] for name, values in parse_qs(address.query).items()}

    assert sent(" All ")["choose"] == "layers"
    for number in range(layer.units - 1):
        labelled(layer, number, f"thing {number}")
    last = str(layer.units - 1)
    assert sent("all without a label")["units"] == last
    assert f"unit {last}" in picker(as_owner, unit="All without  a label")
    labelled(layer, layer.units - 1, "the last thing")
    refused = as_owner.post("/query/", GOOD | {"unit": "all without a label"}).content.decode()
    assert "Every unit of layer4 has a label." in picker(as_owner, unit="all without a label")
    assert '<a href="#id_unit">' in refused


def test_an_error_is_tied_to_its_field_and_opens_the_settings(as_owner: Client, layer: Layer) -> None:
    assert 'id="settings" open' not in as_owner.get("/query/").content.decode()
    text = as_owner.post("/query/", GOOD | {"exemplars": "77"}).content.decode()
    field = next(tag for tag in text.split("<input")[1:] if 'name="exemplars"' in tag).split(">")[0]
    assert 'aria-describedby="id_exemplars_helptext id_exemplars_error"' in field
    assert 'aria-invalid="true"' in field
    assert '<p class="field-error" id="id_exemplars_error">Ensure' in text
    assert 'id="settings" open' in text


def test_the_model_keeps_its_note_beside_an_error(as_owner: Client, layer: Layer) -> None:
    VisionModelRow.objects.filter(pk=layer.model_id).update(about="imagenet")
    text = as_owner.post("/query/", GOOD | {"rounds": "0"}).content.decode()
    assert '<span id="model-note">imagenet</span>' in text
