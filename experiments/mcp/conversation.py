"""A run's conversation as its agent reads it, from events with the names that the caller may read."""

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
"""Events that are read at once."""


@dataclass(frozen=True)
class Conversation:
    """All that was said in a run so far."""

    messages: Sequence[Message]
    results: dict[int, tuple[Part, ...]]
    """Number of an experiment -> what came of it."""
    programs: dict[int, str]
    """Number of an experiment -> its program."""

    @property
    def beginning(self) -> list[Part]:
        """Instructions and assignment: all before the first reply."""
        first = next((place for place, each in enumerate(self.messages) if each.role == "assistant"), None)
        return [part for each in self.messages[:first] for part in each.parts]

    @property
    def news(self) -> list[Part]:
        """What was said since the last reply; nothing before the first."""
        places = [place for place, each in enumerate(self.messages) if each.role == "assistant"]
        return [part for each in self.messages[places[-1] + 1 :] for part in each.parts] if places else []

    @property
    def rounds(self) -> list[Part]:
        """Everything from the first reply on, with captions in the place of images, which stand before them anyway."""
        told: list[Part] = []
        begun = False
        for each in self.messages:
            begun = begun or each.role == "assistant"
            if begun:
                who = "Reply" if each.role == "assistant" else "What came of it"
                told.append(f"## {who}\n{each.text}")
        return told


async def read(api: Operations, run_id: int) -> Conversation:
    """The conversation so far; empty for a run that no worker has begun. Raises ToolError."""
    events: list[Event] = []
    while True:
        batch = await api.get(f"/runs/{run_id}/events", after=len(events), limit=PAGE)
        events += [Event(each["seq"], each["kind"], decode(each["kind"], each["payload"])) for each in batch["items"]]
        if len(batch["items"]) < PAGE:
            break
    told: dict[int, tuple[Part, ...]] = {}
    messages = conversation.messages(events, told)
    ended = [(each.payload.number, each.seq) for each in events if isinstance(each.payload, ExperimentEnded)]
    begun = [each.payload for each in events if isinstance(each.payload, ExperimentStarted)]
    results = {number: told[seq] for number, seq in ended}
    return Conversation(messages, results, {each.number: each.code for each in begun})
