"""Forks: what is copied and what is not, that nothing is counted twice, from wherever they begin."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.core import notify, transcript
from experiments.core.actors import Actor
from experiments.core.errors import ActionRefused
from experiments.core.system_names import SystemNameMasker
from experiments.display import events
from experiments.models import AuditEntry, Experiment, Observation, Run
from experiments.runs.actions import ask
from experiments.runs.comparing import comparison
from experiments.runs.forks import lineage
from experiments.runs.forks.form import ForkForm
from experiments.runs.steering import actions
from tests.support.builders import experiment, make_run, replied, started
from tests.support.steering import Meanwhile
from tests.support.tiny_run import CONCLUSION, LOOK, PROGRAM, Seeing, here, install, kinds, play, tiny_run
from workers.jobs import forking
from workers.jobs import laboratory as place
from workers.record.events import Ended
from workers.record.limits import Usage
from workers.record.replies import Conclusion
from workers.record.statuses import Status

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_url")]
SEEN = ("A red square.", "Nothing.") * 6
KEEPS = PROGRAM.format("kept = 41")
USES = PROGRAM.format("print('the kept one', kept + 1)")


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> Iterator[None]:
    install(monkeypatch, settings, tmp_path)
    yield
    place.build_laboratory.cache_clear()
    notify.muted.clear()


def told(owner: User, *replies: str) -> Run:
    """A run that was played to its end."""
    return play(tiny_run(owner, Seeing(*replies, sentences=SEEN, usage=Usage(100, 20, 0.5))))


def forked(parent: Run, number: int, owner: User, **given: Any) -> Run:
    """A queued fork; raises ActionRefused."""
    return ask(Actor(owner), ForkForm(parent, lineage.find_fork_point(parent, number), given), enqueue=False)


def played(fork: Run, *replies: Any) -> tuple[Run, Seeing]:
    """The fork at its end, and what its agent was asked."""
    here["backbone"] = backbone = Seeing(*replies, sentences=SEEN, usage=Usage(100, 20, 0.5))
    return play(fork), backbone


@pytest.fixture
def ready(db: None) -> None:
    """The form knows the tiny laboratory's unit: what workers write into the catalogue."""
    from experiments.models import Dataset, Layer, VisionModelRow

    model = VisionModelRow.objects.create(name="tiny", available=True)
    Layer.objects.create(model=model, position=0, name="patches", kind="conv", units=3)
    Dataset.objects.create(key="tiny", label="Tiny", available=True)


@pytest.mark.usefixtures("ready")
def test_a_fork_begins_with_what_its_parent_did_and_then_is_its_own(owner: User) -> None:
    parent = told(owner, LOOK, LOOK, CONCLUSION)
    fork = forked(parent, 1, owner, seed="7", question="And what else?", note="Mind the blue ones.")
    assert (fork.status, fork.parent, fork.fork_round, fork.rounds) == (Status.QUEUED, parent, 1, 0)
    fork, backbone = played(fork, "never asked", LOOK, CONCLUSION)
    assert kinds(fork) == [
        "started", "reply", "experiment", "result", "forked", "note",
        "reply", "experiment", "result", "reply", "concluded",
    ]  # fmt: skip
    assert backbone.asked == [2, 3], "a reply that was paid for is never asked for again"
    heard = "\n".join(each.text for each in backbone.heard)
    assert "> And what else?" in heard
    assert parent.question not in heard
    assert heard.count("> Mind the blue ones.") == 1
    event = fork.events.get(kind="forked").payload
    assert (event["run"], event["round"], event["who"]) == (parent.pk, 1, "owner")
    assert event["changes"] == {"question": "And what else?", "seed": "7"}
    assert (fork.seed, fork.rounds, fork.labels) == (7, 3, ["red squares"])


