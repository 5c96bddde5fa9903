"""Content of spans, if the installation exports it: texts of the conversation, each cut to a maximum, and no images.

Messages are JSON in OpenTelemetry's conventions for generative AI: a role, and parts with a type.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from experiments.models import Event
from workers.agent.conversation import Part, messages
from workers.jobs.spans.rows import Value, cut_text
from workers.record.events import Ended, ExperimentEnded, ExperimentStarted, Replied, Started
from workers.record.events import Event as Recorded
from workers.record.experiments import ToolCall

_IMAGE = "(an image)"


class Content:
    """The texts of one run, from all of its events."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = [Recorded(each.seq, each.kind, each.content) for each in events]
        self._told: dict[int, tuple[Part, ...]] = {}
        self._has_instructions = False

    def describe_reply(self, event: Event, reply: Replied) -> dict[str, Value]:
        """Return what the author was told since the previous reply, and the reply."""
        # What the author had not heard is not part of this input.
        known = reply.heard or event.seq - 1
        asked = messages([each for each in self._events if each.seq <= known], self._told)
        said: dict[str, Value] = {}
        # Instructions never change, so only the first reply has them
        if not self._has_instructions:
            instructions = [_read(each.parts) for each in asked if each.role == "system"]
            said["gen_ai.system_instructions"] = _write([_text(each) for each in instructions])
            self._has_instructions = True
        # Only the last turn: earlier ones are in earlier spans.
        if asked and asked[-1].role == "user":
            said["gen_ai.input.messages"] = _write([_message("user", _text(_read(asked[-1].parts)))])
        parts = [{"type": "reasoning", "content": cut_text(reply.reasoning)}] if reply.reasoning else []
        said["gen_ai.output.messages"] = _write([_answer(*parts, _text(reply.text))])
        return said

    def describe_program(self, begun: Event | None, result: ExperimentEnded) -> dict[str, Value]:
        program = begun.content.code if begun and isinstance(begun.content, ExperimentStarted) else ""
        return {
            "gen_ai.tool.call.arguments": _write({"code": cut_text(program)}),
            "gen_ai.tool.call.result": cut_text("\n".join(each for each in (result.error, result.output) if each)),
        }

    def describe_call(self, call: ToolCall) -> dict[str, Value]:
        return {"gen_ai.tool.call.arguments": cut_text(call.arguments)}

    def describe_run(self, last: Event) -> dict[str, Value]:
        """Return the question and the conclusion."""
        starts = [each.payload.question for each in self._events if isinstance(each.payload, Started)]
        said: dict[str, Value] = {}
        if starts:
            said["gen_ai.input.messages"] = _write([_message("user", _text(starts[0]))])
        if isinstance(last.content, Ended):
            found = last.content.conclusion
            words = "\n".join(each for each in (found.description, found.bias, *found.labels) if each)
            said["gen_ai.output.messages"] = _write([_answer(_text(words))])
        return said


def _read(parts: Sequence[Part]) -> str:
    return "\n".join(each if isinstance(each, str) else _IMAGE for each in parts)


def _text(words: str) -> dict[str, str]:
    return {"type": "text", "content": cut_text(words)}


def _message(role: str, *parts: dict[str, str]) -> dict[str, Any]:
    return {"role": role, "parts": parts}


def _answer(*parts: dict[str, str]) -> dict[str, Any]:
    """Return a reply as a message. The conventions require a finish reason, and recorded replies are complete."""
    return _message("assistant", *parts) | {"finish_reason": "stop"}


def _write(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False)
