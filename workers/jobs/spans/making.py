"""Create the spans of a run from its events. A pure function, so the record remains the only source.

Names and attributes follow OpenTelemetry's conventions for generative AI (semantic-conventions 0.66b2), gen_ai.…;
others are maia.…. The run is "invoke_agent MAIA", a reply "chat MODEL", a program "execute_tool run_experiment", and
its calls "execute_tool NAME".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from experiments.core.compatibility import PERSON
from experiments.models import Event, Run
from workers import registry
from workers.jobs.spans.content import Content
from workers.jobs.spans.rows import SpanMark, SpanRow, Value, cut_name, make_delta, span_id, trace_id
from workers.record.events import ExperimentEnded, ExperimentStarted, Forked, Graded, HandedOver, Replied, Started
from workers.record.experiments import ToolCall
from workers.record.grammar.schemas import RUN
from workers.record.limits import NAMES, Usage

AGENT = "MAIA"
MAX_CALLS = 200
"""Maximum number of calls per program that get a span. `maia.tool_calls` counts all."""
_MAX_MARKS = 200
_MARKED = frozenset({"retrying", "blocked", "waiting_for_person", "paused", "resumed", "note", "limits", "handover"})
"""Kinds of events that are marks on the run's span."""


def spans_of(run: Run, events: Sequence[Event], *, with_content: bool = False) -> list[SpanRow]:
    """Return the spans of everything that has ended within these events, which start with the run's first.

    The run's own span is last, once the run has ended. Events that a fork copied are left out.
    """
    if not events:
        return []
    maker = _SpanMaker(run, Content(events) if with_content else None)
    # Copied events have spans in the parent's trace.
    copied = max((each.seq for each in events if isinstance(each.content, Forked)), default=0)
    for event in events:
        if event.seq > copied or isinstance(event.content, Started):
            maker.add(event)
    root = maker.make_root(events[0].time, events[-1])
    rows = [_fit(row, root) for row in maker.rows]
    return [*rows, root] if events[-1].row.ends else rows


def _fit(row: SpanRow, root: SpanRow) -> SpanRow:
    """Return the row cut to the time of the run."""
    # Clocks of machines differ, and imported times can be anything.
    start = min(max(row.start, root.start), root.end)
    return replace(row, start=start, end=min(max(row.end, start), root.end))


