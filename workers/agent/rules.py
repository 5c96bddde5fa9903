"""The rules of a round: what the events so far leave to do. Pure, so a killed run continues where it was.

- A reply with a program: the program runs first. If it held a conclusion too, the agent is asked to conclude again.
- A reply with a conclusion alone ends the run; one with neither gets a reminder, the third in a row ends the run.
- A conclusion that misses a part is asked for once more; what came before and after make one answer.
- A result gets a note to go on while no image that the run measured comes near the mean of the exemplars.
- A limit reached between rounds: one more reply is asked for, and a second one if that concludes nothing or half; then
  the run ends whatever it holds, unless a person has changed the limits meanwhile. Time that is up while no reply comes
  has the same effect.
- Trouble with our machinery is tried again, three times in all for one step; then the run fails. A provider that stays
  away has the run wait: the backbone has asked it often enough. A run that waits does nothing until a person has it try
  again.
- A run that is paused, or waits for a person's reply, does nothing until a person has it go on; one that failed or was
  stopped may go on too.
- A label that concludes a description is tested while reflections are left. One that fails goes back to the agent,
  which goes on in ordinary rounds. So does the first one whose words cannot be tested, which costs no reflection. One
  that passes, or that cannot be tested otherwise, concludes the run. So does a limit that is reached by then.
- A conclusion that states biases is tested on images that were drawn after them: where there are too few, the agent is
  asked to draw some and to conclude again, twice at most.
- A note that the agent has not heard yet keeps its conclusion from ending the run: it is asked once more.

It does nothing itself: `loop` takes the steps that it names.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from workers.agent.answers import answer_of, format_tags, was_asked_for_more
from workers.agent.confirming import ask_to_confirm, was_asked_to_confirm
from workers.agent.instructions import choose_example, render, rounds_told
from workers.record.events import (
    Ended,
    Event,
    ExperimentEnded,
    ExperimentStarted,
    Graded,
    LimitsChanged,
    Note,
    Payload,
    Reminder,
    Replied,
    Resumed,
    Retrying,
    Started,
    kind_of,
)
from workers.record.figures import format_activation
from workers.record.limits import Limits, Usage, explain_exceeded
from workers.record.replies import Conclusion
from workers.record.tasks import find_task

ATTEMPTS = 3
"""How often a step is tried before trouble ends the run."""

GRACE = 60.0
"""Seconds that final answer may take to begin, once the time is up."""

NEAR = 0.1
"""By how much of the mean of the exemplars the best activation may lie below it, and still be near."""

REMINDERS = 3
"""How many replies in a row may hold neither a program nor a conclusion; the last of them ends the run."""


@dataclass(frozen=True)
class Ask:
    """Ask the backbone for the reply of this round."""

    round: int


@dataclass(frozen=True)
class Run:
    """Run the program of an experiment whose start is recorded."""

    experiment: ExperimentStarted


@dataclass(frozen=True)
class Record:
    """Write down an event that follows from the others."""

    kind: str
    payload: Payload


@dataclass(frozen=True)
class Grade:
    """Have the labels of a conclusion tested on images that the agent never saw."""

    round: int
    labels: tuple[str, ...]
    left: int
    """Reflections that are left once this one is used."""
    reworded: bool = False
    """Whether a label came back already because its words could not be tested."""


Step = Ask | Run | Record | Grade


def next_step(events: Sequence[Event], seconds: float) -> Step | None:
    """What is to do next, None if the run has ended or waits. `seconds` is the work on the run so far.

    Raises ValueError if there is no event "started".
    """
    if _stands_still(events):
        return None
    if attempts(events) >= ATTEMPTS:
        trouble = next(event.payload for event in reversed(events) if isinstance(event.payload, Retrying))
        words = (
            f"The same step failed {ATTEMPTS} times, the last time with: {trouble.what} "
            "Ask the person who operates this installation to look into it, then start the run again."
        )
        return Record("failed", Ended(words))
    latest = max((place for place, event in enumerate(events) if event.kind == "reply"), default=None)
    if latest is None:
        return Ask(1)
    reply = _reply_at(events, latest)
    if notes := _final_answer(events, latest):
        return _after_final_answer(events, latest, notes, seconds)
    if reply.code is not None:
        since = [event.payload for event in events[latest + 1 :]]
        begun = next((payload for payload in since if isinstance(payload, ExperimentStarted)), None)
        if begun is None:
            number = 1 + sum(event.kind == "experiment" for event in events)
            return Record("experiment", ExperimentStarted(reply.round, number, reply.code))
        if not any(isinstance(payload, ExperimentEnded) for payload in since):
            return Run(begun)
        return _between_rounds(events, latest, seconds)
    return _after_reading(events, latest, seconds)


def _after_reading(events: Sequence[Event], latest: int, seconds: float) -> Step:
    """What follows a reply that holds no program: the end, a test of its label, or another reply."""
    reply = _reply_at(events, latest)
    answer = answer_of(events, latest)
    whole = not answer.lacks(find_start(events).task) or was_asked_for_more(events[:latest])
    grade = _graded_since(events, latest)
    exceeded = bool(explain_exceeded(limits(events), events, seconds))
    if not exceeded and ((grade and grade.goes_back) or was_asked_to_confirm(events[latest:])):
        return Ask(reply.round + 1)
    if answer.conclusion is not None and whole and not _has_unread_note(events, latest):
        if not grade and (due := _grade_due(events, reply.round, answer.conclusion, seconds)):
            return due
        doubt = ask_to_confirm(events, reply, answer.conclusion, limits(events), find_start(events))
        if doubt and not exceeded:
            return Record("reminder", doubt)
        return Record("concluded", Ended(conclusion=answer.conclusion))
    if answer.conclusion is None and _empty_replies(events) >= REMINDERS:
        return Record("failed", Ended(_SILENT_AGENT))
    return _between_rounds(events, latest, seconds)


def _graded_since(events: Sequence[Event], latest: int) -> Graded | None:
    """The grade of the reply at place `latest`, once it is there."""
    return next((each.payload for each in events[latest + 1 :] if isinstance(each.payload, Graded)), None)


def _grade_due(events: Sequence[Event], number: int, conclusion: Conclusion, seconds: float) -> Grade | None:
    """The test that a conclusion has to stand; None without labels, reflections, or anything left of the limits."""
    start = find_start(events)
    task = find_task(start.task)
    labels = tuple(each for each in conclusion.labels if each.strip() and each.strip().casefold() != "none")
    grades = [event.payload for event in events if isinstance(event.payload, Graded)]
    unread = sum(each.direction == "not readable" for each in grades)
    left = start.reflections - len(grades) + unread
    if task.gives_verdict or task.is_open or not labels or left <= 0:
        return None
    if explain_exceeded(limits(events), events, seconds):
        return None
    return Grade(number, labels, left - 1, reworded=unread > 0)


def _stands_still(events: Sequence[Event]) -> bool:
    """Whether the run has ended, is paused or waits, and no person has had it go on since."""
    for event in reversed(events):
        if isinstance(event.payload, Resumed):
            return False
        if kind_of(event.kind).ends or kind_of(event.kind).stills:
            return True
    return False


def attempts(events: Sequence[Event]) -> int:
    """How often the step to do next has failed already. What people do meanwhile changes nothing, but for going on."""
    count = 0
    for event in reversed(events):
        if isinstance(event.payload, Retrying):
            count += 1
        elif not isinstance(event.payload, Note | LimitsChanged):
            break
    return count


def limits(events: Sequence[Event]) -> Limits:
    """The limits that hold: the latest that a person set, else those the run started with."""
    latest = next((event.payload for event in reversed(events) if isinstance(event.payload, LimitsChanged)), None)
    return latest.limits if latest else find_start(events).limits


def _reply_at(events: Sequence[Event], place: int) -> Replied:
    reply = events[place].payload
    assert isinstance(reply, Replied)
    return reply


def _has_unread_note(events: Sequence[Event], latest: int) -> bool:
    """Whether a person said something that the author of the reply at place `latest` did not know."""
    heard = _reply_at(events, latest).heard or events[latest].seq
    return any(isinstance(event.payload, Note) and event.seq > heard for event in events)


def find_start(events: Sequence[Event]) -> Started:
    """How the run started: its first event, unless something had to be put right before. Raises ValueError if none."""
    for event in events:
        if isinstance(event.payload, Started):
            return event.payload
    raise ValueError("The run has not started: none of its events is 'started'.")


def find_exemplar_mean(events: Sequence[Event]) -> float | None:
    """The mean activation of the exemplars, as the latest result that knew it says."""
    results = (event.payload for event in reversed(events) if isinstance(event.payload, ExperimentEnded))
    return next((result.exemplar_mean for result in results if result.exemplar_mean is not None), None)


def best(events: Sequence[Event]) -> float | None:
    """The highest activation of all images that the run measured so far, exemplars aside; None if there is none."""
    results = [event.payload for event in events if isinstance(event.payload, ExperimentEnded)]
    return max((value for result in results for value in _list_own(result)), default=None)


def _list_own(result: ExperimentEnded) -> list[float]:
    """Activations of images that are no exemplars; in records of old, those of the images that were logged."""
    if result.measured:
        return [] if result.best is None else [result.best]
    logged = (observation for entry in result.entries for observation in entry.observations)
    return [observation.activation for observation in logged if observation.origin != "exemplar"]


def _after_final_answer(events: Sequence[Event], latest: int, notes: Sequence[int], seconds: float) -> Step:
    """The end; after the first reply that concludes nothing or half, one more. `notes`: where it was asked for."""
    reply, answer = _reply_at(events, latest), answer_of(events, latest)
    missing = answer.lacks(find_start(events).task)
    if missing and len(notes) == 1:
        if any(_asks_for_final_answer(event.payload) for event in events[latest + 1 :]):
            return Ask(reply.round + 1)
        again = render("final_answer_again", missing=format_tags(missing))
        return Record("reminder", Reminder(reply.round, "final_answer", again))
    before = events[: notes[0]]
    reason = explain_exceeded(limits(before), before, seconds) or "A limit of the run is reached."
    return Record("limit_reached", Ended(reason, answer.conclusion or Conclusion()))


def _between_rounds(events: Sequence[Event], latest: int, seconds: float) -> Step:
    """The note that is due, if it is not there yet; then the next reply."""
    reply = _reply_at(events, latest)
    since = [event.payload for event in events[latest + 1 :]]
    reasons = {payload.reason for payload in since if isinstance(payload, Reminder)}
    if "final_answer" in reasons:
        return Ask(reply.round + 1)
    if reached := explain_exceeded(limits(events), events, seconds):
        return Record("reminder", Reminder(reply.round, "final_answer", render("final_answer", reached=reached)))
    result = next((payload for payload in since if isinstance(payload, ExperimentEnded)), None)
    note = _reading_note(events, latest) if result is None else _note(reply, result, best(events))
    if note is None or note.reason in reasons:
        return Ask(reply.round + 1)
    return Record("reminder", note)


def _reading_note(events: Sequence[Event], latest: int) -> Reminder:
    """What the agent should hear of a reply that ran nothing and did not end the run."""
    reply, answer = _reply_at(events, latest), answer_of(events, latest)
    rounds = rounds_told(reply.round, limits(events))
    if answer.conclusion is None:
        example = choose_example(find_start(events).reference, "dataset_exemplars", "text2image")
        return Reminder(reply.round, "format", render("format", rounds=rounds, example=example))
    if _has_unread_note(events, latest):
        return Reminder(reply.round, "set_aside", render("set_aside", rounds=rounds))
    missing = format_tags(answer.lacks(find_start(events).task))
    return Reminder(reply.round, "incomplete", render("incomplete", missing=missing, rounds=rounds))


def _note(reply: Replied, result: ExperimentEnded, reached: float | None) -> Reminder | None:
    """What the agent should hear of a result. One thing at most: two would contradict each other."""
    if reply.conclusion is not None:
        return Reminder(reply.round, "conclude_again", render("conclude_again", number=str(result.number)))
    is_new = result.own or (not result.measured and bool(_list_own(result)))
    mark = result.exemplar_mean
    if is_new and reached is not None and mark is not None and reached < mark - NEAR * abs(mark):
        words = render("continue", best=format_activation(reached), exemplar_mean=format_activation(mark))
        return Reminder(reply.round, "continue", words)
    return None


def _final_answer(events: Sequence[Event], latest: int) -> list[int]:
    """Where the agent was asked for its final answer before the reply at place `latest`, since limits last changed."""
    changed = max((place for place, event in enumerate(events) if isinstance(event.payload, LimitsChanged)), default=-1)
    return [place for place in range(changed + 1, latest) if _asks_for_final_answer(events[place].payload)]


def time_left(events: Sequence[Event], seconds: float) -> float:
    """Seconds in which the next reply has to begin; inf where there is no limit of time.

    `seconds` is the work on the run so far. Final answer, and a reply that a person had begin later still, get `GRACE`
    beyond the limit; in a short run less.
    """
    limit = limits(events).seconds
    if limit is None:
        return math.inf
    late = seconds >= limit or _has_asked_for_final_answer(events)
    return min(GRACE, limit) if late else limit - seconds


def out_of_time(events: Sequence[Event], seconds: float, spent: Usage) -> Record:
    """What follows when the time is up before a reply came: it is asked for its final answer; without one, the end."""
    reached = explain_exceeded(limits(events), events, seconds) or "The limit of time is reached."
    replies = [place for place, event in enumerate(events) if isinstance(event.payload, Replied)]
    if _has_asked_for_final_answer(events):
        # What was concluded before the agent was asked for the rest stands, unless it went on to experiment
        reasons = replies and not any(isinstance(event.payload, ExperimentStarted) for event in events[replies[-1] :])
        half = answer_of(events, replies[-1]).conclusion if reasons else None
        words = f"{reached} No final answer came: the agent was silent."
        return Record("limit_reached", Ended(words, half or Conclusion(), usage=spent))
    latest = max((_reply_at(events, place).round for place in replies), default=0)
    text = render("final_answer", reached=reached)
    return Record("reminder", Reminder(latest, "final_answer", text, spent))


def _has_asked_for_final_answer(events: Sequence[Event]) -> bool:
    """Whether the final answer were asked for, and neither came nor were put off since."""
    for event in reversed(events):
        if isinstance(event.payload, Replied | LimitsChanged | Resumed):
            return False
        if _asks_for_final_answer(event.payload):
            return True
    return False


def _asks_for_final_answer(payload: Payload) -> bool:
    return isinstance(payload, Reminder) and payload.reason == "final_answer"


def _empty_replies(events: Sequence[Event]) -> int:
    """How many of the latest replies in a row held neither a program nor a conclusion, since a person had it go on."""
    count = 0
    for event in reversed(events):
        if isinstance(event.payload, Resumed):
            break
        if isinstance(event.payload, Replied):
            if event.payload.code is not None or event.payload.conclusion is not None:
                break
            count += 1
    return count


_SILENT_AGENT = (
    f"The agent gave neither a program nor a conclusion in {REMINDERS} replies in a row. "
    "Try another agent, or ask the question differently."
)
