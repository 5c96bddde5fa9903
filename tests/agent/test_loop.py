"""The loop: what is recorded, shown, stopped and tried again."""

from __future__ import annotations

import time

import pytest

from tests.support.playback import (
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
    new_run_log,
    notes,
    play,
    programs,
)
from tests.support.run_log import RunLogInMemory
from workers.agent.loop import attempt, run_agent
from workers.agent.rules import ATTEMPTS
from workers.errors import (
    BackboneRefused,
    BackboneUnavailable,
    Cancelled,
    ContentRefused,
    LeaseLost,
    MachineryError,
    MissingPart,
    RequestError,
    SandboxBroke,
    TimeIsUp,
    UnknownName,
)
from workers.protocols import Reply
from workers.record.events import Blocked, Resumed
from workers.record.limits import Limits, Usage

SPENT = Usage(1000, 7, 0.01)

# --- a run that goes well -------------------------------------------------------------------------


def test_a_run_is_recorded_step_by_step_and_concludes():
    run_log = play(Playback(*programs(2), CONCLUSION, usage=Usage(100, 10, 0.01)))
    assert kinds(run_log) == (
        ["started", "reply", "experiment", "result", "reply", "experiment", "result", "reply", "concluded"]
    )
    assert [event.seq for event in run_log.events()] == list(range(1, 10))
    assert end(run_log).conclusion == RED_BALLS
    reply = run_log.events()[4].payload
    assert (reply.round, reply.author, reply.code, reply.usage.cost) == (2, "playback", "program 2", 0.01)
    assert [each.text for each in reply.hypotheses] == ["red balls"]
    assert [event.payload.number for event in run_log.events() if event.kind == "result"] == [1, 2]


def test_one_call_plays_one_round():
    backbone, run_log = Playback(*programs(2), CONCLUSION), new_run_log()
    assert run_agent(run_log, backbone, Lab(), load) is True
    assert kinds(run_log) == ["started", "reply", "experiment", "result"]
    assert run_agent(run_log, backbone, Lab(), load) is True
    assert run_agent(run_log, backbone, Lab(), load) is False
    assert backbone.asked == [1, 2, 3]


def test_a_run_that_has_ended_is_left_alone():
    backbone = Playback(CONCLUSION)
    run_log = play(backbone)
    before = run_log.events()
    run_log.stop = True
    assert run_agent(run_log, backbone, Lab(), load) is False
    assert run_log.events() == before
    assert backbone.asked == [1]


def test_the_reply_under_way_is_shown_whole_and_cleared_when_it_is_recorded():
    shown = []

    class Watched(RunLogInMemory):
        def draft(self, text):
            shown.append((text, self.events()[-1].kind))

    run_log = Watched()
    run_log.append("started", begin(task="free"))
    play(Playback("[DESCRIPTION]: a red ball"), run_log=run_log)
    words = ["[DESCRIPTION]: ", "[DESCRIPTION]: a ", "[DESCRIPTION]: a red ", "[DESCRIPTION]: a red ball"]
    assert shown == [*((text, "started") for text in words), ("", "reply")]


def test_a_reply_that_starts_over_is_shown_from_its_start():
    shown = []

    class Watched(RunLogInMemory):
        def draft(self, text):
            shown.append(text)

    class Stumbling(Playback):
        def reply(self, messages, load, emit, seed):
            for piece in ("", "[DESCRIPTION]: cut o", None, "", "[DESCRIPTION]: red"):
                emit(piece)
            return Reply("[DESCRIPTION]: red")

    run_log = Watched()
    run_log.append("started", begin(task="free"))
    play(Stumbling(), run_log=run_log)
    assert shown == ["[DESCRIPTION]: cut o", "", "[DESCRIPTION]: red", ""]
    assert run_log.events()[1].payload.text == "[DESCRIPTION]: red"


