"""Steering from the run's page and by the API: what is offered when, what is refused and how that is said."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from experiments.core import transcript
from experiments.core.actors import Actor
from experiments.models import Run, TokenScope
from experiments.runs.steering import actions
from tests.support.api_world import Script
from tests.support.builders import make_run, replied, started
from workers.record.decoding import decode
from workers.record.events import Blocked, Ended, Reminder
from workers.record.statuses import Status

pytestmark = pytest.mark.django_db
HX = {"HX-Request": "true"}


@pytest.fixture
def run(owner: User) -> Run:
    return make_run(owner)


def held(run: Run) -> None:
    lapses = timezone.now() + timedelta(seconds=30)
    Run.objects.filter(pk=run.pk).update(status=Status.RUNNING, lease_worker="w", lease_expires=lapses)


def shown(client: Client, run: Run) -> str:
    return client.get(f"/runs/{run.pk}/").content.decode()


def kinds(run: Run) -> list[str]:
    return list(run.events.order_by("seq").values_list("kind", flat=True))


# --- what is offered ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "payload", "may"),
    [
        ("started", started(), "pause note limits stop"),
        ("paused", None, "resume note limits stop"),
        ("blocked", Blocked(1, "No credit."), "try-again note limits stop"),
        ("waiting_for_person", None, "note limits stop"),
        ("failed", Ended("Why."), "retry"),
        ("cancelled", Ended("Why."), "retry"),
        ("concluded", Ended(), ""),
        ("limit_reached", Ended("Why."), ""),
    ],
)
def test_the_page_offers_what_can_be_done(as_owner: Client, run: Run, kind: str, payload: Any, may: str) -> None:
    transcript.append(run.pk, kind, payload or decode(kind, {"round": 1, "who": "owner"}))
    assert f'data-steers data-may="{may}"' in shown(as_owner, run)


def test_a_viewer_is_offered_nothing(client: Client, teammate: User, run: Run) -> None:
    client.force_login(teammate)
    page = shown(client, run)
    for words in ("data-may", "/pause/", "/note/", "/limits/", "Duplicate run"):
        assert words not in page


def test_the_page_says_who_paused_the_run_and_that_it_pauses(as_owner: Client, run: Run, owner: User) -> None:
    owner.first_name, owner.last_name = "Own", "Er"
    owner.save()
    held(run)
    assert as_owner.post(f"/runs/{run.pk}/pause/", headers=HX).status_code == 204
    page = shown(as_owner, run)
    assert "Pausing…" in page
    assert "Own Er asked for it" in page
    assert "keep-going" in page
    Run.objects.filter(pk=run.pk).update(status=Status.QUEUED, lease_expires=None, pause_requested="")
    assert as_owner.post(f"/runs/{run.pk}/pause/")["Location"] == run.get_absolute_url()
    assert "Paused by Own Er" in shown(as_owner, run)


def test_lists_say_that_a_run_pauses(as_owner: Client, run: Run) -> None:
    held(run)
    as_owner.post(f"/runs/{run.pk}/pause/")
    assert "Pausing…" in as_owner.get("/runs/").content.decode()


def test_what_cannot_be_done_is_said(as_owner: Client, run: Run) -> None:
    transcript.append(run.pk, "concluded", Ended())
    response = as_owner.post(f"/runs/{run.pk}/pause/", headers=HX)
    assert response.status_code == 409
    assert "There is nothing to pause." in json.loads(response["HX-Trigger"])["toast"]["words"]
    page = as_owner.post(f"/runs/{run.pk}/try-again/", follow=True).content.decode()
    assert "fork it to go on from one of its rounds" in page


# --- notes ------------------------------------------------------------------------------------------


def test_a_note_stands_in_the_transcript_with_its_author_and_as_text(as_owner: Client, run: Run) -> None:
    assert as_owner.post(f"/runs/{run.pk}/note/", {"text": "<i>Snow</i>\nand ice"}, headers=HX).status_code == 204
    page = shown(as_owner, run)
    assert "<blockquote><p>&lt;i&gt;Snow&lt;/i&gt;<br>and ice</p></blockquote>" in page
    assert "Message to agent</span> by owner" in page


@pytest.mark.parametrize("headers", [HX, {}], ids=["with scripts", "without"])
def test_a_note_that_nobody_would_hear_stays_in_its_box(as_owner: Client, run: Run, headers: dict[str, str]) -> None:
    transcript.append(run.pk, "reply", replied())
    transcript.append(run.pk, "concluded", Ended())
    response = as_owner.post(f"/runs/{run.pk}/note/", {"text": "And <snow>?"}, headers=headers)
    page = response.content.decode()
    assert response.status_code == 409
    assert "The agent would not read this." in page
    assert f'href="/runs/{run.pk}/fork/"' in page
    assert ("And &lt;snow&gt;?</textarea>" in page) == (not headers)
    assert kinds(run) == ["reply", "concluded"]


# --- limits -------------------------------------------------------------------------------------------


def test_limits_are_changed_on_a_form_that_says_what_is_used(as_owner: Client, run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(rounds=12)
    page = as_owner.get(f"/runs/{run.pk}/limits/").content.decode()
    assert "12 used" in page
    assert 'name="rounds" value="25"' in page
    form = {"rounds": "8", "tokens": "", "cost": "5", "seconds": "3600", "why": "It strays."}
    told = as_owner.post(f"/runs/{run.pk}/limits/", form, follow=True).content.decode()
    assert "the agent is asked for its final answer next" in told
    assert "<s>25</s> <b>8</b>" in told
    assert "<s>1,000,000</s> <b>no limit</b>" in told
    assert "Why: It strays." in told
    run.refresh_from_db()
    assert run.limits == {"rounds": 8, "tokens": None, "cost": 5.0, "seconds": 3600}


def test_limits_that_make_no_sense_come_back_with_what_was_typed(as_owner: Client, run: Run) -> None:
    form = {"rounds": "0", "tokens": "many", "cost": "-1", "seconds": "nan", "why": "No reason."}
    response = as_owner.post(f"/runs/{run.pk}/limits/", form, headers=HX)
    page = response.content.decode()
    assert response.status_code == 422
    assert page.count("A limit must be above 0") == 2
    assert "No reason." in page
    assert kinds(run) == []


def test_limits_that_somebody_changed_meanwhile_are_shown_before_they_are_changed(
    as_owner: Client, run: Run, owner: User
) -> None:
    seen = json.dumps(run.limits)
    actions.change_limits(Actor(owner), run.pk, run.limits | {"rounds": 30})
    form = {name: str(value) for name, value in run.limits.items()} | {"tokens": "5", "seen": seen}
    response = as_owner.post(f"/runs/{run.pk}/limits/", form, headers=HX)
    assert response.status_code == 409
    assert "They are now: rounds 30" in response.content.decode()
    again = form | {"seen": json.dumps(Run.objects.get(pk=run.pk).limits)}
    assert as_owner.post(f"/runs/{run.pk}/limits/", again, headers=HX).status_code == 204
    assert as_owner.post(f"/runs/{run.pk}/limits/", again | {"seen": "[1"}, headers=HX).status_code == 422


# --- a duplicate with changes ------------------------------------------------------------------------


def test_a_run_is_asked_again_with_changes_that_are_shown(as_owner: Client, run: Run, owner: User) -> None:
    from experiments.models import Layer, VisionModelRow

    Layer.objects.create(
        model=VisionModelRow.objects.create(name="toybox", available=True),
        position=0,
        name="layer4",
        kind="conv",
        units=96,
    )
    page = as_owner.get(f"/query/?from={run.pk}").content.decode()
    assert f"Duplicate run {run.pk}" in page
    assert "Nothing is changed yet." in page
    form = {"question": run.question, "task": "describe", "model": "toybox", "layer": "layer4", "unit": "7"}
    form |= {"toolset": "toybox", "backbone": "scripted", "seed": "3", "parent": str(run.pk)}
    form |= {"rounds": "25", "tokens": "1000000", "cost": "5", "seconds": "3600"}
    part = as_owner.get("/query/command/", form, headers=HX).content.decode()
    assert "<li>Seed <s>0</s> <b>3</b></li>" in part
    assert part.count("<li>") == 1
    as_owner.post("/query/", form)
    made = Run.objects.latest("pk")
    assert (made.parent_id, made.fork_round, made.seed) == (run.pk, None, 3)
    assert "Duplicate of" in shown(as_owner, made)
    assert "Duplicated in" in shown(as_owner, run)


@pytest.mark.parametrize("wrong", ["x", "99999", "-1", "1" * 30])
def test_asking_again_what_is_not_there_is_a_new_query(as_owner: Client, run: Run, wrong: str) -> None:
    assert as_owner.get(f"/query/?from={wrong}").status_code == 200


# --- many at once -------------------------------------------------------------------------------------


def test_many_runs_are_paused_and_had_go_on(as_owner: Client, owner: User) -> None:
    runs = [make_run(owner) for _ in range(3)]
    transcript.append(runs[2].pk, "concluded", Ended())
    for action, status in (("pause", "paused"), ("resume", "queued")):
        form = {"action": action, "run": [run.pk for run in runs], "sure": "yes"}
        page = as_owner.post("/runs/act/", form, follow=True).content.decode()
        assert f"Not run {runs[2].pk}" in page
        assert set(Run.objects.values_list("status", flat=True)) == {status, "concluded"}


# --- by the API ---------------------------------------------------------------------------------------


@pytest.fixture
def script(owner: User) -> Script:
    return Script(owner, TokenScope.RUN)


def test_scripts_pause_note_and_resume(script: Script, run: Run) -> None:
    assert script.post(f"/runs/{run.pk}/pause").json()["status"] == "paused"
    assert script.post(f"/runs/{run.pk}/pause").json()["status"] == "paused"
    said = script.post(f"/runs/{run.pk}/notes", {"text": "And snow?"})
    assert (said.status_code, said.json()["payload"]["text"]) == (201, "And snow?")
    assert script.post(f"/runs/{run.pk}/resume").json()["status"] == "queued"
    held(run)
    assert script.post(f"/runs/{run.pk}/pause").json()["pausing"] is True
    assert kinds(run) == ["paused", "note", "resumed"]


def test_scripts_are_told_what_cannot_be_done(script: Script, run: Run) -> None:
    transcript.append(run.pk, "reminder", Reminder(1, "final_answer", "Conclude."))
    refused = script.post(f"/runs/{run.pk}/notes", {"text": "And snow?"})
    assert (refused.status_code, "final answer" in refused.json()["detail"]) == (409, True)
    transcript.append(run.pk, "concluded", Ended())
    for name, body in (("pause", None), ("resume", None), ("forks", {"round": 1})):
        assert script.post(f"/runs/{run.pk}/{name}", body).status_code == 409


def test_scripts_change_limits_that_they_have_read(script: Script, run: Run) -> None:
    address = f"/runs/{run.pk}/limits"
    assert script.send("PATCH", address, {"rounds": 30}).status_code == 428
    tag = script.get(address)["ETag"]
    changed = script.send("PATCH", address, {"rounds": 30, "cost": None, "why": "Close."}, If_Match=tag)
    assert changed.json() == {"rounds": 30, "tokens": 1_000_000, "cost": None, "seconds": 3600}
    assert script.send("PATCH", address, {"rounds": 40}, If_Match=tag).status_code == 412
    wrong = script.send("PATCH", address, {"rounds": 0}, If_Match="*")
    assert (wrong.status_code, wrong.json()["errors"][0]["field"]) == (422, "rounds")
    assert kinds(run) == ["limits"]
