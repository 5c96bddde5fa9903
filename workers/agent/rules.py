"""Choose the next step of a round from the state of the run. Pure, so a killed run continues where it was.

- A reply with a program: the program runs first. If the reply also concludes, the agent is asked to conclude again.
- A reply with a conclusion alone ends the run. One with neither gets a reminder; the third in a row ends the run.
- A conclusion that misses a part is asked for once more; both replies together make one answer.
- A result gets a note to continue while no image measured in the run comes near the mean of the exemplars.
- A limit reached between rounds: one more reply is asked for, and a second one if that concludes nothing or only part.
  Then the run ends with what it has, unless a person has changed the limits meanwhile. The time limit has the same
  effect if it passes while no reply comes.
- A failure of our machinery is retried, three attempts in all for one step; then the run fails. If a provider stays
  away, the run waits: the backbone has retried often enough. A waiting run does nothing until a person retries it.
- A run that is paused, or waits for a person's reply, does nothing until a person resumes it. Failed and stopped runs
  can be resumed too.
- A label that concludes a description is tested while reflections are left. A label that fails goes back to the agent,
  which continues in ordinary rounds. So does the first one whose words cannot be tested; this costs no reflection.
  A label that passes, or that cannot be tested for another reason, concludes the run. So does a limit reached by then.
- A conclusion that states biases is tested on images drawn after it. Where there are too few, the agent is asked to
  draw some and to conclude again, twice at most.
- A note that the agent has not read yet keeps its conclusion from ending the run: it is asked once more.

This module only names the steps; `loop` takes them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from workers.agent.answers import format_tags
from workers.agent.confirming import ask_to_confirm
from workers.agent.instructions import choose_example, render, rounds_told
from workers.agent.run_state import RunState, list_own
from workers.record.events import Ended, ExperimentEnded, ExperimentStarted, Payload, Reminder, Replied
from workers.record.figures import format_activation
from workers.record.limits import Usage
from workers.record.replies import Conclusion
from workers.record.tasks import find_task

ATTEMPTS = 3
"""Attempts of a step before a failure ends the run."""

GRACE = 60.0
"""Grace period for the final answer after the time limit, in seconds."""

NEAR = 0.1
"""Share of the mean of the exemplars by which the best activation may lie below it and still count as near."""

REMINDERS = 3
"""Number of replies in a row without program or conclusion that ends the run."""


@dataclass(frozen=True)
class Ask:
    """Ask the backbone for the reply of this round."""

    round: int


@dataclass(frozen=True)
class RunProgram:
    """Run the program of an experiment whose start is recorded."""

    experiment: ExperimentStarted


@dataclass(frozen=True)
class Record:
    """Record an event that follows from the others."""

    kind: str
    payload: Payload


@dataclass(frozen=True)
class Grade:
    """Test the labels of a conclusion on images that the agent never saw."""

    round: int
    labels: tuple[str, ...]
    left: int
    """Reflections left after this one."""
    reworded: bool = False
    """True if a label was already sent back because its words could not be tested."""


Step = Ask | RunProgram | Record | Grade


def next_step(state: RunState, seconds: float) -> Step | None:
    """Return the next step; None if the run has ended or waits. `seconds` is the work on the run so far.

    Raises ValueError if there is no event "started".
    """
    if state.suspended:
        return None
    if state.attempts >= ATTEMPTS:
        words = (
            f"The same step failed {ATTEMPTS} times, the last time with: {state.trouble} "
            "Ask the person who operates this installation to look into it, then start the run again."
        )
        return Record("failed", Ended(words))
    if state.latest is None:
        return Ask(1)
    # Before the program: once the final answer was asked for, programs do not run.
    if state.final_requests:
        return _decide_after_final_answer(state, seconds)
    reply = state.reply
    if reply.code is not None:
        if state.since.begun is None:
            return Record("experiment", ExperimentStarted(reply.round, state.experiments + 1, reply.code))
        if state.since.result is None:
            return RunProgram(state.since.begun)
        return _decide_between_rounds(state, seconds)
    return _decide_after_reading(state, seconds)


def _decide_after_reading(state: RunState, seconds: float) -> Step:
    """Return what follows a reply without a program: the end, a test of its label, or another reply."""
    reply, answer, grade = state.reply, state.answer, state.since.grade
    # Asked once for the missing parts, the agent has said what it can.
    whole = not answer.lacks(state.start) or state.asked_for_more
    exceeded = bool(state.explain_exceeded(seconds))
    # Sent back, or asked to test more: an ordinary round follows.
    if not exceeded and ((grade and grade.goes_back) or "confirm" in state.since.reasons):
        return Ask(reply.round + 1)
    # A note that the agent has not read could change its conclusion.
    if answer.conclusion is not None and whole and not state.has_unread_note:
        if not grade and (due := _grade_due(state, answer.conclusion, seconds)):
            return due
        # After the grade: a label that is sent back leads to another conclusion, whose biases count instead.
        doubt = ask_to_confirm(state, answer.conclusion)
        if doubt and not exceeded:
            return Record("reminder", doubt)
        return Record("concluded", Ended(conclusion=answer.conclusion))
    # Three in a row: the agent does not understand the form.
    if answer.conclusion is None and state.empty_replies >= REMINDERS:
        return Record("failed", Ended(_SILENT_AGENT))
    return _decide_between_rounds(state, seconds)


def _grade_due(state: RunState, conclusion: Conclusion, seconds: float) -> Grade | None:
    """Return the test that a conclusion has to pass; None without labels or reflections, or if a limit is reached."""
    task = find_task(state.start.task)
    # "none" says that there is no label to test.
    labels = tuple(each for each in conclusion.labels if each.strip() and each.strip().casefold() != "none")
    # A label whose words could not be tested costs nothing.
    left = state.start.reflections - state.grades + state.unreadable_grades
    if task.gives_verdict or task.is_open or not labels or left <= 0:
        return None
    if state.explain_exceeded(seconds):
        return None
    return Grade(state.reply.round, labels, left - 1, reworded=state.unreadable_grades > 0)


def _decide_after_final_answer(state: RunState, seconds: float) -> Step:
    """End the run; after the first reply that concludes nothing or only part, ask once more."""
    reply, answer = state.reply, state.answer
    missing = answer.lacks(state.start)
    if missing and len(state.final_requests) == 1:
        if "final_answer" in state.since.reasons:
            return Ask(reply.round + 1)
        again = render("final_answer_again", missing=format_tags(missing))
        return Record("reminder", Reminder(reply.round, "final_answer", again))
    # The limit that the agent was told of, not what the run has used since
    reason = state.final_requests[0].explain_exceeded(seconds) or "A limit of the run is reached."
    return Record("limit_reached", Ended(reason, answer.conclusion or Conclusion()))


def _decide_between_rounds(state: RunState, seconds: float) -> Step:
    """Return the note that is due, if it is not recorded yet; then the next reply."""
    reply, since = state.reply, state.since
    if "final_answer" in since.reasons:
        return Ask(reply.round + 1)
    if reached := state.explain_exceeded(seconds):
        return Record("reminder", Reminder(reply.round, "final_answer", render("final_answer", reached=reached)))
    # A reply without a program gets another note than a result.
    note = _reading_note(state) if since.result is None else _choose_note(reply, since.result, state.best)
    # Recorded already: each note is given once.
    if note is None or note.reason in since.reasons:
        return Ask(reply.round + 1)
    return Record("reminder", note)


def _reading_note(state: RunState) -> Reminder:
    """Return the note on a reply that ran nothing and did not end the run."""
    reply, answer = state.reply, state.answer
    rounds = rounds_told(reply.round, state.limits)
    if answer.conclusion is None:
        example = choose_example(state.start.reference, "dataset_exemplars", "text2image")
        return Reminder(reply.round, "format", render("format", rounds=rounds, example=example))
    if state.has_unread_note:
        return Reminder(reply.round, "set_aside", render("set_aside", rounds=rounds))
    missing = format_tags(answer.lacks(state.start))
    return Reminder(reply.round, "incomplete", render("incomplete", missing=missing, rounds=rounds))


def _choose_note(reply: Replied, result: ExperimentEnded, reached: float | None) -> Reminder | None:
    """Return the note on a result, if one is due."""
    # At most one note: two would contradict each other.
    if reply.conclusion is not None:
        return Reminder(reply.round, "conclude_again", render("conclude_again", number=str(result.number)))
    # Older records have neither `own` nor `measured`; their logged images tell.
    is_new = result.own or (not result.measured and bool(list_own(result)))
    mark = result.exemplar_mean
    if is_new and reached is not None and mark is not None and reached < mark - NEAR * abs(mark):
        words = render("continue", best=format_activation(reached), exemplar_mean=format_activation(mark))
        return Reminder(reply.round, "continue", words)
    return None


def time_left(state: RunState, seconds: float) -> float:
    """Return the seconds in which the next reply has to begin; inf without a time limit.

    `seconds` is the work on the run so far. A final answer, and a reply that a person requested after the limit, get
    `GRACE` more; in a short run less.
    """
    limit = state.limits.seconds
    if limit is None:
        return math.inf
    late = seconds >= limit or state.awaits_final_answer
    return min(GRACE, limit) if late else limit - seconds


def out_of_time(state: RunState, seconds: float, spent: Usage) -> Record:
    """Return what follows if the time is up before a reply came: ask for the final answer; without one, end the run."""
    reached = state.explain_exceeded(seconds) or "The limit of time is reached."
    if state.awaits_final_answer:
        # What was concluded before the request for the rest counts, unless the agent experimented since
        half = None if state.since.begun else state.answer.conclusion
        words = f"{reached} No final answer came: the agent was silent."
        return Record("limit_reached", Ended(words, half or Conclusion(), usage=spent))
    text = render("final_answer", reached=reached)
    return Record("reminder", Reminder(state.last_round, "final_answer", text, spent))


_SILENT_AGENT = (
    f"The agent gave neither a program nor a conclusion in {REMINDERS} replies in a row. "
    "Try another agent, or ask the question differently."
)
