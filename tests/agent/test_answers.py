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
    new_notebook,
    notes,
    play,
    programs,
)
from workers.record.events import Conclusion, Limits, Remarked

DESCRIPTION, LABEL = "[DESCRIPTION]: It responds to red balls.", "[LABEL]: red balls"
LAST = {"limits": Limits(rounds=1)}


def readings(notebook):
    return [event.payload.readings for event in notebook.events() if event.kind == "reply"]


# --- an answer that misses a part -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "missing", "then"), [(DESCRIPTION, "LABEL", LABEL), (LABEL, "DESCRIPTION", DESCRIPTION)]
)
def test_a_missing_part_is_asked_for_once_more_and_what_was_there_is_kept(first, missing, then):
    backbone = Playback(*programs(1), first, then)
    notebook = play(backbone)
    assert kinds(notebook)[-4:] == ["reply", "note", "reply", "concluded"]
    assert notes(notebook) == ["incomplete"]
    assert f"has no [{missing}]" in backbone.heard[-1].text
    assert "round 2 of 25: 23 are left" in backbone.heard[-1].text
    assert end(notebook).conclusion == RED_BALLS


@pytest.mark.parametrize("again", [DESCRIPTION, "Hm.", "I have no label to give."])
def test_it_is_asked_for_once_and_then_the_answer_stands_as_it_is(again):
    notebook = play(Playback(DESCRIPTION, again))
    assert kinds(notebook)[-1] == "concluded"
    assert end(notebook).conclusion == Conclusion("It responds to red balls.")


def test_saying_that_there_is_no_label_is_a_whole_answer():
    notebook = play(Playback("[DESCRIPTION]: It never responds.\n[LABEL]: none"))
    assert kinds(notebook) == ["started", "reply", "concluded"]


@pytest.mark.parametrize(
    ("task", "answer"),
    [
        ("bias", "[BIAS]: weaker at night\n[LABEL]: night"),
        ("spurious", "[REASONING]: sand alone gives 12\n[LABEL]: SPURIOUS"),
        ("free", "[DESCRIPTION]: yes"),
    ],
)
def test_each_task_wants_its_own_parts(task, answer):
    assert notes(play(Playback(answer), notebook=new_notebook(task=task))) == []
    if task != "free":
        other = "[DESCRIPTION]: it does" if task == "spurious" else "[LABEL]: night"
        assert notes(play(Playback(other, answer), notebook=new_notebook(task=task))) == ["incomplete"]


def test_an_agent_that_goes_on_experimenting_instead_is_let():
    lab = Lab()
    notebook = play(Playback(DESCRIPTION, PROGRAM.format(1), "[LABEL]: cones"), lab)
    assert lab.ran == [1]
    assert end(notebook).conclusion == Conclusion("", ("cones",))


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


# --- last words -----------------------------------------------------------------------------------


def test_last_words_that_cannot_be_read_get_a_second_chance():
    unread = "I would say that [DESCRIPTION]: is red balls, of course."
    backbone = Playback(*programs(1), unread, CONCLUSION)
    notebook = play(backbone, notebook=new_notebook(**LAST))
    assert kinds(notebook)[-4:] == ["reply", "note", "reply", "limit_reached"]
    assert notes(notebook) == ["last_words", "last_words"]
    assert end(notebook).conclusion == RED_BALLS
    assert end(notebook).reason == "The limit of 1 rounds is reached: 1 rounds used."
    told = backbone.heard[-1].text
    assert "[DESCRIPTION] stood in the middle of a sentence" in told
    assert "no [DESCRIPTION] and [LABEL] that could be read" in told


def test_half_an_answer_in_the_last_words_is_kept_whatever_follows():
    for then in ("Hm.", LABEL):
        notebook = play(Playback(*programs(1), DESCRIPTION, then), notebook=new_notebook(**LAST))
        labels = ("red balls",) if then == LABEL else ()
        assert end(notebook).conclusion == Conclusion("It responds to red balls.", labels)


def test_half_an_answer_in_the_round_of_the_limit_is_kept():
    notebook = play(Playback(DESCRIPTION, LABEL), notebook=new_notebook(**LAST))
    assert (notes(notebook), end(notebook).conclusion) == (["last_words"], RED_BALLS)


def test_last_words_on_one_line_and_labels_in_a_row_are_read_at_once():
    last = "Final answer: [DESCRIPTION]: It responds to red balls.\n[LABELS]: red balls"
    notebook = play(Playback(*programs(1), last), notebook=new_notebook(**LAST))
    assert kinds(notebook)[-2:] == ["reply", "limit_reached"]
    assert end(notebook).conclusion == RED_BALLS


# --- the agent is told ----------------------------------------------------------------------------


def test_the_agent_is_told_how_its_reply_was_read_before_it_sees_what_came_of_it():
    two = "[CODE]:\n```python\nimport math\n```\n```python\nprint(math.pi)\n```"
    backbone = Playback(two, CONCLUSION)
    notebook = play(backbone)
    assert readings(notebook)[0] == ("2 fences were run together, in order, as one program.",)
    told = backbone.heard[-1].text
    assert told.startswith("How your reply was read: 2 fences were run together")
    assert told.index("2 fences") < told.index("Experiment 1: ok")


def test_a_program_cut_short_is_not_run_and_the_agent_is_told_why_beside_the_form():
    lab, backbone = Lab(), Playback("[CODE]:\n```python\ntools.display(", CONCLUSION)
    notebook = play(backbone, lab)
    assert (lab.ran, notes(notebook)) == ([], ["reminder"])
    assert "no whole Python program" in backbone.heard[-1].text
    assert "This was round 1 of 25: 24 are left." in backbone.heard[-1].text


def test_a_conclusion_set_aside_for_a_remark_is_called_that():
    notebook = new_notebook()

    class Interrupted(Playback):
        def reply(self, messages, load, emit, seed):
            if not self.asked:
                notebook.append("remark", Remarked(0, "owner", "Look at the sand."))
            return super().reply(messages, load, emit, seed)

    backbone = Interrupted(CONCLUSION, CONCLUSION)
    play(backbone, notebook=notebook)
    assert notes(notebook) == ["set_aside"]
    told = backbone.heard[-1].text
    assert "was set aside" in told
    assert "Look at the sand." in told
    assert end(notebook).conclusion == RED_BALLS