class _SpanMaker:
    """Processes events in order and collects spans in `rows`."""

    def __init__(self, run: Run, content: Content | None) -> None:
        self.run, self.content = run, content
        self.trace = trace_id(run)
        self.root = span_id(self.trace, "run")
        self.rows: list[SpanRow] = []
        self._marks: list[SpanMark] = []
        self._backbone, self._model = run.backbone, run.backbone_model
        self._reply: Replied | None = None
        self._program: Event | None = None
        """The program in progress."""
        self._latest: datetime | None = None

    def add(self, event: Event) -> None:
        payload = event.content
        match payload:
            case Started():
                self._name_author(payload.backbone, payload.versions.get("backbone", ""))
            case HandedOver():
                self._name_author(payload.backbone, payload.backbone_model or payload.label)
            case Replied():
                self._add_reply(event, payload)
            case ExperimentStarted():
                self._program = event
            case ExperimentEnded():
                self._add_experiment(event, payload)
            case _:
                self._add_failed_reply(event, getattr(payload, "usage", Usage()))
        # A program in progress when the run ends gets no result.
        if event.row.ends and self._program:
            self._add_broken_off(event, self._program)
        self._mark(event)
        self._latest = event.time

    def _name_author(self, backbone: str, model: str) -> None:
        self._backbone, self._model = backbone, "" if backbone == PERSON else model

    # --- replies ---

    def _add_reply(self, event: Event, reply: Replied) -> None:
        self._reply = reply
        self._name_author(PERSON if reply.by_person else self._backbone, reply.author)
        said: dict[str, Value] = {"maia.round": reply.round, "maia.captions": reply.captions}
        said["maia.provider_errors"] = len(reply.provider_errors)
        # Texts of the conversation leave the machine only if the installation exports them.
        if self.content:
            said |= self.content.describe_reply(event, reply)
        start = event.time - make_delta(reply.seconds)
        self._add_chat(event, "chat", self.root, start, reply.usage, said)

    def _add_failed_reply(self, event: Event, usage: Usage) -> None:
        """Add a reply that failed, if it used tokens."""
        if usage.tokens:
            self._add_chat(event, "failed", self.root, self._latest or event.time, usage, {}, error=event.kind)

    def _add_chat(
        self,
        event: Event,
        place: str,
        parent: bytes,
        start: datetime,
        usage: Usage,
        said: dict[str, Value],
        error: str = "",
    ) -> None:
        model = cut_name(self._model or self._backbone)
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": cut_name(self._backbone),
            "gen_ai.request.model": model,
            "gen_ai.usage.input_tokens": usage.prompt_tokens,
            "gen_ai.usage.output_tokens": usage.completion_tokens,
        }
        if usage.cached_tokens:
            attributes["gen_ai.usage.cache_read.input_tokens"] = usage.cached_tokens
        if usage.priced:
            attributes["maia.cost_dollars"] = usage.cost
        self._add(event, place, f"chat {model}", parent, (start, event.time), attributes | said, error, "client")

    # --- programs ---

    def _add_experiment(self, event: Event, result: ExperimentEnded) -> None:
        seconds = make_delta(result.seconds) + make_delta(result.tool_seconds)
        begun = self._program.time if self._program else event.time - seconds
        # A program that a worker lost was run again: only its last attempt counts
        start = min(max(begun, event.time - seconds), event.time)
        said: dict[str, Value] = {
            "maia.experiment.status": result.status,
            "maia.images_measured": result.measured,
            "maia.observations": len(result.observations),
            "maia.tool_calls": len(result.calls),
        }
        if self.content:
            said |= self.content.describe_program(self._program, result)
        program = self._add_program(event, start, said, "" if result.status == "ok" else result.status)
        self._program = None
        self._add_calls(event, program, result.calls)
        if result.usage.tokens:
            told: dict[str, Value] = {"maia.purpose": "describe images"}
            self._add_chat(event, "describe", program.span, program.start, result.usage, told)

    def _add_broken_off(self, event: Event, program: Event) -> None:
        """Add a program that was in progress when the run ended."""
        self._add_program(event, program.time, {}, event.kind)
        self._program = None

    def _add_program(self, event: Event, start: datetime, said: dict[str, Value], error: str) -> SpanRow:
        number, reply = (self._program or event).number, self._reply
        attributes: dict[str, Value] = {"maia.round": event.round or 0, "maia.experiment": number}
        asked = next((call.id for call in reply.calls if call.name == RUN), "") if reply else ""
        if asked:
            attributes["gen_ai.tool.call.id"] = cut_name(asked)
        return self._add_tool(event, "program", RUN, self.root, (start, event.time), attributes | said, error)

    def _add_calls(self, event: Event, program: SpanRow, calls: Sequence[ToolCall]) -> None:
        """Add the calls in order."""
        # Only durations were measured, so each call starts when the previous one ends.
        start = program.start
        # A program may call tools thousands of times
        for place, call in enumerate(calls[:MAX_CALLS]):
            end = min(start + make_delta(call.seconds), program.end)
            said: dict[str, Value] = {"maia.start_estimated": True}
            if self.content:
                said |= self.content.describe_call(call)
            error = "tool_error" if call.failed else ""
            self._add_tool(event, f"call {place}", cut_name(call.name), program.span, (start, end), said, error)
            start = end

    def _add_tool(
        self,
        event: Event,
        place: str,
        name: str,
        parent: bytes,
        times: tuple[datetime, datetime],
        said: dict[str, Value],
        error: str,
    ) -> SpanRow:
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.type": "function",
        }
        return self._add(event, place, f"execute_tool {name}", parent, times, attributes | said, error, "internal")

    # --- the run ---

    def _mark(self, event: Event) -> None:
        if len(self._marks) >= _MAX_MARKS:
            return
        payload = event.content
        if isinstance(payload, Graded):
            verdict = "untested" if payload.reason else "pass" if payload.passed else "fail"
            said: dict[str, Value] = {"gen_ai.evaluation.name": "label check", "gen_ai.evaluation.score.label": verdict}
            if payload.pearson is not None:
                said["gen_ai.evaluation.score.value"] = payload.pearson
            self._marks.append(SpanMark("gen_ai.evaluation.result", event.time, said))
        elif event.kind in _MARKED:
            self._marks.append(SpanMark(f"maia.{event.kind}", event.time))

    def make_root(self, start: datetime, last: Event) -> SpanRow:
        run = self.run
        # Names of networks that users study blind stay hidden here too; spans never contain names of people.
        blind = registry.blind_name(run.system_kind, run.model, run.layer, run.unit)
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": AGENT,
            "gen_ai.provider.name": cut_name(self._backbone),
            "gen_ai.conversation.id": self._conversation,
            "maia.run": run.pk,
            "maia.task": cut_name(run.task),
            "maia.system": cut_name(blind or run.system),
            "maia.status": last.kind,
            "maia.rounds": run.rounds,
            "maia.experiments": run.experiment_count,
            "maia.input_tokens": run.prompt_tokens,
            "maia.output_tokens": run.completion_tokens,
            "maia.cost_dollars": run.cost,
        }
        limits = {f"maia.limit.{name}": run.limits.get(name) for name in NAMES}
        attributes |= {name: value for name, value in limits.items() if value is not None}
        attributes |= {"maia.forked_from": run.parent_id} if run.parent_id else {}
        if self.content:
            attributes |= self.content.describe_run(last)
        end, error = max(start, last.time), "failed" if last.kind == "failed" else ""
        attributes |= {"error.type": error} if error else {}
        # Within the span, since clocks of machines differ.
        marks = tuple(replace(each, time=min(max(each.time, start), end)) for each in self._marks)
        name, ids = f"invoke_agent {AGENT}", (self.trace, self.root, b"")
        return SpanRow(name, "internal", *ids, start, end, last.seq, attributes, marks, error)

    @property
    def _conversation(self) -> str:
        return f"run-{self.run.pk}"

    def _add(
        self,
        event: Event,
        place: str,
        name: str,
        parent: bytes,
        times: tuple[datetime, datetime],
        attributes: dict[str, Value],
        error: str,
        kind: str,
    ) -> SpanRow:
        attributes |= {"gen_ai.conversation.id": self._conversation}
        attributes |= {"error.type": error} if error else {}
        row = SpanRow(
            name=name,
            kind="client" if kind == "client" else "internal",
            trace=self.trace,
            span=span_id(self.trace, f"{event.seq} {place}"),
            parent=parent,
            start=times[0],
            end=times[1],
            seq=event.seq,
            attributes=attributes,
            error=error,
        )
        self.rows.append(row)
        return row
