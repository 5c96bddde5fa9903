"""Convert the events of a run to Inspect's messages and events.

Each of our events becomes one of Inspect's, with `seq` and kind as `metadata`; ends of spans and scores are added.
Replies are model calls, programs are calls of the tool `python` within a span.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from experiments.models import Event as EventRow
from workers.agent import conversation
from workers.jobs.inspect_logs import scores
from workers.jobs.inspect_logs.pieces import Attachments, Json
from workers.protocols import ImagePart, Message
from workers.record.decoding import encode
from workers.record.events import (
    Ended,
    Event,
    ExperimentEnded,
    ExperimentStarted,
    Graded,
    HandedOver,
    Payload,
    Replied,
    Retrying,
    Started,
)
from workers.record.limits import Usage

TOOL = "python"
MAX_INPUT = 100
"""Maximum number of messages in the input of a model call: of a longer conversation the first two and the last ones."""
ERRORS = {"timeout": "timeout", "killed": "permission"}
"""Status of an experiment -> Inspect's type of error; "unknown" for others."""


@dataclass
class Transcript:
    """A run's stored events in order, and its messages."""

    rows: Sequence[EventRow]
    model: str
    """The model that writes the first replies."""
    question: Json
    """The question, as a `Sample` of Inspect."""
    attachments: Attachments
    messages: list[Json] = field(default_factory=list)
    usage: dict[str, Usage] = field(default_factory=dict)
    """Model -> its usage."""
    _places: dict[int, int] = field(default_factory=dict)
    """Event -> position of its first message."""
    _programs: dict[int, ExperimentStarted] = field(default_factory=dict)
    _numbers: dict[int, list[int]] = field(default_factory=dict)
    """Round -> numbers of its programs."""
    _authors: dict[int, str] = field(default_factory=dict)
    """Reply -> the model that wrote it."""

    def __post_init__(self) -> None:
        # 1. Programs by round, which become tool calls of the round's reply
        contents = [row.content for row in self.rows]
        self._programs = {each.number: each for each in contents if isinstance(each, ExperimentStarted)}
        for number, program in self._programs.items():
            self._numbers.setdefault(program.round, []).append(number)
        # 2. The model of each event, which a handover changes, and its usage
        model = self.model
        for row, content in zip(self.rows, contents, strict=True):
            if isinstance(content, HandedOver):
                model = content.backbone_model or content.backbone
            self._authors[row.seq] = model
            if (used := getattr(content, "usage", None)) and used != Usage():
                self.usage[model] = self.usage.get(model, Usage()) + used
        # 3. Messages, and where the message of each event is
        events = [Event(row.seq, row.kind, content) for row, content in zip(self.rows, contents, strict=True)]
        for event, turn in conversation.turns(events, {}):
            # The first message counts: a reply may be followed by how it was read.
            self._places.setdefault(event.seq, len(self.messages))
            self.messages.append(self._message(event.payload, turn) | {"id": f"message-{len(self.messages) + 1}"})

    def _message(self, payload: Payload, turn: Message) -> Json:
        """Return one turn of the conversation as a message."""
        message: Json = {"role": turn.role, "content": self._content(turn.parts)}
        if isinstance(payload, ExperimentEnded):
            return message | {"role": "tool", "function": TOOL, "tool_call_id": _call_id(payload.number)}
        if turn.role != "assistant" or not isinstance(payload, Replied):
            return message
        if payload.reasoning:
            thought = {"type": "reasoning", "reasoning": self.attachments.text(payload.reasoning)}
            message["content"] = [thought, *message["content"]]
        numbers = self._numbers.get(payload.round, [])
        calls = [{"id": _call_id(number), **self._call(self._programs[number])} for number in numbers]
        return message | ({"tool_calls": calls} if calls else {})

    def _content(self, parts: Sequence[str | ImagePart]) -> list[Json]:
        return [
            {"type": "image", "image": self.attachments.picture(part.key)}
            if isinstance(part, ImagePart)
            else {"type": "text", "text": self.attachments.text(part)}
            for part in parts
        ]

    def _call(self, program: ExperimentStarted | None) -> Json:
        code = self.attachments.text(program.code) if program else ""
        return {"function": TOOL, "arguments": {"code": code}, "type": "function"}

    # --- events ---

    def events(self) -> Iterator[Json]:
        """Yield all events. A span left open ends with the run."""
        # Spans of programs that have not ended
        begun: list[int] = []
        for row in self.rows:
            content = row.content
            yield self._base(row) | self._event(row, content)
            if isinstance(content, ExperimentStarted):
                begun.append(content.number)
            if isinstance(content, ExperimentEnded) and content.number in begun:
                begun.remove(content.number)
                yield self._span_end(row, content.number)
        for number in begun:
            yield self._span_end(self.rows[-1], number)

    def _base(self, row: EventRow) -> Json:
        # Clocks of workers may differ, and time must not run backwards.
        seconds = max(0.0, (row.time - self.rows[0].time).total_seconds())
        metadata: Json = {"seq": row.seq, "kind": row.kind}
        return {"timestamp": row.time.isoformat(), "working_start": seconds, "metadata": metadata}

    def _span_end(self, row: EventRow, number: int) -> Json:
        return {**self._base(row), "metadata": None, "event": "span_end", "id": f"span-{number}"}

    def _event(self, row: EventRow, content: Payload) -> Json:
        match content:
            case Started():
                return {"event": "sample_init", "sample": self.question, "state": {}}
            case Replied():
                return self._model_event(row, content)
            case ExperimentStarted():
                name = f"experiment {content.number}"
                return {"event": "span_begin", "id": f"span-{content.number}", "type": "tool", "name": name}
            case ExperimentEnded():
                return self._tool_event(row, content)
            case Graded():
                score = scores.build_grade(content)
                return {"event": "score", "score": score, "scorer": "label check", "intermediate": True}
            case Retrying():
                return _error(content.what)
            case Ended() if row.kind == "failed":
                return _error(content.reason)
            case Ended() if row.kind == "limit_reached":
                return {"event": "sample_limit", "type": scores.limit_type(content.reason), "message": content.reason}
            case Ended() if row.kind == "concluded":
                return {"event": "score", "score": scores.build_conclusion(content.conclusion), "scorer": scores.LABEL}
        # An event that this version cannot read is passed on as it is.
        data = row.payload if row.is_unreadable else encode(content)
        return {"event": "info", "source": row.kind, "data": data}

    def _model_event(self, row: EventRow, content: Replied) -> Json:
        place = self._places[row.seq]
        model = self._authors[row.seq]
        message = self.messages[place] | {"model": model}
        choice = {"message": message, "stop_reason": "tool_calls" if "tool_calls" in message else "stop"}
        output = {"model": model, "choices": [choice], "usage": usage_json(content.usage), "time": content.seconds}
        told = {"author": content.author, "round": content.round, "captions": content.captions}
        told["input_left_out"] = max(0, place - MAX_INPUT)
        return {
            "event": "model",
            "model": model,
            "input": [],
            # By positions, as in Inspect: a copy of the messages for each call would grow with the square of a run's
            # length.
            "input_refs": _refer_to(place),
            "tools": [],
            "tool_choice": "none",
            "config": {},
            "output": output,
            "metadata": {"seq": row.seq, "kind": row.kind, **told, "provider_errors": list(content.provider_errors)},
            **_span_of_time(row.time, content.seconds),
        }

    def _tool_event(self, row: EventRow, content: ExperimentEnded) -> Json:
        place = self._places[row.seq]
        told = ("round", "number", "status", "seconds", "tool_seconds", "exemplar_mean", "best", "measured")
        known: Mapping[str, Any] = encode(content)
        metadata = {name: known[name] for name in told} | {"observations": _observations(content)}
        event = {
            "event": "tool",
            "id": _call_id(content.number),
            **self._call(self._programs.get(content.number)),
            "span_id": f"span-{content.number}",
            "result": self.messages[place]["content"],
            "message_id": self.messages[place]["id"],
            "metadata": {"seq": row.seq, "kind": row.kind, **metadata},
            **_span_of_time(row.time, content.seconds + content.tool_seconds),
        }
        if content.status != "ok":
            event["error"] = {"type": ERRORS.get(content.status, "unknown"), "message": content.error}
        return event


