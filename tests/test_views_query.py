"""The New query page: asking, the picker, and exemplars while a worker makes them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client
from redis import Redis

from experiments import live, transcript
from experiments.models import Exemplar, Layer, Model, Run, Unit
from tests.builders import as_json, make_run
from tests.pictures import stored
from tests.test_forms import GOOD
from workers.agent.events import Conclusion, Ended

pytestmark = pytest.mark.django_db


@pytest.fixture
def layer() -> Layer:
    cache.clear()
    model = Model.objects.create(name="toybox", revision="1")
    Layer.objects.create(model=model, position=0, name="conv1", path="conv1", kind="conv", units=8)
    return Layer.objects.create(model=model, position=1, name="layer4", path="layer4", kind="conv", units=16)


def picker(client: Client, **query: str) -> str:
    return client.get("/query/unit/", {"model": "toybox", "layer": "layer4", "unit": "7"} | query).content.decode()


def waiting_in(redis_url: str, queue: str) -> list[object]:
    with Redis.from_url(redis_url) as redis:
        return [json.loads(message)["headers"]["argsrepr"] for message in redis.lrange(queue, 0, -1)]


def test_without_models_it_says_that_the_worker_is_loading_them_and_looks_again(as_owner: Client) -> None:
    text = as_owner.get("/query/").content.decode()
    assert "The worker is loading the models…" in text
    assert "every 2s" in text


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
    assert waiting_in(redis_url, "rounds") == [f"({run.pk},)"]


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


def test_the_picker_asks_once_for_exemplars_and_shows_their_shape_meanwhile(
    as_owner: Client, layer: Layer, redis_url: str, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        text = picker(as_owner)
        picker(as_owner)
    assert text.count('class="skeleton"') == 15
    assert "every 1s" in text
    assert waiting_in(redis_url, "long") == [f"({Unit.objects.get().pk},)"]


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
    live.report(f"unit:{Unit.objects.get().pk}", "Indexing layer4", 40, 200)
    assert "Indexing layer4: 40 of 200" in picker(as_owner)


def test_exemplars_are_shown_masked_with_the_raw_image_at_hand(as_owner: Client, layer: Layer, owner: User) -> None:
    unit = Unit.objects.create(layer=layer, number=7, indexed=True)
    raw, masked = stored("red"), stored("darkred")
    Exemplar.objects.create(unit=unit, rank=1, activation=36.92, image_id=raw, masked_id=masked)
    run = make_run(owner)
    transcript.append(run.pk, "concluded", as_json(Ended("", Conclusion("", ("red balls",)))))
    text = picker(as_owner)
    assert f'src="/images/{masked}.png"' in text
    assert f'data-raw="/images/{raw}.png"' in text
    assert "36.92" in text
    assert "red balls" in text
    assert "every 1s" not in text


def test_a_unit_without_exemplars_is_called_what_it_is(as_owner: Client, layer: Layer) -> None:
    Unit.objects.create(layer=layer, number=7, indexed=True)
    assert "No image of the data set activates this unit" in picker(as_owner)


def test_another_model_brings_its_own_layers(as_owner: Client, layer: Layer, redis_url: str) -> None:
    other = Model.objects.create(name="dino", revision="1")
    Layer.objects.create(model=other, position=0, name="blocks.1.mlp.fc1", path="b", kind="mlp", units=4)
    query = {"model": "dino", "layer": "layer4", "unit": "3"}
    text = as_owner.get("/query/unit/", query, headers={"HX-Trigger-Name": "model"}).content.decode()
    assert "blocks.1.mlp.fc1 · 4 units" in text
    assert "layer4" not in text


def test_the_command_line_follows_the_form(as_owner: Client) -> None:
    text = as_owner.get("/query/command/", {"model": "toybox", "layer": "conv1", "unit": "<b>"}).content.decode()
    assert "--layer conv1" in text
    assert "<b>" not in text
