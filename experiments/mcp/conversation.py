"""A run's conversation as its agent reads it, from events with the names that the caller may see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.mcp.operations import Operations
from workers.agent import conversation
from workers.agent.conversation import Part
from workers.protocols import Message
from workers.record.decoding import decode
from workers.record.events import Event, ExperimentEnded, ExperimentStarted

PAGE = 500
"""Number of events read per request."""


@dataclass(frozen=True)
class Conversation:
    """Everything said in a run so far."""

    messages: Sequence[Message]
    results: dict[int, tuple[Part, ...]]
    """Number of an experiment -> its result."""
    programs: dict[int, str]
    """Number of an experiment -> its program."""

    @property
    def beginning(self) -> list[Part]:
        """Return instructions and assignment: everything before the first reply."""
        # None as an end of the slice means all of them.
        first = next((place for place, each in enumerate(self.messages) if each.role == "assistant"), None)
        return [part for each in self.messages[:first] for part in each.parts]

    @property
    def news(self) -> list[Part]:
        """Return everything since the last reply; empty before the first."""
        places = [place for place, each in enumerate(self.messages) if each.role == "assistant"]
        return [part for each in self.messages[places[-1] + 1 :] for part in each.parts] if places else []

    @property
    def rounds(self) -> list[Part]:
        """Return everything from the first reply on. Images are replaced by their captions."""
        told: list[Part] = []
        begun = False
        for each in self.messages:
            begun = begun or each.role == "assistant"
            if begun:
                who = "Reply" if each.role == "assistant" else "What came of it"
                told.append(f"## {who}\n{each.text}")
        return told


async def read(api: Operations, run_id: int) -> Conversation:
    """Read the conversation so far; empty for a run that no worker has started. Raises ToolError."""
    events: list[Event] = []
    while True:
        # Through the API, which hides names that the caller may not see
        # Events are numbered from 1 without gaps, so their count is the number of the last one.
        batch = await api.get(f"/runs/{run_id}/events", after=len(events), limit=PAGE)
        events += [Event(each["seq"], each["kind"], decode(each["kind"], each["payload"])) for each in batch["items"]]
        if len(batch["items"]) < PAGE:
            break
    # `messages` fills it: number of the event -> what the agent was told of it.
    told: dict[int, tuple[Part, ...]] = {}
    messages = conversation.messages(events, told)
    ended = [(each.payload.number, each.seq) for each in events if isinstance(each.payload, ExperimentEnded)]
    begun = [each.payload for each in events if isinstance(each.payload, ExperimentStarted)]
    results = {number: told[seq] for number, seq in ended}
    return Conversation(messages, results, {each.number: each.code for each in begun})