def test_a_reply_is_stored_without_what_databases_refuse():
    run_log = play(Playback("zero \x00 half \ud800\n[DESCRIPTION]: red\x00"), run_log=new_run_log(task="free"))
    reply = run_log.events()[1].payload
    assert reply.text == "zero \ufffd half \ufffd\n[DESCRIPTION]: red\ufffd"
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
    run_log = new_run_log()

    class Stopping(Playback):
        def reply(self, messages, load, emit, seed):
            emit("[LABEL]: ")
            run_log.stop = True
            emit("red")
            pytest.fail("the reply went on after the run was stopped")

    play(Stopping(), run_log=run_log)
    assert kinds(run_log) == ["started", "cancelled"]
    assert run_log.words == ""


def test_a_run_stopped_in_mid_experiment_records_no_result():
    run_log = play(Playback(*programs(1)), Lab(Cancelled("stopped")))
    assert kinds(run_log) == ["started", "reply", "experiment", "cancelled"]
    assert "stopped" in end(run_log).reason


def test_a_run_stopped_between_rounds_asks_nothing_more():
    backbone, run_log = Playback(*programs(1), CONCLUSION), new_run_log()
    run_agent(run_log, backbone, Lab(), load)
    run_log.stop = True
    assert run_agent(run_log, backbone, Lab(), load) is False
    assert kinds(run_log)[-2:] == ["result", "cancelled"]
    assert backbone.asked == [1]


# --- trouble --------------------------------------------------------------------------------------


def test_trouble_is_recorded_raised_for_the_caller_to_retry_and_never_told_to_the_agent():
    backbone = Playback([MachineryError("The line is dead."), CONCLUSION])
    run_log = new_run_log()
    with pytest.raises(MachineryError, match="line is dead"):
        run_agent(run_log, backbone, Lab(), load)
    assert kinds(run_log) == ["started", "retrying"]
    assert run_agent(run_log, backbone, Lab(), load) is False
    assert kinds(run_log) == ["started", "retrying", "reply", "concluded"]
    assert not any("line is dead" in message.text for message in backbone.heard)


def test_three_attempts_at_one_step_end_the_run_and_say_who_can_help():
    lab = Lab(SandboxBroke("No child could be started."))
    run_log = play(Playback(*programs(1)), lab, tries=ATTEMPTS - 1)
    assert kinds(run_log) == ["started", "reply", "experiment", "retrying", "retrying", "retrying", "failed"]
    assert [event.payload.attempt for event in run_log.events() if event.kind == "retrying"] == [1, 2, 3]
    assert {event.payload.round for event in run_log.events() if event.kind == "retrying"} == {1}
    assert "No child could be started." in end(run_log).reason
    assert "person who operates" in end(run_log).reason
    assert lab.ran == [1, 1, 1]


def test_attempts_are_counted_for_each_step_anew():
    dead = [MachineryError("dead")] * (ATTEMPTS - 1)
    backbone = Playback([*dead, PROGRAM.format(1)], [*dead, CONCLUSION])
    assert kinds(play(backbone, tries=99))[-1] == "concluded"


def test_whatever_else_breaks_is_trouble_too():
    lab = Lab([RuntimeError("CUDA error"), logged(40.0)])
    run_log = play(Playback(*programs(1), CONCLUSION), lab, tries=1)
    assert kinds(run_log)[3:5] == ["retrying", "result"]
    assert run_log.events()[3].payload.what == "RuntimeError: CUDA error."


def test_what_no_retry_can_help_ends_the_run_at_once():
    run_log = play(Playback(UnknownName("There is no such agent.")))
    assert kinds(run_log) == ["started", "failed"]
    assert "There is no such agent." in end(run_log).reason


# --- a run that waits for a person ----------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        BackboneRefused("No credit."),
        BackboneUnavailable("It was asked 8 times."),
        ContentRefused("Filtered."),
        MissingPart("No key."),
    ],
)
def test_what_a_person_can_put_right_has_the_run_wait_and_says_why_and_what_it_took(error):
    error.spent = SPENT
    backbone = Playback([error, CONCLUSION])
    run_log = play(backbone)
    assert kinds(run_log) == ["started", "blocked"]
    assert end(run_log) == Blocked(1, str(error), SPENT)
    assert run_log.known.usage.tokens == SPENT.tokens, "what it took counts towards the limits"
    assert run_agent(run_log, backbone, Lab(), load) is False
    assert backbone.asked == [1], "it asks nobody while it waits"


