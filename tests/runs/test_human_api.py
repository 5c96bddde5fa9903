"""Scripts that write rounds as people do: drafts under an ETag, sending, handing over."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from experiments.core import transcript
from experiments.models import AuditEntry, HumanReply, Run, TokenScope
from tests.support.api_world import Script
from tests.support.builders import make_run, started
from tests.support.people import member
from workers.record.decoding import decode


@pytest.fixture
def run(owner: User) -> Run:
    """A run that waits for the reply of its first round."""
    run = make_run(owner, backbone="person")
    transcript.append(run.pk, "started", started())
    transcript.append(run.pk, "waiting_for_person", decode("waiting_for_person", {"round": 1}))
    return Run.objects.get(pk=run.pk)


@pytest.fixture
def script(owner: User) -> Script:
    return Script(owner, TokenScope.RUN)


def put(script: Script, run: Run, body: dict[str, Any], tag: str = "") -> Any:
    headers = {"If_Match": tag} if tag else {}
    return script.send("PUT", f"/runs/{run.pk}/reply", body, **headers)


def tag_of(script: Script, run: Run) -> str:
    return str(script.send("GET", f"/runs/{run.pk}/reply")["ETag"])


def send(script: Script, run: Run, tag: str) -> Any:
    return script.send("POST", f"/runs/{run.pk}/reply/send", If_Match=tag)


def test_a_script_reads_saves_and_sends_a_round(script: Script, run: Run) -> None:
    fresh = script.send("GET", f"/runs/{run.pk}/reply").json()
    assert (fresh["round"], fresh["waiting_for_person"], fresh["version"]) == (1, True, 0)
    body = {"program": "print(1)", "hypotheses": [{"number": 2, "text": "red", "status": "supported", "reason": "3.1"}]}
    saved = put(script, run, body, tag_of(script, run)).json()
    assert (saved["version"], saved["program"], saved["hypotheses"]) == (1, "print(1)", body["hypotheses"])
    sent = send(script, run, tag_of(script, run))
    assert sent.status_code == 200
    assert sent.json()["waiting_for_person"] is False
    assert Run.objects.get().status == "queued"
    assert HumanReply.objects.get().sent is not None
    assert AuditEntry.objects.filter(verb="reply.sent", row_pk=run.pk).count() == 1


def test_an_edit_names_the_draft_that_it_was_written_on(script: Script, run: Run) -> None:
    before = tag_of(script, run)
    assert put(script, run, {"prose": "a"}).status_code == 428
    assert put(script, run, {"prose": "a"}, before).status_code == 200
    assert put(script, run, {"prose": "b"}, before).status_code == 412
    assert HumanReply.objects.get().prose == "a"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"what": "conclusion"}, "description"),
        ({"prose": "[CODE]:\nx", "program": "print(1)"}, "prose"),
        ({}, "program"),
    ],
)
def test_what_would_be_misread_is_named_and_stays_a_draft(
    script: Script, run: Run, body: dict[str, str], field: str
) -> None:
    put(script, run, body, tag_of(script, run))
    answer = send(script, run, tag_of(script, run))
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == [field]
    assert Run.objects.get().status == "waiting"


def test_of_two_scripts_the_second_is_told_and_keeps_its_draft(script: Script, run: Run) -> None:
    other = Script(member("colleague", "RESEARCHER"), TokenScope.RUN)
    for each in (script, other):
        put(each, run, {"program": "print(1)"}, tag_of(each, run))
    assert send(script, run, tag_of(script, run)).status_code == 200
    late = send(other, run, tag_of(other, run))
    assert late.status_code == 409
    assert "owner has sent round 1 already" in late.json()["detail"]
    assert HumanReply.objects.get(author__username="colleague").sent is None


def test_hypotheses_need_numbers_of_their_own(script: Script, run: Run) -> None:
    twice = [{"number": 1, "text": "a"}, {"number": 1, "text": "b"}]
    assert put(script, run, {"hypotheses": twice}, tag_of(script, run)).status_code == 422


def test_a_run_is_handed_over_with_a_note(script: Script, run: Run) -> None:
    refused = script.send("POST", f"/runs/{run.pk}/hand-over", {"backbone": "person"})
    assert refused.status_code == 409
    Run.objects.update(backbone="scripted", status="running")
    taken = script.send("POST", f"/runs/{run.pk}/hand-over", {"backbone": "person", "note": "Mine."})
    assert (taken.status_code, taken.json()["backbone"]) == (200, "person")
    assert list(run.events.order_by("seq").values_list("kind", flat=True))[-2:] == ["handover", "note"]


def test_nothing_runs_that_could_be_stopped(script: Script, run: Run) -> None:
    assert script.send("POST", f"/runs/{run.pk}/reply/stop").status_code == 409
