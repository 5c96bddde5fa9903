"""Steering a run while the real agent plays it: pauses, notes, limits, going on, and what happens all at once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from threading import Event as Flag
from threading import Thread
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.utils import timezone

from experiments.core import transcript
from experiments.core.actors import Actor
from experiments.core.errors import ActionRefused, OutOfDate
from experiments.models import AuditEntry, Run
from experiments.runs.steering import actions
from tests.support.builders import experiment, make_run, replied, result, started
from tests.support.queued import list_queued
from tests.support.steering import Meanwhile
from tests.support.tiny_run import CONCLUSION, LOOK, Seeing, install, kinds, play, tiny_run
from workers.jobs import laboratory as place
from workers.jobs import lease
from workers.jobs.images import ImagesInDatabase
from workers.jobs.run_log import DatabaseRunLog
from workers.record.events import Ended
from workers.record.replies import Conclusion
from workers.record.statuses import Status

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_url")]
LIMITS = {"rounds": 25, "tokens": 1_000_000, "cost": 5, "seconds": 3600}


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> Any:
    install(monkeypatch, settings, tmp_path)
    yield
    place.build_laboratory.cache_clear()


@pytest.fixture
def actor(owner: User) -> Actor:
    return Actor(owner)


def held(run: Run) -> None:
    """As if a worker were at it."""
    lapses = timezone.now() + timedelta(seconds=30)
    Run.objects.filter(pk=run.pk).update(status=Status.RUNNING, lease_worker="w", lease_expires=lapses)


def verbs(run: Run) -> list[str]:
    return list(AuditEntry.objects.filter(row_kind="run", row_pk=run.pk).order_by("pk").values_list("verb", flat=True))


# --- pause and resume ---------------------------------------------------------------------------------


def test_a_run_that_no_worker_holds_is_paused_at_once_and_once(owner: User, actor: Actor) -> None:
    run = tiny_run(owner, Seeing(CONCLUSION))
    assert [actions.pause(actor, run.pk), actions.pause(actor, run.pk)] == [True, False]
    run = play(run)
    assert (run.status, kinds(run)) == (Status.PAUSED, ["paused"])
    assert list_queued() == set()
    assert [actions.resume(actor, run.pk), actions.resume(actor, run.pk)] == [True, False]
    assert list_queued() == {run.pk}
    assert kinds(play(run)) == ["paused", "resumed", "started", "reply", "concluded"]
    assert verbs(run) == ["run.paused", "run.resumed"]


def test_a_worker_finishes_its_round_before_the_pause(owner: User, actor: Actor) -> None:
    run = tiny_run(owner, None)
    backbone = Meanwhile(LOOK, CONCLUSION, in_1=lambda: actions.pause(actor, run.pk))
    run = play(tiny_run_with(run, backbone))
    assert kinds(run) == ["started", "reply", "experiment", "result", "paused"]
    assert run.events.get(kind="paused").payload == {"round": 1, "who": "owner"}
    assert (run.status, run.pause_requested, run.lease_worker) == (Status.PAUSED, "", "")
    actions.resume(actor, run.pk)
    assert kinds(play(run))[5:] == ["resumed", "reply", "concluded"]
    assert backbone.asked == [1, 2]


def tiny_run_with(run: Run, backbone: Any) -> Run:
    from tests.support.tiny_run import here

    here["backbone"] = backbone
    return run


def test_a_pause_that_is_taken_back_leaves_no_trace_in_the_transcript(owner: User, actor: Actor) -> None:
    run = tiny_run(owner, Seeing(CONCLUSION))
    held(run)
    assert actions.pause(actor, run.pk)
    run.refresh_from_db()
    assert (run.is_pausing, actions.list_moves(run)[0]) == (True, "keep-going")
    assert actions.resume(actor, run.pk)
    run.refresh_from_db()
    assert (run.is_pausing, actions.list_moves(run)[0], kinds(run)) == (False, "pause", [])


def test_a_run_that_ends_before_its_pause_has_ended(owner: User, actor: Actor) -> None:
    run = tiny_run(owner, None)
    run = play(tiny_run_with(run, Meanwhile(CONCLUSION, in_1=lambda: actions.pause(actor, run.pk))))
    assert (run.status, run.pause_requested) == (Status.CONCLUDED, "")
    with pytest.raises(ActionRefused, match="has ended"):
        actions.pause(actor, run.pk)
    with pytest.raises(ActionRefused, match="fork it"):
        actions.resume(actor, run.pk)


@pytest.mark.parametrize("kind", ["failed", "cancelled"])
def test_a_run_that_failed_or_was_stopped_goes_on_where_it_was(owner: User, actor: Actor, kind: str) -> None:
    run = tiny_run(owner, Seeing(LOOK, CONCLUSION, sentences=("A red square.", "Nothing.")))
    transcript.append(run.pk, "started", started())
    transcript.append(run.pk, kind, Ended("Why."))
    assert actions.resume(actor, run.pk)
    run = play(run)
    assert kinds(run) == ["started", kind, "resumed", "reply", "experiment", "result", "reply", "concluded"]
    assert (run.status, run.reason, run.cancel_requested) == (Status.CONCLUDED, "", False)


def test_a_stop_is_done_once_and_can_be_taken_back(owner: User, actor: Actor) -> None:
    run = tiny_run(owner, None)
    assert [actions.stop(actor, run.pk), actions.stop(actor, run.pk)] == [True, False]
    run.refresh_from_db()
    assert (run.status, run.reason) == (Status.CANCELLED, "Stopped by owner.")
    assert actions.resume(actor, run.pk)
    run.refresh_from_db()
    assert (run.status, run.cancel_requested) == (Status.QUEUED, False)


# --- notes ------------------------------------------------------------------------------------------


def test_a_note_is_heard_once_after_the_reply_that_did_not_know_it(owner: User, actor: Actor) -> None:
    run = tiny_run(owner, None)
    say = lambda: actions.send_note(actor, run.pk, "Experiment 9: ok\n[LABEL]: cats")  # noqa: E731
    backbone = Meanwhile(LOOK, LOOK, CONCLUSION, in_1=say)
    run = play(tiny_run_with(run, backbone))
    assert kinds(run)[:3] == ["started", "note", "reply"]
    assert not any("Experiment 9" in text for text in backbone.told[1])
    second, third = "\n".join(backbone.told[2]), "\n".join(backbone.told[3])
    assert second.count("Experiment 9") == third.count("Experiment 9") == 1
    assert "> Experiment 9: ok\n> [LABEL]: cats" in second
    assert second.index("crimson hunch") < second.index("Experiment 9")
    assert backbone.told[3][: len(backbone.told[2])] == backbone.told[2], "the history only grows"
    assert run.labels == ["red squares"]


def test_a_note_made_while_the_conclusion_is_written_keeps_the_run_going(owner: User, actor: Actor) -> None:
    run = tiny_run(owner, None)
    backbone = Meanwhile(CONCLUSION, LOOK, CONCLUSION, in_1=lambda: actions.send_note(actor, run.pk, "And on snow?"))
    run = play(tiny_run_with(run, backbone))
    assert kinds(run) == ["started", "note", "reply", "reminder", "reply", "experiment", "result", "reply", "concluded"]
    assert "> And on snow?" in backbone.told[2][-1]


def test_a_note_between_the_last_look_and_the_conclusion_is_not_lost(owner: User, actor: Actor) -> None:
    run = tiny_run(owner, Seeing(CONCLUSION))
    transcript.append(run.pk, "started", started())
    transcript.append(run.pk, "reply", replied(conclusion=Conclusion("Red."), heard=1))
    claimed = lease.claim(run.pk)
    assert claimed
    run_log = DatabaseRunLog(claimed, ImagesInDatabase(), Flag())
    assert len(run_log.read().events) == 2
    actions.send_note(actor, run.pk, "And on snow?")
    assert run_log.append("concluded", Ended(conclusion=Conclusion("Red."))).kind == "note"
    assert kinds(run) == ["started", "reply", "note"]
    assert run_log.append("concluded", Ended(conclusion=Conclusion("Red."))).kind == "concluded"


def test_a_note_made_before_the_start_follows_it(owner: User, actor: Actor) -> None:
    backbone = Meanwhile(CONCLUSION)
    run = tiny_run(owner, backbone)
    actions.send_note(actor, run.pk, "Mind the snow.")
    assert kinds(play(run)) == ["note", "started", "reply", "concluded"]
    assert backbone.heard[0].role == "system"
    assert backbone.told[1][1].endswith("> Mind the snow.")


def test_the_same_note_sent_twice_is_said_once(owner: User, actor: Actor) -> None:
    run = make_run(owner)
    assert actions.send_note(actor, run.pk, " Look.\r\nNow. ").pk == actions.send_note(actor, run.pk, "Look.\nNow.").pk
    actions.send_note(actor, run.pk, "Something else.")
    assert kinds(run) == ["note", "note"]
    assert verbs(run) == ["run.noted", "run.noted"]


@pytest.mark.parametrize(("kind", "says"), [("concluded", "Fork it"), ("failed", "Resume the run")])
def test_a_note_to_a_run_that_has_ended_is_refused(owner: User, actor: Actor, kind: str, says: str) -> None:
    run = make_run(owner)
    transcript.append(run.pk, kind, Ended("Why."))
    with pytest.raises(ActionRefused, match=f"The agent would not read this. {says}"):
        actions.send_note(actor, run.pk, "And on snow?")
    assert kinds(run) == [kind]


@pytest.mark.parametrize("text", ["", "  \n ", "x" * 4_001])
def test_a_note_has_some_words_and_not_too_many(owner: User, actor: Actor, text: str) -> None:
    with pytest.raises(ActionRefused):
        actions.send_note(actor, make_run(owner).pk, text)


# --- limits -------------------------------------------------------------------------------------------


def test_raised_limits_let_a_run_go_on_past_its_old_ones(owner: User, actor: Actor) -> None:
    run = tiny_run(owner, None, limits=LIMITS | {"rounds": 2})
    more = LIMITS | {"rounds": 4}
    backbone = Meanwhile(
        LOOK, LOOK, LOOK, CONCLUSION, in_2=lambda: actions.change_limits(actor, run.pk, more, "It is close.")
    )
    run = play(tiny_run_with(run, backbone))
    assert (run.status, run.rounds, run.limits) == (Status.CONCLUDED, 4, more)
    told = run.events.get(kind="limits").payload
    assert (told["who"], told["why"], told["before"]["rounds"], told["limits"]["rounds"]) == (
        "owner", "It is close.", 2, 4,
    )  # fmt: skip
    assert "it may take 4 rounds in all" in backbone.told[3][-1]
    assert AuditEntry.objects.get(verb="run.limited").details["after"].startswith("rounds 4")


def test_limits_raised_while_the_final_answer_are_written_let_the_run_go_on(owner: User, actor: Actor) -> None:
    run = tiny_run(owner, None, limits=LIMITS | {"rounds": 1})
    backbone = Meanwhile(LOOK, LOOK, CONCLUSION, in_2=lambda: actions.change_limits(actor, run.pk, LIMITS))
    run = play(tiny_run_with(run, backbone))
    assert (run.status, run.rounds) == (Status.CONCLUDED, 3)
    assert kinds(run).count("result") == 2


def test_limits_below_what_is_used_end_the_run_after_its_final_answer(owner: User, actor: Actor) -> None:
    run = tiny_run(owner, None)
    fewer = LIMITS | {"rounds": 1}
    backbone = Meanwhile(LOOK, LOOK, CONCLUSION, CONCLUSION, in_2=lambda: actions.change_limits(actor, run.pk, fewer))
    run = play(tiny_run_with(run, backbone))
    assert (run.status, run.rounds, run.labels) == (Status.LIMIT_REACHED, 3, ["red squares"])
    assert "1 rounds is reached: 2 rounds used" in run.events.filter(kind="reminder").latest("seq").payload["text"]


def test_no_note_is_taken_for_a_run_that_gives_its_final_answer(owner: User, actor: Actor) -> None:
    run = tiny_run(owner, None, limits=LIMITS | {"rounds": 1})
    refused: list[str] = []

    def say() -> None:
        with pytest.raises(ActionRefused) as caught:
            actions.send_note(actor, run.pk, "And on snow?")
        refused.append(str(caught.value))

    play(tiny_run_with(run, Meanwhile(LOOK, CONCLUSION, in_2=say)))
    assert "giving its final answer" in refused[0]


def test_limits_that_somebody_else_changed_are_not_overwritten(owner: User, actor: Actor) -> None:
    run = make_run(owner)
    assert not actions.change_limits(actor, run.pk, LIMITS)
    assert actions.change_limits(actor, run.pk, LIMITS | {"rounds": 30}, seen=LIMITS)
    with pytest.raises(OutOfDate, match="They are now: rounds 30"):
        actions.change_limits(actor, run.pk, LIMITS | {"rounds": 40}, seen=LIMITS)
    assert kinds(run) == ["limits"]


# --- who may, and all at once -------------------------------------------------------------------------


def test_a_viewer_steers_nothing(owner: User, teammate: User) -> None:
    run, viewer = make_run(owner), Actor(teammate)
    for do in (actions.pause, actions.resume, actions.stop):
        with pytest.raises(PermissionDenied):
            do(viewer, run.pk)
    with pytest.raises(PermissionDenied):
        actions.send_note(viewer, run.pk, "Look.")
    with pytest.raises(PermissionDenied):
        actions.change_limits(viewer, run.pk, {})
    assert kinds(run) == []


def in_threads(*works: Callable[[], object]) -> list[BaseException]:
    failures: list[BaseException] = []

    def go(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - told to the test
            failures.append(error)
        finally:
            connection.close()

    threads = [Thread(target=go, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


def test_people_and_a_worker_at_the_same_moment_leave_one_whole_story(owner: User, actor: Actor) -> None:
    run = tiny_run(owner, None)
    claimed = lease.claim(run.pk)
    assert claimed
    images = ImagesInDatabase()
    run_log = DatabaseRunLog(claimed, images, Flag())
    run_log.append("started", started())

    def work() -> None:
        for number in (1, 2, 3):
            run_log.append("reply", replied(number, code="tools.display('hello')"))
            run_log.append("experiment", experiment(number))
            run_log.append("result", result(number))

    def steer(most: int) -> None:
        for number in range(5):
            actions.send_note(actor, run.pk, f"Note {number} of {most}")
            actions.change_limits(actor, run.pk, LIMITS | {"rounds": most + number})

    def pause() -> None:
        for _ in range(5):
            actions.pause(actor, run.pk)
            actions.resume(actor, run.pk)

    assert in_threads(work, partial(steer, 30), partial(steer, 40), pause) == []
    run.refresh_from_db()
    assert list(run.events.order_by("seq").values_list("seq", flat=True)) == list(range(1, run.last_seq + 1))
    assert (kinds(run).count("note"), kinds(run).count("result"), run.rounds) == (10, 3, 3)
    assert run.status == Status.RUNNING


def test_of_many_who_press_the_same_button_one_does_it(owner: User, actor: Actor) -> None:
    run = tiny_run(owner, None)
    assert in_threads(*[lambda: actions.pause(actor, run.pk)] * 6) == []
    assert kinds(run) == ["paused"]
    assert in_threads(*[lambda: actions.resume(actor, run.pk)] * 6) == []
    assert kinds(run) == ["paused", "resumed"]
    assert list_queued() == {run.pk}
    assert in_threads(*[lambda: actions.stop(actor, run.pk)] * 6) == []
    assert kinds(run) == ["paused", "resumed", "cancelled"]
    assert verbs(run) == ["run.paused", "run.resumed", "run.stopped"]


def test_a_pause_races_with_a_claim_and_one_of_them_wins(owner: User, actor: Actor) -> None:
    for _ in range(5):
        run = make_run(owner)
        assert in_threads(partial(lease.claim, run.pk), partial(actions.pause, actor, run.pk)) == []
        run.refresh_from_db()
        paused, asked = run.status == Status.PAUSED, bool(run.pause_requested)
        assert paused != asked, "paused at once, or asked of the worker that was first"
        assert run.is_leased() == asked
