"""What becomes of the agent's words: nothing of an answer is lost, and the agent is told how it was read."""

from __future__ import annotations

import pytest

from tests.support.playback import (
    CONCLUSION,
    PROGRAM,
    RED_BALLS,
    Lab,
    Playback,
    end,
    kinds,
    new_run_log,
    notes,
    play,
    programs,
)
from workers.record.events import Note
from workers.record.limits import Limits
from workers.record.replies import Conclusion

DESCRIPTION, LABEL = "[DESCRIPTION]: It responds to red balls.", "[LABEL]: red balls"
LAST = {"limits": Limits(rounds=1)}


def readings(run_log):
    return [event.payload.readings for event in run_log.events() if event.kind == "reply"]


# --- an answer that misses a part -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "missing", "then"), [(DESCRIPTION, "LABEL", LABEL), (LABEL, "DESCRIPTION", DESCRIPTION)]
)
def test_a_missing_part_is_asked_for_once_more_and_what_was_there_is_kept(first, missing, then):
    backbone = Playback(*programs(1), first, then)
    run_log = play(backbone)
    assert kinds(run_log)[-4:] == ["reply", "reminder", "reply", "concluded"]
    assert notes(run_log) == ["incomplete"]
    assert f"has no [{missing}]" in backbone.heard[-1].text
    assert "round 2 of 25: 23 are left" in backbone.heard[-1].text
    assert end(run_log).conclusion == RED_BALLS


@pytest.mark.parametrize("again", [DESCRIPTION, "Hm.", "I have no label to give."])
def test_it_is_asked_for_once_and_then_the_answer_stands_as_it_is(again):
    run_log = play(Playback(DESCRIPTION, again))
    assert kinds(run_log)[-1] == "concluded"
    assert end(run_log).conclusion == Conclusion("It responds to red balls.")


def test_saying_that_there_is_no_label_is_a_whole_answer():
    run_log = play(Playback("[DESCRIPTION]: It never responds.\n[LABEL]: none"))
    assert kinds(run_log) == ["started", "reply", "concluded"]


@pytest.mark.parametrize(
    ("task", "answer"),
    [
        ("bias", "[BIAS]: weaker at night\n[LABEL]: night"),
        ("spurious", "[REASONING]: sand alone gives 12\n[LABEL]: SPURIOUS"),
        ("free", "[DESCRIPTION]: yes"),
    ],
)
def test_each_task_wants_its_own_parts(task, answer):
    assert notes(play(Playback(answer), run_log=new_run_log(task=task))) == []
    if task != "free":
        other = "[DESCRIPTION]: it does" if task == "spurious" else "[LABEL]: night"
        assert notes(play(Playback(other, answer), run_log=new_run_log(task=task))) == ["incomplete"]


def test_an_agent_that_goes_on_experimenting_instead_is_let():
    lab = Lab()
    run_log = play(Playback(DESCRIPTION, PROGRAM.format(1), "[LABEL]: cones"), lab)
    assert lab.ran == [1]
    assert end(run_log).conclusion == Conclusion("", ("cones",))


# --- programs -------------------------------------------------------------------------------------

SCRIPT = 'images = tools.text2image(["a ball"])\ntools.display(*images)'


@pytest.mark.parametrize(
    ("reply", "program"),
    [
        (f"[CODE]:\n```python\n{SCRIPT}", SCRIPT),
        (f"[CODE]:\n{SCRIPT}\n\nThen I compare.", SCRIPT),
        (f"I look first.\n```python\n{SCRIPT}\n```\nNow I wait.", SCRIPT),
        (f"[CODE]:\n```python\nimport numpy as np\n```\n\n```python\n{SCRIPT}\n```", f"import numpy as np\n\n{SCRIPT}"),
        (f"**[CODE]:**\n```\n{SCRIPT}\n```\nExpected:\n```\nExperiment 1: ok\n```", SCRIPT),
        (f"<think>\n```python\nwrong = 1\n```\n</think>\n[CODE]:\n```python\n{SCRIPT}\n```", SCRIPT),
        (f"[CODE]:\n```python\n{SCRIPT}\n\n[LABEL]: balls", SCRIPT),
    ],
    ids=["no end", "no fence", "no tag", "two fences", "imagined output", "thought", "conclusion behind it"],
)
def test_no_round_is_lost_over_the_form_of_a_program(reply, program):
    lab = Lab()
    events = play(Playback(reply, CONCLUSION), lab).events()
    assert lab.ran == [1]
    assert next(event.payload.code for event in events if event.kind == "experiment").strip() == program