@pytest.mark.usefixtures("ready")
def test_nothing_is_counted_twice_and_every_row_is_there(owner: User) -> None:
    parent = told(owner, LOOK, LOOK, CONCLUSION)
    assert (parent.prompt_tokens, parent.completion_tokens) == (3 * 100 + 4 * 100, 3 * 20 + 4 * 10)
    fork, _ = played(forked(parent, 2, owner, note="Go on."), "", "", CONCLUSION)
    assert (fork.prompt_tokens, fork.completion_tokens, fork.cost) == (100, 20, 0.5)
    assert (fork.experiment_count, fork.observation_count) == (parent.experiment_count, parent.observation_count)
    assert fork.hypotheses.count() == parent.hypotheses.filter(round__lte=2).count()

    def rows(run: Run) -> list[Any]:
        found = Observation.objects.filter(experiment__run=run).order_by("experiment__number", "position")
        return list(found.values_list("experiment__number", "image_id", "masked_id", "activation", "title"))

    assert rows(fork) == rows(parent)
    assert (fork.exemplar_mean, fork.best_activation) == (parent.exemplar_mean, parent.best_activation)


@pytest.mark.usefixtures("ready")
def test_a_fork_goes_on_with_the_state_that_experiments_left(owner: User) -> None:
    parent = told(owner, KEEPS, LOOK, CONCLUSION)
    fork, _ = played(forked(parent, 1, owner), "", USES, CONCLUSION)
    assert "the kept one 42" in Experiment.objects.get(run=fork, number=2).output


@pytest.mark.usefixtures("ready")
def test_a_fork_of_a_fork_holds_one_line_of_descent(owner: User) -> None:
    parent = told(owner, LOOK, LOOK, CONCLUSION)
    child, _ = played(forked(parent, 1, owner, note="First."), "", LOOK, CONCLUSION)
    grandchild, backbone = played(forked(child, 2, owner, note="Second."), "", "", CONCLUSION)
    assert kinds(grandchild) == [
        "started", "reply", "experiment", "result", "note", "reply", "experiment", "result", "forked", "note",
        "reply", "concluded",
    ]  # fmt: skip
    heard = "\n".join(each.text for each in backbone.heard)
    assert heard.index("> First.") < heard.index("> Second.")
    assert [each.run for each in lineage.list_related(child, SystemNameMasker(None))] == [parent, grandchild]
    assert [each.run for each in lineage.list_related(parent, SystemNameMasker(None))] == [child]


@pytest.mark.usefixtures("ready")
def test_what_was_said_while_a_later_reply_was_written_is_left_behind(owner: User) -> None:
    parent = make_run(owner, model="tiny", layer="patches", unit=0, toolset="tiny")
    Run.objects.filter(pk=parent.pk).update(backbone="tiny")
    parent.refresh_from_db()
    transcript.append(parent.pk, "started", started())
    transcript.append(parent.pk, "reply", replied(1, heard=1))
    actions.send_note(Actor(owner), parent.pk, "Before the second.")
    actions.send_note(Actor(owner), parent.pk, "While the second was written.")
    transcript.append(parent.pk, "reply", replied(2, heard=3))
    parent.refresh_from_db()
    here["backbone"] = Seeing("", CONCLUSION)
    fork = play(forked(parent, 1, owner))
    assert [each.payload["text"] for each in fork.events.filter(kind="note")] == ["Before the second."]
    assert fork.events.get(kind="reply", payload__round=1).payload["heard"] == 1


# --- where a fork can begin ---------------------------------------------------------------------------


def test_a_round_that_does_not_exist_is_told(owner: User) -> None:
    run = make_run(owner)
    with pytest.raises(ActionRefused, match="has no round yet"):
        lineage.find_fork_point(run, 1)
    transcript.append(run.pk, "started", started())
    transcript.append(run.pk, "reply", replied(code="tools.display('hello')"))
    run.refresh_from_db()
    with pytest.raises(ActionRefused, match=r"has no round 2\. It has round 1\."):
        lineage.find_fork_point(run, 2)
    with pytest.raises(ActionRefused, match="has no round 0"):
        lineage.find_fork_point(run, 0)
    with pytest.raises(ActionRefused, match="is not over"):
        lineage.find_fork_point(run, 1)
    transcript.append(run.pk, "experiment", experiment())
    transcript.append(run.pk, "cancelled", Ended("Stopped."))
    run.refresh_from_db()
    with pytest.raises(ActionRefused, match="is not over"):
        lineage.find_fork_point(run, 1)
    assert lineage.find_last_complete_round(run) == 0


