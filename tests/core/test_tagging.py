"""Tags on experiments and images: put and taken off, found in the gallery, gone with their last use."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.core import tagging, transcript
from experiments.core.actors import Actor
from experiments.exchange import export_query
from experiments.models import AuditEntry, Experiment, ExportSubject, Observation, Run, Tag
from tests.support.builders import experiment, make_run, started
from tests.support.pictures import logged, seen

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(owner: User) -> Run:
    """Two experiments, with one image each."""
    run = make_run(owner)
    transcript.append(run.pk, "started", started())
    for number, colour in ((1, "red"), (2, "blue")):
        transcript.append(run.pk, "experiment", experiment(number))
        transcript.append(run.pk, "result", logged(seen(f"a {colour} ball", 9.0, colour), number=number))
    return run


def send(client: Client, run: Run, tag: str, **fields: str) -> None:
    about = {"on": "experiment", "experiment": "1", "in": "3", "tag": tag}
    response = client.post(f"/runs/{run.pk}/tags/", about | fields, headers={"HX-Request": "true"})
    assert response.status_code in {200, 204}
    assert (response.status_code == 204) == ("toast" in response.headers.get("HX-Trigger", ""))


def titles(client: Client, tag: str, view: str = "") -> list[bool]:
    """Whether the red and the blue ball are among what the Experiments page shows."""
    page = client.get("/experiments/", {"tag": tag, "view": view}).content.decode().partition('id="found"')[2]
    return [f"a {colour} ball" in page for colour in ("red", "blue")]


def test_an_experiment_and_an_image_are_tagged_and_found(as_owner: Client, run: Run) -> None:
    send(as_owner, run, " odd   one ")
    blue = run.observations.get(title="a blue ball")
    send(as_owner, run, "odd one", on="image", experiment="2", image=blue.image_id)
    send(as_owner, run, "sky", on="image", experiment="2", image=blue.image_id)
    assert titles(as_owner, "odd one") == [True, True]
    assert titles(as_owner, "sky") == [False, True]
    assert titles(as_owner, "sky", "list") == [False, True]
    assert titles(as_owner, "nothing") == [False, False]
    assert '<option value="sky" selected>sky</option>' in as_owner.get("/experiments/?tag=sky").content.decode()
    spot = as_owner.get(f"/runs/{run.pk}/comments/at/3/").content.decode()
    assert 'href="/experiments/?tag=odd%20one"' in spot


def test_the_tag_of_a_run_is_that_of_its_images(as_owner: Client, run: Run) -> None:
    tagging.tag(Actor(None), run, "seen")
    assert titles(as_owner, "seen") == titles(as_owner, "seen", "list") == [True, True]


def test_what_is_exported_is_what_is_shown(run: Run) -> None:
    tagging.tag(Actor(None), run.observations.get(title="a blue ball"), "sky")
    assert [row.title for row in export_query.select_rows(ExportSubject.OBSERVATIONS, "tag=sky")] == ["a blue ball"]
    assert [row.number for row in export_query.select_rows(ExportSubject.EXPERIMENTS, "tag=sky")] == [2]


def test_a_tag_goes_with_its_last_use(as_owner: Client, run: Run) -> None:
    send(as_owner, run, "odd")
    tagging.tag(Actor(None), run, "odd")
    send(as_owner, run, "odd", verb="remove")
    assert Tag.objects.get().name == "odd"
    assert tagging.untag(Actor(None), run, "odd")
    assert not Tag.objects.exists()
    assert not tagging.untag(Actor(None), run, "odd")
    verbs = AuditEntry.objects.filter(verb__contains="tagged").values_list("verb", flat=True)
    assert sorted(verbs) == ["experiment.tagged", "experiment.untagged", "run.tagged", "run.untagged"]


@pytest.mark.parametrize(
    "fields", [{"tag": " "}, {"tag": "x" * 41}, {"on": "run"}, {"on": "event"}, {"experiment": "9"}]
)
def test_what_cannot_be_tagged_is_told(as_owner: Client, run: Run, fields: dict[str, str]) -> None:
    send(as_owner, run, **{"tag": "odd", "seq": "3", **fields})
    assert not Tag.objects.exists()


def test_both_nouns_have_tags(run: Run) -> None:
    for row in (Experiment.objects.earliest("pk"), Observation.objects.earliest("pk")):
        assert tagging.tag(Actor(None), row, "both") == "both"
    assert Tag.objects.count() == 1
