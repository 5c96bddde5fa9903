"""A label that fails its check goes back to the agent: the rules, without a laboratory."""

from __future__ import annotations

from tests.support.playback import CONCLUSION, RED_BALLS, Lab, Playback, end, kinds, load, new_run_log, programs
from tests.support.run_log import fold
from workers.agent.loop import run_agent
from workers.agent.rules import Ask, Grade, Record, next_step
from workers.record.events import Graded, Note
from workers.record.limits import Limits

BETTER = "[DESCRIPTION]: It responds to red balls and to cars.\n[LABEL]: red balls\n[LABEL 2]: cars"


class Grades:
    """A grader that gives written answers: passed, failed, or why it could not be tested."""

    def __init__(self, *answers: bool | str) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, ...]] = []

    def __call__(self, step: Grade) -> Graded:
        self.asked.append(step.labels)
        said = self.answers.pop(0)
        reason = said if isinstance(said, str) else ""
        return Graded(step.round, " OR ".join(step.labels), passed=said is True, left=step.left, reason=reason)


def play(backbone, grade, **changes):
    run_log = new_run_log(**changes)
    while run_agent(run_log, backbone, Lab(), load, grade):
        pass
    return run_log


def test_a_label_that_fails_goes_back_and_the_next_one_concludes():
    grade = Grades(False, True)
    run_log = play(Playback(CONCLUSION, *programs(1), BETTER), grade, reflections=3)
    assert kinds(run_log)[:3] == ["started", "reply", "graded"]
    assert kinds(run_log)[-4:] == ["result", "reply", "graded", "concluded"]
    assert len(grade.asked) == 2
    assert grade.asked[0] == ("red balls",)
    assert "cars" in " ".join(end(run_log).conclusion.labels)


def test_without_reflections_nothing_is_tested():
    grade = Grades()
    run_log = play(Playback(CONCLUSION), grade)
    assert kinds(run_log) == ["started", "reply", "concluded"]


def test_once_none_are_left_the_run_concludes_untested():
    run_log = play(Playback(CONCLUSION, CONCLUSION, CONCLUSION), Grades(False, False), reflections=2)
    assert kinds(run_log) == ["started", "reply", "graded", "reply", "graded", "reply", "concluded"]
    assert [each.payload.left for each in run_log.events() if each.kind == "graded"] == [1, 0]


def test_what_cannot_be_tested_concludes_the_run():
    run_log = play(Playback(CONCLUSION), Grades("The provider refused."), reflections=2)
    assert kinds(run_log) == ["started", "reply", "graded", "concluded"]
    assert end(run_log).conclusion == RED_BALLS


def test_words_that_cannot_be_tested_go_back_once_and_cost_no_reflection():
    asked = []

    def grade(step: Grade) -> Graded:
        asked.append((step.left, step.reworded))
        direction = "" if step.reworded else "not readable"
        return Graded(step.round, "odd", left=step.left, reason="It is not understood.", direction=direction)

    run_log = play(Playback(CONCLUSION, CONCLUSION), grade, reflections=1)
    assert kinds(run_log) == ["started", "reply", "graded", "reply", "graded", "concluded"]
    assert asked == [(0, False), (0, True)]


def test_only_descriptions_with_labels_are_tested():
    none = "[DESCRIPTION]: Nothing drives it.\n[LABEL]: none"
    assert "graded" not in kinds(play(Playback(none), Grades(), reflections=2))
    assert "graded" not in kinds(play(Playback(CONCLUSION), Grades(), reflections=2, task="free"))


def test_a_limit_that_is_reached_concludes_instead_of_going_back():
    run_log = play(Playback(CONCLUSION), Grades(), reflections=2, limits=Limits(rounds=1))
    assert kinds(run_log) == ["started", "reply", "concluded"]


def test_a_worker_killed_after_the_test_does_not_test_again():
    run_log = play(Playback(CONCLUSION, CONCLUSION), Grades(False), reflections=1)
    before = run_log.events()[:3]
    assert next_step(fold(before[:2]), 0.0) == Grade(1, ("red balls",), 0)
    assert next_step(fold(before), 0.0) == Ask(2)
    after = next_step(fold(run_log.events()[:4]), 0.0)
    assert isinstance(after, Record)
    assert after.kind == "concluded"


def test_a_note_made_during_the_test_is_heard_before_the_end():
    run_log = new_run_log(reflections=1)
    backbone = Playback(CONCLUSION, CONCLUSION)

    def grade(step: Grade) -> Graded:
        run_log.append("note", Note(1, "Ada", "Look at cars."))
        return Graded(step.round, "red balls", passed=True)

    while run_agent(run_log, backbone, Lab(), load, grade):
        pass
    assert kinds(run_log) == ["started", "reply", "note", "graded", "reminder", "reply", "concluded"]
    assert "Look at cars." in " ".join(each.text for each in backbone.heard)
