"""The loop: what is recorded, shown, stopped and tried again."""

from __future__ import annotations

import pytest

from tests.playback import (
    CONCLUSION,
    PROGRAM,
    RED_BALLS,
    UNIT,
    Lab,
    Playback,
    begin,
    end,
    kinds,
    load,
    logged,
    new_notebook,
    play,
    programs,
)
from workers.agent.events import Limits
from workers.agent.loop import play_round
from workers.agent.memory import NotebookInMemory
from workers.agent.rules import ATTEMPTS
from workers.errors import (
    BackboneRefused,
    BackboneUnavailable,
    Cancelled,
    LeaseLost,
    MachineryError,
    RequestError,
    SandboxBroke,
    UnknownName,
)
from workers.protocols import Usage

# --- a run that goes well -------------------------------------------------------------------------


def test_a_run_is_recorded_step_by_step_and_concludes():
    notebook = play(Playback(*programs(2), CONCLUSION, usage=Usage(100, 10, 0.01)))
    assert kinds(notebook) == (
        ["started", "reply", "experiment", "result", "reply", "experiment", "result", "reply", "concluded"]
    )
    assert [event.seq for event in notebook.events()] == list(range(1, 10))
    assert end(notebook).conclusion == RED_BALLS
    reply = notebook.events()[4].payload
    assert (reply.round, reply.author, reply.code, reply.usage.cost) == (2, "playback", "program 2", 0.01)
    assert [each.text for each in reply.hypotheses] == ["red balls"]
    assert [event.payload.number for event in notebook.events() if event.kind == "result"] == [1, 2]


def test_one_call_plays_one_round():
    backbone, notebook = Playback(*programs(2), CONCLUSION), new_notebook()
    assert play_round(notebook, backbone, Lab(), load) is True
    assert kinds(notebook) == ["started", "reply", "experiment", "result"]
    assert play_round(notebook, backbone, Lab(), load) is True
    assert play_round(notebook, backbone, Lab(), load) is False
    assert backbone.asked == [1, 2, 3]


def test_a_run_that_has_ended_is_left_alone():
    backbone = Playback(CONCLUSION)
    notebook = play(backbone)
    before = notebook.events()
    notebook.stop = True
    assert play_round(notebook, backbone, Lab(), load) is False
    assert notebook.events() == before
    assert backbone.asked == [1]


def test_the_reply_under_way_is_shown_whole_and_cleared_when_it_is_recorded():
    shown = []

    class Watched(NotebookInMemory):
        def draft(self, text):
            shown.append((text, self.events()[-1].kind))

    notebook = Watched()
    notebook.append("started", begin())
    play(Playback("[LABEL]: a red ball"), notebook=notebook)
    words = ["[LABEL]: ", "[LABEL]: a ", "[LABEL]: a red ", "[LABEL]: a red ball"]
    assert shown == [*((text, "started") for text in words), ("", "reply")]


def test_a_reply_is_stored_without_what_databases_refuse():
    notebook = play(Playback("zero \x00 half \ud800\n[LABEL]: red\x00"))
    reply = notebook.events()[1].payload
    assert reply.text == "zero \ufffd half ?\n[LABEL]: red\ufffd"
    assert reply.text.encode()


def test_what_a_program_leaves_reaches_the_next_even_if_one_between_fails():
    lab = Lab(logged(1, state=b"kept"), logged(status="program_error", error="x"), logged(1))
    play(Playback(*programs(3), CONCLUSION), lab)
    assert lab.states == [b"", b"kept", b"kept"]


def test_what_was_logged_before_an_error_is_kept():
    lab = Lab(logged(31.0, 7.0, status="timeout", error="60 s are over"))
    backbone = Playback(*programs(1), CONCLUSION)
    result = play(backbone, lab).events()[3].payload
    assert [each.activation for each in result.entries[0].observations] == [31.0, 7.0]
    assert "activation 31.00" in backbone.heard[-1].text
    assert "60 s are over" in backbone.heard[-1].text


# --- somebody stops the run -----------------------------------------------------------------------


