"""Many runs at once: each action asks, acts on what it can, and says what it could not do."""

from __future__ import annotations

import re

import pytest
from django.contrib.messages import get_messages

from experiments.models import Layer, Run, SavedView, Tag, VisionModelRow
from tests.support.builders import make_run

pytestmark = pytest.mark.django_db


def act(client, action, runs, *, sure=False, **more):
    """What the page answers, and the messages it leaves."""
    data = {"action": action, "run": [run.pk for run in runs]} | ({"sure": "yes"} if sure else {}) | more
    response = client.post("/runs/act/", data)
    return response, [str(message) for message in get_messages(response.wsgi_request)]


def test_it_asks_before_it_acts(as_owner, owner):
    runs = [make_run(owner) for _ in range(3)]
    response, _ = act(as_owner, "stop", runs)
    assert "Stop 3 runs?" in response.content.decode()
    assert not Run.objects.filter(cancel_requested=True).exists()


def test_what_is_alive_is_stopped_and_what_has_ended_is_named(as_owner, owner, redis_url):
    alive, ended = make_run(owner), make_run(owner, status="concluded")
    response, said = act(as_owner, "stop", [alive, ended], sure=True)
    assert response.status_code == 302
    assert said == ["Stopped 1 run.", f"Not run {ended.pk}: it has ended already."]
    alive.refresh_from_db()
    assert alive.status == "cancelled"


def test_an_ended_run_is_asked_again_as_a_new_one(as_owner, owner, redis_url):
    model = VisionModelRow.objects.create(name="toybox", available=True)
    Layer.objects.create(model=model, position=0, name="layer4", kind="conv", units=128)
    ended, alive = make_run(owner, status="failed", seed=7), make_run(owner)
    _, said = act(as_owner, "retry", [ended, alive], sure=True)
    assert said == ["Started 1 run again.", f"Not run {alive.pk}: it is still under way."]
    again = Run.objects.latest("pk")
    assert (again.question, again.seed, again.status, again.parent) == (ended.question, 7, "queued", ended)


def test_what_cannot_be_asked_any_more_is_named(as_owner, owner):
    ended = make_run(owner, status="failed")
    _, said = act(as_owner, "retry", [ended], sure=True)
    assert "There is no model “toybox”" in said[1]
    assert Run.objects.get() == ended


def test_runs_are_tagged_and_untagged(as_owner, owner):
    runs = [make_run(owner) for _ in range(2)]
    act(as_owner, "tag", runs, sure=True, tag=" <b>odd</b> ")
    assert Tag.objects.get().name == "<b>odd</b>"
    assert "&lt;b&gt;odd" in as_owner.get("/runs/?col=tags").content.decode()
    _, said = act(as_owner, "untag", [*runs, make_run(owner)], sure=True, tag="<b>odd</b>")
    assert said[0] == "Took the tag off 2 runs."
    assert not Tag.objects.exists()


def test_all_that_the_filters_choose_can_be_acted_on(as_owner, owner):
    for unit in (1, 1, 2):
        make_run(owner, unit=unit)
    response, _ = act(as_owner, "tag", [], all="yes", query="unit=1", tag="ones")
    assert "Tag 2 runs" in response.content.decode()


@pytest.mark.parametrize(
    ("action", "more", "words"),
    [
        ("dance", {}, "no action"),
        ("tag", {}, "Write the tag first"),
        ("tag", {"tag": "x" * 41}, "at most 40 characters"),
        ("compare", {}, "2 to 6 runs"),
    ],
)
def test_an_action_that_makes_no_sense_does_nothing(as_owner, owner, action, more, words):
    response, said = act(as_owner, action, [make_run(owner)], sure=True, **more)
    assert response.status_code == 302
    assert words in said[0]
    assert not Tag.objects.exists()


def test_without_a_ticked_run_nothing_is_done(as_owner, owner):
    assert "tick some" in act(as_owner, "stop", [], sure=True)[1][0]
    assert "tick some" in act(as_owner, "stop", [], sure=True, run=["x", "9" * 30])[1][0]


def test_a_viewer_compares_and_changes_nothing(client, owner, teammate):
    client.force_login(teammate)
    run = make_run(owner)
    assert act(client, "stop", [run], sure=True)[0].status_code == 403
    run.refresh_from_db()
    assert run.status == "queued"


def test_a_view_is_kept_shared_renamed_and_let_go(as_owner, owner, client, teammate):
    as_owner.post("/runs/views/", {"name": "Failures", "query": "status=failed&page=7"})
    view = SavedView.objects.get()
    assert view.get_absolute_url() == "/runs/?status=failed"
    make_run(owner)
    as_owner.post(f"/runs/views/{view.pk}/", {"name": "Broken", "shared": "on"})
    client.force_login(teammate)
    assert "Broken" in client.get("/runs/").content.decode()
    assert client.post(f"/runs/views/{view.pk}/delete/").status_code == 404
    client.force_login(owner)
    client.post(f"/runs/views/{view.pk}/delete/")
    assert not SavedView.objects.exists()


def test_every_list_keeps_views_of_its_own(as_owner, owner):
    for name in ("runs", "sweeps"):
        as_owner.post("/runs/views/", {"list": name, "name": "Mine", "query": "status=paused&q="})
    assert [view.get_absolute_url() for view in SavedView.objects.order_by("list")] == [
        "/runs/?status=paused",
        "/sweeps/?status=paused",
    ]
    make_run(owner)
    assert as_owner.get("/runs/").content.decode().count(">Mine</a>") == 1


def test_layers_are_chosen_from_those_of_the_chosen_model(as_owner, owner):
    make_run(owner, model="toybox", layer="layer4")
    make_run(owner, model="other", layer="block9")
    headers = {"HX-Request": "true", "HX-Trigger": "filters"}
    text = as_owner.get("/runs/?model=other", headers=headers).content.decode()
    assert re.search(r'<option value="block9"\s*>block9</option>', text)
    assert "layer4</option>" not in text
    assert "hx-swap-oob" not in as_owner.get("/runs/?model=other", headers={"HX-Request": "true"}).content.decode()


def test_a_view_of_somebody_elses_is_not_seen_unless_it_is_shared(as_owner, owner, teammate):
    make_run(owner)
    SavedView.objects.create(owner=teammate, name="My private view")
    assert "My private view" not in as_owner.get("/runs/").content.decode()


@pytest.mark.parametrize("data", [{"name": ""}, {"name": "x" * 61}, {"name": "long", "query": "q=" + "x" * 5000}])
def test_a_view_that_cannot_be_kept_is_refused_with_words(as_owner, data):
    response = as_owner.post("/runs/views/", data)
    assert next(str(message) for message in get_messages(response.wsgi_request)).startswith("Not saved.")
    assert not SavedView.objects.exists()


def test_a_page_past_the_end_is_said(as_owner, owner):
    make_run(owner)
    assert "There is no page “99”" in as_owner.get("/runs/?page=99").content.decode()
    assert "There is no page" not in as_owner.get("/runs/?page=1").content.decode()


def test_senseless_filters_are_said_beside_the_list(as_owner, owner):
    run = make_run(owner)
    text = as_owner.get("/runs/?unit=abc&status=<b>").content.decode()
    assert run.question in text
    assert "is no unit" in text
    assert "There is no status “&lt;b&gt;”" in text