# --- final answer -----------------------------------------------------------------------------------


def test_final_answer_that_cannot_be_read_get_a_second_chance():
    unread = "I would say that [DESCRIPTION]: is red balls, of course."
    backbone = Playback(*programs(1), unread, CONCLUSION)
    run_log = play(backbone, run_log=new_run_log(**LAST))
    assert kinds(run_log)[-4:] == ["reply", "reminder", "reply", "limit_reached"]
    assert notes(run_log) == ["final_answer", "final_answer"]
    assert end(run_log).conclusion == RED_BALLS
    assert end(run_log).reason == "The limit of 1 rounds is reached: 1 rounds used."
    told = backbone.heard[-1].text
    assert "[DESCRIPTION] stood in the middle of a sentence" in told
    assert "no [DESCRIPTION] and [LABEL] that could be read" in told


def test_half_an_answer_in_the_final_answer_is_kept_whatever_follows():
    for then in ("Hm.", LABEL):
        run_log = play(Playback(*programs(1), DESCRIPTION, then), run_log=new_run_log(**LAST))
        labels = ("red balls",) if then == LABEL else ()
        assert end(run_log).conclusion == Conclusion("It responds to red balls.", labels)


def test_half_an_answer_in_the_round_of_the_limit_is_kept():
    run_log = play(Playback(DESCRIPTION, LABEL), run_log=new_run_log(**LAST))
    assert (notes(run_log), end(run_log).conclusion) == (["final_answer"], RED_BALLS)


def test_final_answer_on_one_line_and_labels_in_a_row_are_read_at_once():
    last = "Final answer: [DESCRIPTION]: It responds to red balls.\n[LABELS]: red balls"
    run_log = play(Playback(*programs(1), last), run_log=new_run_log(**LAST))
    assert kinds(run_log)[-2:] == ["reply", "limit_reached"]
    assert end(run_log).conclusion == RED_BALLS


# --- the agent is told ----------------------------------------------------------------------------


def test_the_agent_is_told_how_its_reply_was_read_before_it_sees_what_came_of_it():
    two = "[CODE]:\n```python\nimport math\n```\n```python\nprint(math.pi)\n```"
    backbone = Playback(two, CONCLUSION)
    run_log = play(backbone)
    assert readings(run_log)[0] == ("2 fences were run together, in order, as one program.",)
    told = backbone.heard[-1].text
    assert told.startswith("How your reply was read: 2 fences were run together")
    assert told.index("2 fences") < told.index("Experiment 1: ok")


def test_a_program_cut_short_is_not_run_and_the_agent_is_told_why_beside_the_form():
    lab, backbone = Lab(), Playback("[CODE]:\n```python\ntools.display(", CONCLUSION)
    run_log = play(backbone, lab)
    assert (lab.ran, notes(run_log)) == ([], ["format"])
    assert "no whole Python program" in backbone.heard[-1].text
    assert "This was round 1 of 25: 24 are left." in backbone.heard[-1].text


def test_a_conclusion_set_aside_for_a_note_is_called_that():
    run_log = new_run_log()

    class Interrupted(Playback):
        def reply(self, messages, load, emit, seed):
            if not self.asked:
                run_log.append("note", Note(0, "owner", "Look at the sand."))
            return super().reply(messages, load, emit, seed)

    backbone = Interrupted(CONCLUSION, CONCLUSION)
    play(backbone, run_log=run_log)
    assert notes(run_log) == ["set_aside"]
    told = backbone.heard[-1].text
    assert "was set aside" in told
    assert "Look at the sand." in told
    assert end(run_log).conclusion == RED_BALLS