def test_a_run_stopped_in_mid_reply_records_no_half_reply():
    notebook = new_notebook()

    class Stopping(Playback):
        def reply(self, messages, load, emit, seed):
            emit("[LABEL]: ")
            notebook.stop = True
            emit("red")
            pytest.fail("the reply went on after the run was stopped")

    play(Stopping(), notebook=notebook)
    assert kinds(notebook) == ["started", "cancelled"]
    assert notebook.words == ""


def test_a_run_stopped_in_mid_experiment_records_no_result():
    notebook = play(Playback(*programs(1)), Lab(Cancelled("stopped")))
    assert kinds(notebook) == ["started", "reply", "experiment", "cancelled"]
    assert "stopped" in end(notebook).reason


def test_a_run_stopped_between_rounds_asks_nothing_more():
    backbone, notebook = Playback(*programs(1), CONCLUSION), new_notebook()
    play_round(notebook, backbone, Lab(), load)
    notebook.stop = True
    assert play_round(notebook, backbone, Lab(), load) is False
    assert kinds(notebook)[-2:] == ["result", "cancelled"]
    assert backbone.asked == [1]


# --- trouble --------------------------------------------------------------------------------------


def test_trouble_is_recorded_raised_for_the_caller_to_retry_and_never_told_to_the_agent():
    backbone = Playback([BackboneUnavailable("The line is dead."), CONCLUSION])
    notebook = new_notebook()
    with pytest.raises(MachineryError, match="line is dead"):
        play_round(notebook, backbone, Lab(), load)
    assert kinds(notebook) == ["started", "trouble"]
    assert play_round(notebook, backbone, Lab(), load) is False
    assert kinds(notebook) == ["started", "trouble", "reply", "concluded"]
    assert not any("line is dead" in message.text for message in backbone.heard)


def test_three_attempts_at_one_step_end_the_run_and_say_who_can_help():
    lab = Lab(SandboxBroke("No child could be started."))
    notebook = play(Playback(*programs(1)), lab, tries=ATTEMPTS - 1)
    assert kinds(notebook) == ["started", "reply", "experiment", "trouble", "trouble", "trouble", "failed"]
    assert [event.payload.attempt for event in notebook.events() if event.kind == "trouble"] == [1, 2, 3]
    assert {event.payload.round for event in notebook.events() if event.kind == "trouble"} == {1}
    assert "No child could be started." in end(notebook).reason
    assert "person who operates" in end(notebook).reason
    assert lab.ran == [1, 1, 1]


def test_attempts_are_counted_for_each_step_anew():
    dead = [BackboneUnavailable("dead")] * (ATTEMPTS - 1)
    backbone = Playback([*dead, PROGRAM.format(1)], [*dead, CONCLUSION])
    assert kinds(play(backbone, tries=99))[-1] == "concluded"


def test_whatever_else_breaks_is_trouble_too():
    lab = Lab([RuntimeError("CUDA error"), logged(40.0)])
    notebook = play(Playback(*programs(1), CONCLUSION), lab, tries=1)
    assert kinds(notebook)[3:5] == ["trouble", "result"]
    assert notebook.events()[3].payload.what == "RuntimeError: CUDA error."


@pytest.mark.parametrize("error", [BackboneRefused("The key is wrong."), UnknownName("There is no such agent.")])
def test_what_no_retry_can_help_ends_the_run_at_once(error):
    notebook = play(Playback(error))
    assert kinds(notebook) == ["started", "failed"]
    assert str(error) in end(notebook).reason


def test_a_worker_that_lost_the_run_records_nothing_more():
    notebook = new_notebook()
    with pytest.raises(LeaseLost):
        play_round(notebook, Playback(*programs(1)), Lab(LeaseLost("held by another")), load)
    assert kinds(notebook) == ["started", "reply", "experiment"]


# --- the first event ------------------------------------------------------------------------------


def test_the_first_event_holds_everything_the_agent_was_told():
    started = begin()
    assert "API" in started.instructions
    assert "> What drives it?" in started.assignment
    assert (started.reference, started.seed, started.system) == ("API", 5, UNIT)


def test_a_run_that_makes_no_sense_is_refused_before_it_starts():
    with pytest.raises(RequestError, match="0 rounds"):
        begin(limits=Limits(rounds=0))
    with pytest.raises(UnknownName, match="describe"):
        begin(task="../system")