@pytest.mark.usefixtures("ready")
def test_a_run_under_way_is_forked_where_it_was_at_that_moment(owner: User) -> None:
    parent = tiny_run(owner, None)
    made: list[Run] = []
    fork_it = lambda: made.append(forked(Run.objects.get(pk=parent.pk), 1, owner))  # noqa: E731
    here["backbone"] = Meanwhile(LOOK, LOOK, CONCLUSION, in_2=fork_it)
    assert play(parent).status == Status.CONCLUDED
    fork, backbone = played(made[0], "", CONCLUSION)
    assert kinds(fork) == ["started", "reply", "experiment", "result", "forked", "reply", "concluded"]
    assert backbone.asked == [2]


@pytest.mark.usefixtures("ready")
def test_a_fork_whose_parent_is_gone_before_it_began_says_so(owner: User) -> None:
    parent = told(owner, LOOK, CONCLUSION)
    fork = forked(parent, 1, owner)
    parent.delete()
    fork = play(fork)
    assert (fork.status, kinds(fork)) == (Status.FAILED, ["failed"])
    assert "forked from is gone" in fork.reason


@pytest.mark.usefixtures("ready")
def test_after_a_conclusion_only_a_note_has_the_agent_go_on(owner: User) -> None:
    parent = told(owner, LOOK, CONCLUSION)
    silent = ForkForm(parent, lineage.find_fork_point(parent, 2), {"seed": "3"})
    assert "concluded in round 2" in silent.errors["note"][0]
    fork, backbone = played(forked(parent, 2, owner, note="And on snow?"), "", "", LOOK, CONCLUSION)
    assert (fork.status, fork.rounds, backbone.asked) == (Status.CONCLUDED, 4, [3, 4])


@pytest.mark.usefixtures("ready")
def test_the_rounds_that_are_copied_count_and_the_parents_final_answer_do_not(owner: User) -> None:
    limits = {"rounds": 2, "tokens": None, "cost": None, "seconds": None}
    parent = play(tiny_run(owner, Seeing(LOOK, LOOK, LOOK, LOOK, sentences=SEEN), limits=limits))
    assert (parent.status, parent.rounds) == (Status.LIMIT_REACHED, 4)
    tight = ForkForm(parent, lineage.find_fork_point(parent, 2), {})
    assert "allow more" in tight.errors["rounds"][0]
    fork, _ = played(forked(parent, 2, owner, rounds="6"), "", "", LOOK, CONCLUSION)
    assert (fork.status, fork.rounds) == (Status.CONCLUDED, 4)
    assert "final_answer" not in [each.payload["reason"] for each in fork.events.filter(kind="reminder")]


def test_what_the_parent_was_made_with_and_is_gone_is_told(owner: User, as_owner: Client) -> None:
    parent = told(owner, LOOK, CONCLUSION)
    response = as_owner.post(f"/runs/{parent.pk}/fork/?round=1", {"question": "What?"})
    assert response.status_code == 422
    page = response.content.decode()
    assert "This run cannot be forked here." in page
    assert "There is no model “tiny”" in page
    assert Run.objects.count() == 1


# --- whatever breaks ----------------------------------------------------------------------------------


class Killed(BaseException):
    """What no code of ours catches, as a worker's end is."""


