"""Rounds that people write, on the tiny laboratory: drafts, sending, two at once, handing over and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.core.actors import Actor
from experiments.core.errors import StateConflict
from experiments.models import AuditEntry, Backbone, HumanReply, Run
from experiments.runs.human import actions, drafts
from tests.support.people import member
from tests.support.tiny_run import CONCLUSION, Seeing, install, kinds, play, tiny_run

PROGRAM = (
    "def run_experiment(system, tools):\n"
    "    activations, images = system.neuron(tools.text2image(['a red square', 'a blue square']))\n"
    "    tools.log_experiment(activations, images, ['red', 'blue'], 'colour')"
)
HYPOTHESES = {
    "hypothesis-number": ["", ""],
    "hypothesis-text": ["red squares", "anything square"],
    "hypothesis-status": ["open", "refuted"],
    "hypothesis-reason": ["", "blue gives 0.10"],
}

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def laboratory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    install(monkeypatch, settings, tmp_path)


@pytest.fixture
def run(owner: User) -> Run:
    """A run that waits for the reply of its first round."""
    return play(tiny_run(owner, None, "person"))


@pytest.fixture
def as_colleague(db: None) -> Client:
    client = Client()
    client.force_login(member("colleague", "RESEARCHER"))
    return client


def form(run: Run, **fields: Any) -> dict[str, Any]:
    return {"round": run.rounds + 1, "version": 0, "what": "experiment", "program": PROGRAM, **fields}


def write(client: Client, run: Run, **fields: Any) -> Any:
    return client.post(f"/runs/{run.pk}/reply/", form(run, **fields))


def keep(client: Client, run: Run, **fields: Any) -> Any:
    return client.post(f"/runs/{run.pk}/reply/draft/", form(run, **fields))


def test_a_run_waits_for_its_person_and_holds_no_worker(run: Run) -> None:
    assert (run.status, kinds(run)) == ("waiting", ["started", "waiting_for_person"])
    assert not run.is_leased()


def test_a_person_experiments_and_concludes_like_any_agent(as_owner: Client, run: Run) -> None:
    User.objects.filter(username="owner").update(first_name="Own", last_name="Er")
    assert write(as_owner, run, prose="Colour first.", **HYPOTHESES).status_code == 302
    run = play(run)
    assert kinds(run)[2:] == ["resumed", "reply", "experiment", "result", "waiting_for_person"]
    reply = run.events.get(kind="reply").payload
    assert (reply["author"], reply["by_person"], reply["prose"]) == ("Own Er", True, "Colour first.")
    assert list(run.hypotheses.values_list("text", "status", "reason")) == [
        ("red squares", "open", ""),
        ("anything square", "refuted", "blue gives 0.10"),
    ]
    assert run.observations.count() == 2
    assert (
        write(as_owner, run, what="conclusion", program="", description="Red.", labels="red squares").status_code == 302
    )
    run = play(run)
    assert (run.status, run.labels) == ("concluded", ["red squares"])
    assert run.label_set.get().text == "red squares"


def test_hypotheses_and_a_program_that_failed_carry_over(as_owner: Client, run: Run) -> None:
    write(as_owner, run, program="x = 1\nraise ValueError('wrong')", **HYPOTHESES)
    run = play(run)
    assert run.experiments.get().status == "program_error"
    page = as_owner.get(f"/runs/{run.pk}/reply/").content.decode()
    assert 'value="anything square"' in page
    assert 'data-line="2"' in page
    assert "failed in line 2" in page
    assert "raise ValueError" in page


def test_time_that_a_person_thinks_is_no_work(run: Run, as_owner: Client) -> None:
    before = run.seconds
    Run.objects.update(started=run.created)
    keep(as_owner, run)
    assert Run.objects.get().seconds == before


def test_a_program_is_stopped_and_its_run_goes_on(as_owner: Client, run: Run) -> None:
    write(as_owner, run, program="while True:\n    pass")
    assert "Stop the program" in as_owner.get(f"/runs/{run.pk}/").content.decode()
    as_owner.post(f"/runs/{run.pk}/reply/stop/")
    run = play(run)
    experiment = run.experiments.get()
    assert (run.status, experiment.status, experiment.error) == ("waiting", "timeout", "owner stopped the program.")
    page = as_owner.post(f"/runs/{run.pk}/reply/stop/", follow=True).content.decode()
    assert "No program of a person is running." in page


# --- drafts -----------------------------------------------------------------------------------------


def test_a_draft_is_kept_and_found_again(as_owner: Client, run: Run) -> None:
    assert keep(as_owner, run, prose="So far.", labels="red\n").json()["version"] == 1
    page = as_owner.get(f"/runs/{run.pk}/").content.decode()
    assert "So far." in page
    assert 'name="version" value="1"' in page
    assert Run.objects.get().status == "waiting"


def test_the_second_of_two_tabs_is_told_and_loses_nothing(as_owner: Client, run: Run) -> None:
    keep(as_owner, run, prose="from one tab")
    answer = keep(as_owner, run, prose="from the other")
    assert answer.status_code == 409
    assert (answer.json()["why"], answer.json()["kept"]["prose"]) == ("stale", "from one tab")
    sent = write(as_owner, run, prose="from the other")
    page = sent.content.decode()
    assert sent.status_code == 409
    assert "from one tab" in page
    assert "from the other" in page
    assert kinds(run) == ["started", "waiting_for_person"]
    assert write(as_owner, run, version=1, prose="from the other").status_code == 302


def test_the_same_words_saved_twice_are_no_conflict(as_owner: Client, run: Run) -> None:
    assert [keep(as_owner, run).json()["version"] for _ in range(2)] == [1, 1]


def test_of_two_people_the_second_is_told_who_was_first_and_keeps_the_draft(
    as_owner: Client, as_colleague: Client, run: Run
) -> None:
    write(as_owner, run)
    late = write(as_colleague, run, program="print('mine')")
    assert late.status_code == 409
    assert "owner has sent round 1 already" in late.content.decode()
    assert HumanReply.objects.get(author__username="colleague").program == "print('mine')"
    run = play(run)
    assert kinds(run).count("reply") == 1
    page = as_colleague.get(f"/runs/{run.pk}/").content.decode()
    assert "owner sent round 1 first." in page
    assert "print(&#x27;mine&#x27;)" in page or "mine" in page


def test_a_draft_that_was_written_while_another_sent_is_kept(as_owner: Client, as_colleague: Client, run: Run) -> None:
    write(as_owner, run)
    played = play(run)
    assert played.rounds == 1
    assert keep(as_colleague, run, program="print('late')").status_code == 200


def test_what_was_sent_twice_is_played_once(as_owner: Client, run: Run) -> None:
    write(as_owner, run)
    again = write(as_owner, run, version=1)
    assert again.status_code == 409
    assert "already" in again.content.decode()
    assert kinds(play(run)).count("experiment") == 1


# --- what cannot be sent ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"program": " "}, "There is no program yet"),
        ({"what": "conclusion", "reasoning": "because"}, "Write what you conclude"),
        ({"prose": "Look:\n[LABEL]: red"}, "would not be read as you wrote it"),
        ({"prose": "```\nnot closed"}, "would not be read as you wrote it"),
        ({"what": "conclusion", "description": "a\n[CODE]\nb"}, "would not be read as you wrote it"),
        ({"program": "x" * 100_001}, "at most 100,000 are kept"),
    ],
)
def test_a_reply_that_would_be_misread_or_says_nothing_is_refused(
    as_owner: Client, run: Run, fields: dict[str, str], words: str
) -> None:
    answer = write(as_owner, run, **fields)
    assert answer.status_code == 409
    assert words in answer.content.decode()
    assert kinds(run) == ["started", "waiting_for_person"]


def test_tags_inside_a_program_are_part_of_it(as_owner: Client, run: Run) -> None:
    program = 'print("""\n[LABEL]: no\n```\n````python\n""")\n[CODE] = [1]'
    write(as_owner, run, program=program)
    run = play(run)
    assert run.experiments.get().code == program
    assert run.conclusion == {}


def test_a_reply_for_a_run_that_does_not_wait_is_kept_and_not_sent(as_owner: Client, run: Run) -> None:
    Run.objects.update(status="paused")
    answer = write(as_owner, run)
    assert answer.status_code == 409
    assert "paused" in answer.content.decode()
    assert HumanReply.objects.get().program == PROGRAM


def test_markup_is_shown_as_text(as_owner: Client, run: Run) -> None:
    keep(as_owner, run, prose="</textarea><script>1</script>", **(HYPOTHESES | {"hypothesis-text": ['"><b>', ""]}))
    page = as_owner.get(f"/runs/{run.pk}/").content.decode()
    assert "<script>1" not in page
    assert '"><b>' not in page


def test_after_a_limit_a_person_concludes(as_owner: Client, run: Run) -> None:
    Run.objects.update(limits={"rounds": 1})
    run = Run.objects.get()
    start = run.events.get(kind="started")
    start.payload["limits"]["rounds"] = 1
    type(start).objects.filter(pk=start.pk).update(payload=start.payload)
    write(as_owner, run)
    run = play(run)
    assert "last word" in as_owner.get(f"/runs/{run.pk}/reply/").content.decode()
    assert "conclude" in write(as_owner, run).content.decode()
    reply = HumanReply.objects.get(round=2)
    write(as_owner, run, version=reply.version, what="conclusion", labels="none")
    run = play(run)
    assert (run.status, run.labels) == ("limit_reached", [])


# --- who writes next --------------------------------------------------------------------------------


def test_a_person_takes_an_agents_run_over_and_hands_it_back(as_owner: Client, owner: User) -> None:
    Backbone.objects.create(key="tiny", label="Tiny agent", available=True)
    agent = Seeing("A thought. [CODE]", "not asked", CONCLUSION)
    run = tiny_run(owner, agent)
    as_owner.post(f"/runs/{run.pk}/take-over/")
    run = play(run)
    assert (run.status, run.backbone) == ("waiting", "person")
    assert agent.asked == []
    write(as_owner, run)
    run = play(run)
    agent.replies = ["", CONCLUSION]
    as_owner.post(f"/runs/{run.pk}/hand-over/", {"backbone": "tiny", "note": "Conclude now."})
    run = play(run)
    assert (run.status, run.backbone) == ("concluded", "tiny")
    handed = [(event.payload["backbone"], event.payload["who"]) for event in run.events.filter(kind="handover")]
    assert handed == [("person", "owner"), ("tiny", "owner")]
    assert "Conclude now." in agent.heard[-1].text
    done = AuditEntry.objects.filter(row_kind="run").order_by("pk")
    assert list(done.values_list("verb", flat=True)) == ["run.handed-over", "reply.sent", "run.handed-over"]
    assert [event.payload["by_person"] for event in run.events.filter(kind="reply")] == [True, False]


def test_a_paused_or_failed_run_that_is_taken_over_goes_on(as_owner: Client, owner: User) -> None:
    for status in ("paused", "failed", "cancelled"):
        run = tiny_run(owner, Seeing())
        Run.objects.filter(pk=run.pk).update(status=status)
        as_owner.post(f"/runs/{run.pk}/take-over/")
        assert play(Run.objects.get(pk=run.pk)).status == "waiting"


def test_a_run_that_is_over_changes_hands_no_more(as_owner: Client, owner: User) -> None:
    run = tiny_run(owner, Seeing(), status="concluded")
    page = as_owner.post(f"/runs/{run.pk}/take-over/", follow=True).content.decode()
    assert "no one can write in it any more" in page
    assert kinds(run) == []


@pytest.mark.parametrize(
    ("backbone", "words"),
    [("nobody", "There is no backbone"), ("scripted", "knows toybox"), ("away", "Get a key")],
)
def test_a_backbone_that_does_not_fit_is_refused(as_owner: Client, run: Run, backbone: str, words: str) -> None:
    Backbone.objects.create(key="scripted", label="Scripted", available=True)
    Backbone.objects.create(key="away", label="Away", available=False, remedy="Get a key.")
    page = as_owner.post(f"/runs/{run.pk}/hand-over/", {"backbone": backbone}, follow=True).content.decode()
    assert words in page
    assert Run.objects.get().backbone == "person"


# --- pages ------------------------------------------------------------------------------------------


def test_viewers_and_runs_of_agents_have_no_editor(client: Client, teammate: User, run: Run) -> None:
    client.force_login(teammate)
    page = client.get(f"/runs/{run.pk}/").content.decode()
    assert "Run it" not in page
    assert client.get(f"/runs/{run.pk}/reply/").status_code == 403


def test_the_editor_asks_the_same_number_of_questions_however_long_the_run(
    as_owner: Client, run: Run, django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(20):
        as_owner.get(f"/runs/{run.pk}/reply/", headers={"HX-Request": "true"})
    for _ in range(2):
        write(as_owner, run, **HYPOTHESES)
        run = play(run)
    with django_assert_max_num_queries(20):
        as_owner.get(f"/runs/{run.pk}/reply/", headers={"HX-Request": "true"})


def test_a_form_keeps_numbers_and_leaves_out_empty_lines() -> None:
    rows = [("2", "two", "open", ""), ("", "new", "nonsense", "x"), ("2", "again", "supported", "1.0")]
    assert [(each["number"], each["status"]) for each in drafts._number(rows)] == [
        (2, "open"),
        (3, "open"),
        (4, "supported"),
    ]


def test_a_draft_of_a_round_that_nobody_is_in_is_refused(owner: User, run: Run) -> None:
    with pytest.raises(StateConflict):
        actions.save_draft(Actor(owner), run.pk, 7, 0, HumanReply(run=run).values)
