"""Convert a run to a sample of Inspect: question, messages, events, scores, tokens, times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from experiments.exchange import run_record
from experiments.models import Event, Run
from workers.jobs.inspect_logs import scores
from workers.jobs.inspect_logs.pieces import Attachments, Json, StreamedList, StreamedObject
from workers.jobs.inspect_logs.transcript import Transcript, error_json, usage_json
from workers.record.limits import Usage
from workers.record.statuses import Status

AT_ONCE = 500
STATUSES = {
    Status.CONCLUDED: "success",
    Status.LIMIT_REACHED: "success",
    Status.FAILED: "error",
    Status.CANCELLED: "cancelled",
}
"""Status of a run -> Inspect's status; "started" for runs that have not ended."""
SUMMARY_CHARS = 1_000
"""Maximum characters of a text in a summary, as in Inspect."""


@dataclass(frozen=True)
class LogSample:
    """A run or item as it is written, and what the log needs to know about it."""

    id: int
    uuid: str
    status: str
    model: str
    task: str
    scores: dict[str, Json]
    known: Json
    """Fields shared by the sample and its summary."""
    body: Mapping[str, Any]
    """The other fields. Long ones are created while they are written."""
    limits: Json = field(default_factory=dict)
    usage: Mapping[str, Usage] = field(default_factory=dict)
    started: datetime | None = None
    ended: datetime | None = None

    def fields(self) -> StreamedObject:
        return StreamedObject({"id": self.id, "epoch": 1, **self.known, "scores": self.scores, **self.body})

    def summary(self) -> Json:
        """Return the entry in the list of samples."""
        error, limit = self.body.get("error"), self.body.get("limit")
        told = {
            "error": error and error["message"],
            "limit": limit and limit["type"],
            "limit_reason": limit and limit["reason"],
            "completed": self.status != "started",
            "message_count": self.body["message_count"],
        }
        metadata = {name: value for name, value in self.body["metadata"].items() if _is_short(value)}
        return {"id": self.id, "epoch": 1, **self.known, "scores": self.scores, "metadata": metadata, **told}


def build_sample(run: Run) -> LogSample:
    """Return the sample of a run. Its events are in memory while it is written, its images never."""
    attachments = Attachments()
    data = run_record.to_json(run)
    asked, metadata = run.question, _metadata(data)
    question = {"input": asked, "target": "", "id": run.pk, "metadata": metadata}
    # Up to the row's last event: a worker may add one meanwhile.
    rows = list(run.events.filter(seq__lte=run.last_seq).order_by("seq").iterator(AT_ONCE))
    transcript = Transcript(rows, model_of(run), question, attachments)
    found = scores.build_scores(run)
    times = _times(run, rows)
    known = {
        "input": asked,
        "target": "",
        "model_usage": {model: usage_json(used) for model, used in transcript.usage.items()},
        "uuid": data["identity"][:22],
        "turn_count": run.rounds,
        "token_limit": run.limits.get("tokens"),
        **times,
    }
    body = {
        "metadata": metadata,
        "message_count": len(transcript.messages),
        "error": error_json(run.reason) if run.status == Status.FAILED else None,
        "limit": _limit(run) if run.status == Status.LIMIT_REACHED else None,
        "output": _get_last_output(transcript),
        "messages": StreamedList(transcript.messages),
        "events": StreamedList(transcript.events()),
        "events_data": StreamedObject({"messages": StreamedList(transcript.messages), "calls": []}),
        "attachments": attachments,  # Last, after everything shown has been named
    }
    return LogSample(
        run.pk,
        known["uuid"],
        STATUSES.get(Status(run.status), "started"),
        model_of(run),
        run.task,
        found,
        known,
        body,
        limits_of(run),
        transcript.usage,
        run.started,
        run.ended,
    )


def model_of(run: Run) -> str:
    """Return the model that writes the first replies, named as in Inspect."""
    return "/".join(part for part in (run.backbone, run.backbone_model) if part)


def limits_of(run: Run) -> Json:
    """Return the run's limits as the configuration of a log."""
    names = {"rounds": "turn_limit", "tokens": "token_limit", "cost": "cost_limit"}
    found = {theirs: value for ours, theirs in names.items() if (value := run.limits.get(ours)) is not None}
    seconds = run.limits.get("seconds")
    return found | ({"working_limit": round(seconds)} if seconds is not None else {})


def _metadata(data: Mapping[str, Any]) -> Json:
    """Return the fields of the run's row other than the question."""
    row = {name: value for name, value in data["run"].items() if name not in {"question", "conclusion"}}
    return row | {name: data[name] for name in ("identity", "number", "owner", "parent", "tags")}


def _times(run: Run, rows: list[Event]) -> Json:
    begun = run.started or (rows[0].time if rows else run.created)
    if run.ended is None:
        return {"started_at": begun.isoformat(), "working_time": run.seconds}
    total = max(0.0, (run.ended - begun).total_seconds())
    ended = run.ended.isoformat()
    return {"started_at": begun.isoformat(), "completed_at": ended, "total_time": total, "working_time": run.seconds}


def _limit(run: Run) -> Json:
    kind = scores.limit_type(run.reason)
    names = {"custom": "rounds", "token": "tokens", "cost": "cost", "working": "seconds"}
    return {"type": kind, "limit": run.limits.get(names[kind]) or 0, "reason": run.reason}


def _get_last_output(transcript: Transcript) -> Json:
    """Return the last reply."""
    last = next((each for each in reversed(transcript.messages) if each["role"] == "assistant"), None)
    choices = [{"message": last, "stop_reason": "stop"}] if last else []
    return {"model": transcript.model, "choices": choices}


def _is_short(value: Any) -> bool:
    return isinstance(value, int | float | bool) or (isinstance(value, str) and len(value) <= SUMMARY_CHARS)