@pytest.mark.usefixtures("ready")
def test_a_worker_that_ends_while_it_copies_leaves_nothing_half_done(
    owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = told(owner, LOOK, LOOK, CONCLUSION)
    fork = forked(parent, 2, owner, note="Go on.")
    whole = forking.copy_events

    def cut_short(*given: Any) -> Iterator[Any]:
        for number, step in enumerate(whole(*given)):
            if number == 4:
                raise Killed
            yield step

    with monkeypatch.context() as patch:
        patch.setattr(forking, "copy_events", cut_short)
        with pytest.raises(Killed):
            play(fork)
    fork.refresh_from_db()
    assert (kinds(fork), fork.last_seq, fork.started, fork.experiment_count) == ([], 0, None, 0)
    fork, _ = played(fork, "", "", CONCLUSION)
    assert kinds(fork)[-2:] == ["reply", "concluded"]
    assert kinds(fork).count("result") == 2


# --- pages --------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("ready")
def test_a_fork_is_asked_for_on_its_page(owner: User, as_owner: Client) -> None:
    parent = told(owner, LOOK, LOOK, CONCLUSION)
    page = as_owner.get(f"/runs/{parent.pk}/fork/?round=2").content.decode()
    assert f"Fork run {parent.pk} after round 2" in page
    assert parent.question in page
    form = {"question": parent.question, "backbone": "tiny", "rounds": "9", "seed": "4", "note": "<b>Look</b>"}
    response = as_owner.post(f"/runs/{parent.pk}/fork/?round=2", form)
    fork = Run.objects.latest("pk")
    assert response["Location"] == fork.get_absolute_url()
    assert (fork.seed, fork.limits["rounds"], fork.limits["tokens"]) == (4, 9, parent.limits["tokens"])
    assert AuditEntry.objects.get(verb="run.forked").details == {"parent": parent.pk, "round": 2}
    fork, _ = played(fork, "", "", CONCLUSION)
    story = as_owner.get(fork.get_absolute_url()).content.decode()
    assert "&lt;b&gt;Look&lt;/b&gt;" in story
    assert f'href="/runs/{parent.pk}/?round=2#round-2"' in story
    assert f'Forked after round 2 of <a href="/runs/{parent.pk}/"' in story
    assert f'<a href="/runs/{fork.pk}/"' in as_owner.get(parent.get_absolute_url()).content.decode()


def test_a_fork_without_a_round_begins_after_the_last_that_is_over(owner: User, as_owner: Client) -> None:
    parent = told(owner, LOOK, CONCLUSION)
    assert "after round 2" in as_owner.get(f"/runs/{parent.pk}/fork/").content.decode()
    for wrong in ("9", "0", "x", "-1"):
        response = as_owner.get(f"/runs/{parent.pk}/fork/?round={wrong}")
        assert response.status_code == 404
        assert "Fork after round 2" in response.content.decode()
    fresh = make_run(owner)
    assert as_owner.get(f"/runs/{fresh.pk}/fork/")["Location"] == f"/query/?from={fresh.pk}"


@pytest.mark.usefixtures("ready")
def test_a_fork_stands_beside_its_parent_round_by_round(owner: User) -> None:
    parent = told(owner, LOOK, LOOK, CONCLUSION)
    fork, _ = played(forked(parent, 1, owner), "", PROGRAM.format("print('otherwise')"), CONCLUSION)
    rounds = comparison.rounds([parent, fork], events.scale_of(parent), 1, 3, only_differences=True)
    assert [each.number for each in rounds] == [2]
    assert [part.name for part in rounds[0].parts] == ["Program", "Images"]


@pytest.mark.usefixtures("ready")
def test_a_run_that_was_had_go_on_and_forked_travels_as_a_bundle(owner: User) -> None:
    known = {"model": "tiny", "layer": "patches", "unit": 0, "toolset": "tiny", "backbone": "tiny"}
    run = make_run(owner, **known)
    transcript.append(run.pk, "started", started())
    transcript.append(run.pk, "failed", Ended("Why."))
    actions.resume(Actor(owner), run.pk)
    transcript.append(run.pk, "concluded", Ended("", Conclusion("Red.", ("red",))))
    copy = make_run(owner)
    steps = [transcript.ImportedEvent(each.kind, each.content, each.time) for each in run.events.order_by("seq")]
    transcript.replay(copy, steps)()
    assert (kinds(copy), copy.status, copy.labels) == (kinds(run), "concluded", ["red"])
