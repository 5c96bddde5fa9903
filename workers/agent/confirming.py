"""Whether the biases that a conclusion states were tested on images that were drawn after they were stated. Pure, like
`rules`, which calls it.
"""

from __future__ import annotations

from collections.abc import Sequence

from workers.agent.instructions import quote, render, rounds_told
from workers.record.events import Event, ExperimentEnded, Reminder, Replied, Started
from workers.record.limits import Limits
from workers.record.replies import Conclusion
from workers.record.stated_biases import LEAST, date_statements, find_sides, find_stated
from workers.record.tasks import find_task

ASKED = 2
"""Times that a run is asked to test what it states."""
ROUNDS = 2
"""Rounds that it takes: one to draw images, one to conclude."""


def ask_to_confirm(
    events: Sequence[Event], reply: Replied, conclusion: Conclusion, limits: Limits, start: Started
) -> Reminder | None:
    """The request to test what the conclusion of this reply states; None where that is done, or cannot be."""
    asked = sum(map(_asks, events))
    too_late = limits.rounds is not None and reply.round + ROUNDS > limits.rounds
    draws = "### tools.text2image(" in start.reference
    if not find_task(start.task).confirms or reply.by_person or asked >= ASKED or too_late or not draws:
        return None
    lacking = _list_lacking(events, conclusion.bias)
    told = rounds_told(reply.round, limits)
    text = render("confirm", lacking="\n".join(lacking), least=str(LEAST), rounds=told)
    return Reminder(reply.round, "confirm", text) if lacking else None


def was_asked_to_confirm(events: Sequence[Event]) -> bool:
    """Whether that was requested among these events."""
    return any(map(_asks, events))


def _asks(event: Event) -> bool:
    return isinstance(event.payload, Reminder) and event.payload.reason == "confirm"


def _list_lacking(events: Sequence[Event], text: str) -> list[str]:
    """The statements that have too few new prompts on a side, as they were put."""
    payloads = [each.payload for each in events]
    experiments = {each.number: each.observations for each in payloads if isinstance(each, ExperimentEnded)}
    concluded = date_statements(text, find_stated(payloads))
    return [quote(each.text) for each in concluded if not find_sides(each, experiments, concluded).fresh]
