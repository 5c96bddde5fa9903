"""Labels that people write for an evaluation, and its judge: what its page, form and API say of them."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import QueryDict

from experiments.core.actors import Actor
from experiments.core.errors import InvalidInput, StateConflict
from experiments.evaluations import actions
from experiments.evaluations.form import NewEvaluation
from experiments.models import Backbone, Evaluation, EvaluationItem, Run
from experiments.pairwise import sources
from tests.support.api_world import Script
from tests.support.own_rows import compared
from tests.support.people import member, signed_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def neurons(owner: User) -> Evaluation:
    """Of one synthetic neuron."""
    return compared(owner)


def test_a_page_asks_people_and_shows_how_far_they_are(neurons: Evaluation, owner: User) -> None:
    admin, viewer = signed_in(member("admin", "ADMIN")), signed_in(member("viewer", "VIEWER"))
    button = "Request labels by people for a quarter"
    assert button in admin.get(neurons.get_absolute_url()).content.decode()
    assert button not in viewer.get(neurons.get_absolute_url()).content.decode()
    answer = admin.post(f"/evaluations/{neurons.pk}/people/")
    assert answer["Location"] == neurons.get_absolute_url()
    run = Run.objects.get()
    page = admin.get(neurons.get_absolute_url()).content.decode()
    assert "Written by people: 0 of 1" in page
    assert "Unfinished: 2 of 3" in page
    assert "Waits for people" in page
    part = page[page.index('id="people"') :]
    assert f'href="{run.get_absolute_url()}"' in part
    assert ">Write</a>" in part
    assert ">Write</a>" not in viewer.get(neurons.get_absolute_url()).content.decode()
    assert "already" in admin.post(f"/evaluations/{neurons.pk}/people/", follow=True).content.decode()
    Run.objects.update(status="concluded")
    assert "Written by people: 1 of 1" in admin.get(neurons.get_absolute_url()).content.decode()


def test_while_one_writes_the_neuron_has_no_name(neurons: Evaluation, owner: User) -> None:
    client = signed_in(member("colleague", "RESEARCHER"))
    (item,) = actions.ask_people(Actor(owner), neurons)
    assert "Left out until people have written their labels: 2 items" in (
        client.get(neurons.get_absolute_url()).content.decode()
    )
    told = Script(owner).get(f"/evaluations/{neurons.pk}/items").json()["items"]
    assert [(each["label"], each["run"]) for each in told] == [("", item.run_id)]
    assert "toys / unit 0" not in client.get(neurons.get_absolute_url()).content.decode()
    assert not re.search(r"\btoys\b", client.get(f"/runs/{item.run_id}/").content.decode())
    Run.objects.update(status="concluded")
    assert client.get(neurons.get_absolute_url()).content.decode().count("toys / unit 0") >= 4


def test_scripts_ask_people_too(neurons: Evaluation, owner: User) -> None:
    script = Script(owner)
    told = script.post(f"/evaluations/{neurons.pk}/people").json()
    assert (told["all_items"], told["open_items"], told["waiting_items"]) == (3, 1, 1)
    assert script.post(f"/evaluations/{neurons.pk}/people").status_code == 409
    (item,) = (each for each in script.get(f"/evaluations/{neurons.pk}/items").json()["items"] if each["run"])
    assert (item["source"], item["status"]) == ("person", "planned")


def test_people_are_asked_by_whoever_may_change_it_of_what_they_can_label(neurons: Evaluation, owner: User) -> None:
    with pytest.raises(PermissionDenied):
        actions.ask_people(Actor(member("colleague", "RESEARCHER")), neurons)
    Evaluation.objects.update(kind="bias")
    neurons.refresh_from_db()
    with pytest.raises(StateConflict, match="of something else"):
        actions.ask_people(Actor(owner), neurons)
    assert EvaluationItem.objects.filter(source="person").count() == 0


def form(**fields: str) -> NewEvaluation:
    sent = QueryDict(mutable=True)
    sent.update({"kind": "synthetic", "backbone": "scripted", "units": "8"} | fields)
    return NewEvaluation(sent, sources.list_sources())


def test_a_form_names_the_judge(owner: User, scripted: Backbone, redis_url: str) -> None:
    prices = {"model_names": ["gpt-4o", "own"], "prices": {"gpt-4o": [2.5, 10]}}
    Backbone.objects.create(key="openai", label="Vision-language model", **prices)
    assert actions.start(Actor(owner), form(judge="scripted")).options["judge"] == "scripted"
    assert actions.start(Actor(owner), form(judge="openai:gpt-4o")).options["judge"] == "openai:gpt-4o"
    assert actions.start(Actor(owner), form(judge="openai:own", unpriced="on")).unpriced
    assert "judge" not in actions.start(Actor(owner), form()).options
    for judge, why in (("openai:own", "No price is known for own"), ("person", "“person” that could judge")):
        with pytest.raises(InvalidInput, match=f"Judge: .*{why}"):
            actions.start(Actor(owner), form(judge=judge))
    admin, words = signed_in(member("admin", "ADMIN")), "Scripted scientist, by the words of the truth"
    assert words in admin.get("/evaluations/new/?kind=synthetic").content.decode()
    assert words not in admin.get("/evaluations/new/?kind=units").content.decode()
    asked = {"kind": "synthetic", "backbone": "scripted", "judge": "scripted"}
    assert Script(owner).post("/evaluations", asked).json()["options"]["judge"] == "scripted"