class Hung:
    """A backbone that never answers, like a provider that hangs; `spent` is what the request took."""

    label = "hung"
    price_known = True

    def __init__(self, spent: Usage) -> None:
        self.spent, self.asked = spent, 0

    def reply(self, messages, load, emit, seed):
        self.asked += 1
        try:
            while True:
                emit("")
                time.sleep(0.002)
        except TimeIsUp as error:
            error.spent = self.spent
            raise


def test_a_limit_of_time_holds_while_a_provider_hangs():
    hung = Hung(SPENT)
    run_log = play(hung, run_log=new_run_log(limits=Limits(seconds=0.3)))
    assert kinds(run_log) == ["started", "reminder", "limit_reached"]
    assert notes(run_log) == ["final_answer"]
    assert "0.3 seconds is reached" in end(run_log).reason
    assert [event.payload.usage for event in run_log.events()[1:]] == [SPENT, SPENT]
    assert hung.asked == 2


def test_words_that_come_are_heard_out_after_the_time_is_up():
    class Slow(Playback):
        def reply(self, messages, load, emit, seed):
            emit("[LABEL]: ")
            while not reached(run_log):
                emit("")
            emit("red")
            return Reply("[DESCRIPTION]: red\n[LABEL]: red")

    def reached(run_log):
        return run_log.seconds() > 0.3

    run_log = new_run_log(limits=Limits(seconds=0.3))
    play(Slow(), run_log=run_log)
    assert kinds(run_log) == ["started", "reply", "concluded"]


def test_trying_again_counts_anew_and_asks_for_nothing_that_is_there():
    away = MachineryError("away")
    backbone = Playback(PROGRAM.format(1), [away, away, away, away, CONCLUSION])
    lab = Lab()
    run_log = play(backbone, lab, tries=ATTEMPTS - 1)
    assert kinds(run_log)[-1] == "failed"
    run_log.append("resumed", Resumed(2, "owner"))
    play(backbone, lab, run_log, tries=1)
    before = ["started", "reply", "experiment", "result", *(["retrying"] * 3), "failed"]
    assert kinds(run_log) == [*before, "resumed", "retrying", "reply", "concluded"]
    assert [event.payload.attempt for event in run_log.events() if event.kind == "retrying"] == [1, 2, 3, 1]
    assert lab.ran == [1]
    assert backbone.asked == [1, 2, 2, 2, 2, 2]
    assert not any("away" in message.text for message in backbone.heard)


def test_a_provider_that_refuses_inside_an_experiment_leaves_no_result_and_the_program_runs_again():
    lab = Lab([BackboneRefused("No credit."), logged(40.0)])
    backbone = Playback(*programs(1), CONCLUSION)
    run_log = play(backbone, lab)
    assert kinds(run_log) == ["started", "reply", "experiment", "blocked"]
    run_log.append("resumed", Resumed(1, "owner"))
    play(backbone, lab, run_log)
    assert kinds(run_log)[4:] == ["resumed", "result", "reply", "concluded"]
    assert lab.ran == [1, 1]
    assert backbone.asked == [1, 2]


def test_what_breaks_before_the_start_is_counted_and_followed_up_too():
    run_log = RunLogInMemory()

    def broken():
        raise OSError("disk")

    for _ in range(ATTEMPTS - 1):
        with pytest.raises(MachineryError, match="disk"):
            attempt(run_log, 0, broken)
    assert attempt(run_log, 0, broken) is None
    assert kinds(run_log) == ["retrying", "retrying", "retrying", "failed"]


def test_a_worker_that_lost_the_run_records_nothing_more():
    run_log = new_run_log()
    with pytest.raises(LeaseLost):
        run_agent(run_log, Playback(*programs(1)), Lab(LeaseLost("held by another")), load)
    assert kinds(run_log) == ["started", "reply", "experiment"]


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
