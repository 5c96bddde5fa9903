"""The rules of a round, one adversarial test for each; and that a run killed anywhere goes on as if it had not been."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from PIL import Image

from workers.agent.events import Conclusion, Limits
from workers.agent.loop import Outcome, play_round, start
from workers.agent.memory import NotebookInMemory
from workers.agent.rules import ATTEMPTS, Ask, next_step
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
from workers.protocols import ExperimentResult, LogEntry, Observation, Reply, SystemSpec, Usage

UNIT = SystemSpec("unit", "toybox", "layer4", 7)
PROGRAM = "[HYPOTHESIS LIST]:\nHypothesis_1: red balls\n\n[CODE]:\n```python\nprogram {}\n```"
CONCLUSION = "[DESCRIPTION]: It responds to red balls.\n[LABEL]: red balls"
RED_BALLS = Conclusion("It responds to red balls.", ("red balls",))


class Playback:
    """A backbone that gives written replies, by their place in the conversation. An exception is raised instead."""

    label = "playback"

    def __init__(self, *replies, usage=Usage()):  # noqa: B008  frozen
        self.replies = list(replies)
        self.usage = usage
        self.asked = []
        self.heard = []

    def reply(self, messages, load, emit, seed):
        place = sum(message.role == "assistant" for message in messages)
        self.asked.append(place + 1)
        self.heard = messages
        text = self.replies[place]
        if isinstance(text, list):  # what it gives when it is asked again and again
            text = text.pop(0)
        if isinstance(text, Exception):
            raise text
        for word in re.findall(r"\S+\s*", text):
            emit(word)
        return Reply(text, self.usage)


class Lab:
    """A runner whose programs are `program n`: the outcomes, in order of experiments."""

    def __init__(self, *outcomes):
        self.outcomes = outcomes
        self.ran = []
        self.states = []

    def __call__(self, code, number, state):
        self.ran.append(number)
        self.states.append(state)
        outcome = self.outcomes[(number - 1) % len(self.outcomes)] if self.outcomes else logged(40.0)
        if isinstance(outcome, list):
            outcome = outcome.pop(0)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


def logged(*activations, threshold=None, **result):
    images = tuple(Observation(f"image {n}", value, f"key{n}") for n, value in enumerate(activations))
    return Outcome(ExperimentResult(**{"status": "ok"} | result), (LogEntry(images),) if images else (), threshold)


def begin(**changes):
    given: dict[str, Any] = {"backbone": "playback", "limits": Limits(), "seed": 5, "reference": "API", "versions": {}}
    task = changes.pop("task", "describe")
    return start("What drives it?", task, UNIT, **given | changes)


def new_notebook(**changes):
    notebook = NotebookInMemory()
    notebook.append("started", begin(**changes))
    return notebook


def play(backbone, lab=None, notebook=None, tries=0):
    """Play a run to its end; return its notebook. Trouble is tried again `tries` times."""
    notebook = notebook or new_notebook()
    lab = lab or Lab()
    while True:
        try:
            if not play_round(notebook, backbone, lab, load):
                return notebook
        except MachineryError:
            if not tries:
                raise
            tries -= 1


def load(key):
    return Image.new("RGB", (8, 8))


def kinds(notebook):
    return [event.kind for event in notebook.events()]


def notes(notebook):
    return [event.payload.reason for event in notebook.events() if event.kind == "note"]


def end(notebook):
    return notebook.events()[-1].payload


def programs(count):
    return [PROGRAM.format(n) for n in range(1, count + 1)]


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


# --- the rules of a round -------------------------------------------------------------------------


def test_a_reply_with_a_program_and_a_conclusion_runs_the_program_first_and_concludes_again():
    hasty = PROGRAM.format(1) + "\n[DESCRIPTION]: hasty\n[LABEL]: hasty"
    backbone = Playback(hasty, CONCLUSION)
    lab = Lab()
    notebook = play(backbone, lab)
    assert lab.ran == [1]
    assert kinds(notebook) == ["started", "reply", "experiment", "result", "note", "reply", "concluded"]
    assert notes(notebook) == ["conclude_again"]
    assert end(notebook).conclusion == RED_BALLS
    assert "experiment 1" in backbone.heard[-1].text


def test_a_reply_with_neither_gets_a_reminder_of_the_form():
    backbone = Playback("Let me think.", CONCLUSION)
    notebook = play(backbone)
    assert kinds(notebook) == ["started", "reply", "note", "reply", "concluded"]
    assert "[CODE]:" in backbone.heard[-1].text


def test_three_replies_in_a_row_with_neither_end_the_run_with_a_reason():
    backbone = Playback("Hm.", "Hm.", "Hm.", CONCLUSION)
    notebook = play(backbone)
    assert kinds(notebook) == ["started", "reply", "note", "reply", "note", "reply", "failed"]
    assert "3 replies in a row" in end(notebook).reason
    assert end(notebook).conclusion == Conclusion()


def test_a_program_between_them_starts_the_count_anew():
    notebook = play(Playback("Hm.", "Hm.", PROGRAM.format(1), "Hm.", "Hm.", CONCLUSION))
    assert kinds(notebook)[-1] == "concluded"
    assert notes(notebook) == ["reminder"] * 4


def test_a_weak_result_gets_a_note_to_go_on_with_both_figures():
    backbone = Playback(*programs(1), CONCLUSION)
    notebook = play(backbone, Lab(logged(11.5, 4.0, threshold=28.9)))
    assert notes(notebook) == ["continue"]
    assert "11.50" in backbone.heard[-1].text
    assert "28.90" in backbone.heard[-1].text


@pytest.mark.parametrize(
    "outcome",
    [
        logged(11.5, 28.9, threshold=28.9),
        logged(11.5),
        logged(threshold=28.9),
        logged(5.0, 5.0, threshold=5.0000001),
        logged(-1.0, threshold=-2.0),
    ],
    ids=["reaches it", "no threshold", "no images", "alike but for rounding", "negative"],
)
def test_other_results_get_no_such_note(outcome):
    assert notes(play(Playback(*programs(1), CONCLUSION), Lab(outcome))) == []


def test_the_threshold_is_known_from_the_round_that_looked_at_the_exemplars():
    notebook = play(Playback(*programs(3), CONCLUSION), Lab(logged(40.0, threshold=28.9), logged(7.0), logged(30.0)))
    assert [event.payload.threshold for event in notebook.events() if event.kind == "result"] == [28.9] * 3
    assert notes(notebook) == ["continue"]


def test_an_agent_that_is_to_conclude_again_is_not_told_to_go_on_as_well():
    hasty = PROGRAM.format(1) + "\n[LABEL]: hasty"
    assert notes(play(Playback(hasty, CONCLUSION), Lab(logged(1.0, threshold=28.9)))) == ["conclude_again"]


# --- limits ---------------------------------------------------------------------------------------


def test_a_limit_gives_one_more_reply_and_its_conclusion_is_kept():
    backbone = Playback(*programs(2), CONCLUSION)
    notebook = play(backbone, notebook=new_notebook(limits=Limits(rounds=2)))
    assert kinds(notebook)[-4:] == ["result", "note", "reply", "limit_reached"]
    assert notes(notebook) == ["last_words"]
    assert end(notebook).conclusion == RED_BALLS
    assert end(notebook).reason == "The limit of 2 rounds is reached: 2 rounds used."
    assert end(notebook).reason in backbone.heard[-1].text


@pytest.mark.parametrize("last", ["Hm.", PROGRAM.format(2), ""])
def test_the_run_ends_whatever_the_last_reply_holds_and_no_program_of_it_runs(last):
    lab = Lab()
    notebook = play(Playback(*programs(1), last), lab, new_notebook(limits=Limits(rounds=1)))
    assert kinds(notebook)[-2:] == ["reply", "limit_reached"]
    assert end(notebook).conclusion == Conclusion()
    assert lab.ran == [1]


def test_a_conclusion_beside_a_program_counts_in_the_last_reply():
    last = PROGRAM.format(2) + "\n" + CONCLUSION
    notebook = play(Playback(*programs(1), last), Lab(), new_notebook(limits=Limits(rounds=1)))
    assert end(notebook).conclusion == RED_BALLS


def test_a_conclusion_in_the_very_round_that_reaches_the_limit_is_no_limit_reached():
    notebook = play(Playback(CONCLUSION), notebook=new_notebook(limits=Limits(rounds=1)))
    assert kinds(notebook)[-1] == "concluded"


@pytest.mark.parametrize("limits", [Limits(tokens=200), Limits(cost=0.02)], ids=["tokens", "cost"])
def test_tokens_and_cost_are_counted_over_all_replies(limits):
    backbone = Playback(*programs(2), CONCLUSION, usage=Usage(90, 10, 0.01))
    notebook = play(backbone, notebook=new_notebook(limits=limits))
    assert backbone.asked == [1, 2, 3]
    assert kinds(notebook)[-1] == "limit_reached"


def test_seconds_are_counted_by_the_notebook():
    class Slow(NotebookInMemory):
        def seconds(self):
            return 10.0 * len(self.events())

    notebook = Slow()
    notebook.append("started", begin(limits=Limits(seconds=35)))
    play(Playback(*programs(1), CONCLUSION), notebook=notebook)
    assert kinds(notebook)[-1] == "limit_reached"
    assert "35 seconds" in end(notebook).reason


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


# --- killed anywhere ------------------------------------------------------------------------------

STORY = [
    PROGRAM.format(1),
    "Hm.",
    [BackboneUnavailable("dead"), BackboneUnavailable("dead"), PROGRAM.format(2) + "\n[LABEL]: hasty"],
    PROGRAM.format(3),
    CONCLUSION,
]
RESULTS = (logged(40.0, threshold=28.9), logged(3.0), logged(9.0))


def without_times(events):
    return [
        replace(event, payload=replace(event.payload, seconds=0.0)) if event.kind == "reply" else event
        for event in events
    ]


def whole_run(limits):
    story = [list(reply) if isinstance(reply, list) else reply for reply in STORY]
    return play(Playback(*story), Lab(*RESULTS), new_notebook(limits=limits), tries=2).events()


@pytest.mark.parametrize(("rounds", "expected"), [(25, "concluded"), (4, "limit_reached"), (2, "limit_reached")])
def test_a_run_killed_after_any_step_ends_with_the_same_events(rounds, expected):
    whole = whole_run(Limits(rounds=rounds))
    assert whole[-1].kind == expected
    for length in range(1, len(whole)):
        prefix = whole[:length]
        replies = sum(event.kind == "reply" for event in prefix)
        results = sum(event.kind == "result" for event in prefix)
        troubles = sum(event.kind == "trouble" for event in prefix)
        story = [reply[troubles:] if isinstance(reply, list) else reply for reply in STORY]
        backbone, lab = Playback(*story), Lab(*RESULTS)
        events = play(backbone, lab, NotebookInMemory(prefix), tries=2).events()
        assert without_times(events) == without_times(whole)
        assert all(place > replies for place in backbone.asked)
        assert all(number > results for number in lab.ran)


def test_a_worker_killed_in_mid_experiment_leaves_a_run_that_runs_it_again_under_its_number():
    notebook = new_notebook()
    with pytest.raises(KeyboardInterrupt):
        play(Playback(*programs(1)), Lab(KeyboardInterrupt()), notebook)
    assert kinds(notebook) == ["started", "reply", "experiment"]
    lab = Lab()
    play(Playback(*programs(1), CONCLUSION), lab, notebook)
    assert kinds(notebook) == ["started", "reply", "experiment", "result", "reply", "concluded"]
    assert lab.ran == [1]


def test_the_next_step_depends_on_the_events_alone():
    events = whole_run(Limits())
    for length in range(1, len(events)):
        assert next_step(events[:length], 0.0) == next_step(list(events[:length]), 0.0)
    assert next_step(events, 0.0) is None
    assert next_step(events[:1], 0.0) == Ask(1)


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
