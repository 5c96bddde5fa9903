"""Circuits that workers look for: asked once, on pages and by scripts, measured by a worker, kept as circuits."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from experiments.circuits import actions, searches
from experiments.circuits.searches import CircuitQuestion, check_question
from experiments.core.actors import Actor
from experiments.core.errors import InvalidInput
from experiments.models import Circuit, CircuitSearch, Dataset, Job, Layer, VisionModelRow
from tests.support.circuits import make_circuit_search
from workers.jobs import long, registration
from workers.record.circuits import read_circuit_report

pytestmark = pytest.mark.django_db

ASKED = {"target": "cone", "dataset": "toybox", "images": "100", "seeds": "3"}


@pytest.fixture
def layer() -> Layer:
    """One of a network whose classes are known, with a dataset."""
    model = VisionModelRow.objects.create(name="toybox")
    names = ["car", "cone", "house"]
    Layer.objects.create(model=model, position=1, name="logits", kind="logit", units=3, names=names)
    Dataset.objects.create(key="toybox", label="Toybox", images=200)
    return Layer.objects.create(model=model, position=0, name="layer4", kind="conv", units=8, names=[])


def ask(client: Client, where: Layer, **changes: str) -> Any:
    return client.post(reverse("circuit-search-ask"), ASKED | {"layer": str(where.pk)} | changes)


def test_the_same_question_is_asked_once(as_owner: Client, layer: Layer) -> None:
    first, second = ask(as_owner, layer), ask(as_owner, layer, target="  cone ")
    row = CircuitSearch.objects.get()
    assert first.url == second.url == row.get_absolute_url()
    assert (row.target, row.images, row.seeds, row.status) == ("cone", 100, 3, "queued")
    assert Job.objects.get().options == {"row": row.pk}
    ask(as_owner, layer, seeds="4")
    assert CircuitSearch.objects.count() == 2


def test_one_that_failed_begins_anew_and_one_that_is_measured_does_not(as_owner: Client, layer: Layer) -> None:
    ask(as_owner, layer)
    Job.objects.update(status="failed", result="The disk is full.")
    assert b"The disk is full." in as_owner.get(CircuitSearch.objects.get().get_absolute_url()).content
    ask(as_owner, layer)
    assert CircuitSearch.objects.get().status == "queued"
    done = make_circuit_search(layer, Dataset.objects.get())
    ask(as_owner, layer, target="car")
    done.refresh_from_db()
    assert (done.status, done.job) == ("done", None)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"target": ""}, "Name the class in 1 to 200 characters"),
        ({"target": "x" * 201}, "Name the class in 1 to 200 characters"),
        ({"target": "zebra"}, "toybox has no class “zebra”. Choose one such as car."),
        ({"target": "3"}, "toybox has no class “3”"),
        ({"layer": "999"}, "Choose a layer."),
        ({"layer": ""}, "Choose a layer."),
        ({"dataset": "gone"}, "No worker can use a dataset &#x27;gone&#x27;"),
        ({"images": "7"}, "7 images are out of range. Give a number from 8 to 500."),
        ({"images": "many"}, "Write the number of images as a whole number."),
        ({"seeds": "0"}, "0 seeds are out of range. Give a number from 1 to 20."),
    ],
)
def test_what_makes_no_sense_is_refused_and_stays_in_the_form(
    as_owner: Client, layer: Layer, changes: dict[str, str], says: str
) -> None:
    answer = ask(as_owner, layer, **changes)
    text = answer.content.decode()
    assert answer.status_code == 400
    assert says in text
    typed = ASKED | changes
    assert f'value="{typed["target"]}"' in text
    assert not CircuitSearch.objects.exists()


def test_outputs_have_no_circuit_in_themselves(layer: Layer) -> None:
    with pytest.raises(InvalidInput, match="no class rests on them"):
        check_question(Layer.objects.get(name="logits"), CircuitQuestion("car"))


def test_the_page_shows_figures_beside_chance_and_keeps_the_strongest(as_owner: Client, layer: Layer) -> None:
    row = make_circuit_search(layer, Dataset.objects.get())
    text = as_owner.get(row.get_absolute_url()).content.decode()
    assert "0.90 [0.80, 1.00]" in text
    assert "Drawn at random" in text
    assert text.count("<polyline") == 4  # two figures, two ways
    answer = as_owner.post(reverse("circuit-search-keep", args=[row.pk]), {"name": "wheels", "count": "2"})
    circuit = Circuit.objects.get()
    assert answer.url == circuit.get_absolute_url()
    assert [each.number for each in circuit.members.all()] == [1, 2]
    assert circuit.note == "Found by effect on the logit of car."


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        ({"name": "", "count": "2"}, "Give the circuit a name."),
        ({"name": "wheels", "count": "3"}, "2 members were found. Keep 1 to 2 of them, not 3."),
        ({"name": "wheels", "count": ""}, "Write the number of members as a whole number."),
    ],
)
def test_what_cannot_be_kept_is_told(as_owner: Client, layer: Layer, sent: dict[str, str], says: str) -> None:
    row = make_circuit_search(layer, Dataset.objects.get())
    answer = as_owner.post(reverse("circuit-search-keep", args=[row.pk]), sent)
    assert answer.status_code == 400
    assert says in answer.content.decode()
    assert not Circuit.objects.exists()


def test_a_result_that_makes_no_sense_is_told_and_nothing_is_kept_of_it(owner: User, layer: Layer) -> None:
    row = make_circuit_search(layer, Dataset.objects.get())
    row.result = {"curves": 7}
    row.save()
    assert searches.read_found(row) is None
    with pytest.raises(InvalidInput, match="0 members were found"):
        actions.keep_found(Actor(owner), row, "wheels", 1)


@pytest.mark.usefixtures("on_own_toybox", "no_redis", "one_thread")
@pytest.mark.django_db(transaction=True)
def test_a_worker_finds_one(owner: User) -> None:
    registration.model("toybox")
    layer = Layer.objects.select_related("model").get(model__name="toybox", name="layer4")
    dataset = Dataset.objects.create(key="toybox", label="Toybox", images=200)
    row = actions.search_circuit(Actor(owner), layer, dataset, CircuitQuestion("car", images=8, seeds=1))
    assert row.job is not None
    status, words = long.outcome(row.job)
    row.refresh_from_db()
    assert (status, row.status) == ("done", "done"), words
    report = read_circuit_report(row.result)
    assert (report.target, report.images, report.seeds) == ("car", 8, 1)
    assert {each.method for each in report.curves} == {"effect", "gradients", "lift", "random"}
    assert len(report.members) == 20