def _refer_to(count: int) -> list[list[int]]:
    """Return the first messages as ranges of positions."""
    # Readers copy these messages for each call, so a long conversation names only its ends.
    if count <= MAX_INPUT:
        return [[0, count]] if count else []
    return [[0, 2], [count - MAX_INPUT + 2, count]]


def usage_json(used: Usage) -> Json:
    """Return tokens as Inspect counts them: tokens read from a cache are not input tokens there."""
    cost = {"total_cost": used.cost} if used.priced else {}
    return {
        "input_tokens": used.prompt_tokens - used.cached_tokens,
        "output_tokens": used.completion_tokens,
        "total_tokens": used.tokens,
        "input_tokens_cache_read": used.cached_tokens,
        **cost,
    }


def _observations(content: ExperimentEnded) -> list[Json]:
    """Return logged images with their figures. Images are named by the keys of their files."""
    names = ("title", "activation", "origin", "image", "masked", "claimed", "measured")
    return [{name: getattr(each, name) for name in names} for each in content.observations]


def _span_of_time(end: datetime, seconds: float) -> Json:
    """Return start and end. Inspect wants the start, and our events have only the end."""
    # Bounded: imported durations can be anything.
    begun = end - timedelta(seconds=min(max(seconds, 0.0), 1e6))
    return {"timestamp": begun.isoformat(), "completed": end.isoformat(), "working_time": seconds}


def _call_id(number: int) -> str:
    return f"experiment-{number}"


def _error(message: str) -> Json:
    return {"event": "error", "error": error_json(message)}


def error_json(message: str) -> Json:
    return {"message": message, "traceback": "", "traceback_ansi": ""}
