"""Check that the biases stated in a conclusion were tested on images drawn after they were stated. Pure."""

from __future__ import annotations

from workers.agent.instructions import quote, render, rounds_told
from workers.agent.run_state import RunState
from workers.record.events import Reminder
from workers.record.replies import Conclusion
from workers.record.stated_biases import MIN_PROMPTS, date_statements, find_sides
from workers.record.tasks import find_task

ASKED = 2
"""How often a run is asked to test what it states."""
ROUNDS = 2
"""Rounds that a request takes: one to draw images, one to conclude."""


def ask_to_confirm(state: RunState, conclusion: Conclusion) -> Reminder | None:
    """Return the request to test the biases stated in the latest reply; None if they are tested or cannot be."""
    reply, start, limits = state.reply, state.start, state.limits
    # Two more rounds are needed, or the request could not be met.
    too_late = limits.rounds is not None and reply.round + ROUNDS > limits.rounds
    # Without an image generator the reference lacks this heading, and the agent could not draw new images.
    draws = "### tools.text2image(" in start.reference
    asked = state.confirm_requests >= ASKED
    # A person writes what they mean; only an agent is asked again.
    if not find_task(start.task).confirms or reply.by_person or asked or too_late or not draws:
        return None
    lacking = _list_lacking(state, conclusion.bias)
    told = rounds_told(reply.round, limits)
    text = render("confirm", lacking="\n".join(lacking), least=str(MIN_PROMPTS), rounds=told)
    return Reminder(reply.round, "confirm", text) if lacking else None


def _list_lacking(state: RunState, text: str) -> list[str]:
    """List the statements with too few new prompts on a side, in their own words."""
    experiments = {each.number: each.observations for each in state.results}
    # Only experiments after a statement can test it.
    concluded = date_statements(text, state.stated)
    return [quote(each.text) for each in concluded if not find_sides(each, experiments, concluded).fresh]
