"""The events of a run as they are kept: JSON, page by page, and the whole as a file."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from experiments.core.paging import Page
from experiments.core.system_names import Names
from experiments.display import window
from experiments.models import Event, Run

PER_PAGE = 40


@dataclass(frozen=True)
class RawEvent:
    event: Event
    text: str


def read_raw(run: Run, params: Mapping[str, str], names: Names) -> dict[str, Any]:
    """The page that the address names by number or by an event on it."""
    at, missing = window.asked_for(run, params)
    if at is not None:
        params = {"tab": "raw", "page": str((at - 1) // PER_PAGE + 1)}
    page = Page.of(params, run.last_seq, PER_PAGE, "tab")
    events = run.events.filter(seq__range=(page.first, page.end)).order_by("seq")
    return {
        "page": page,
        "missing": missing,
        "told": [RawEvent(event, as_text(event, names.payload(run, event), 2)) for event in events],
    }


def as_text(event: Event, payload: Mapping[str, Any], indent: int | None = None) -> str:
    """An event as JSON, with what it says."""
    data = {"seq": event.seq, "kind": event.kind, "time": event.time.isoformat(), "payload": payload}
    return json.dumps(data, indent=indent, ensure_ascii=False)


async def as_lines(run: Run, names: Names) -> AsyncIterator[bytes]:
    """All events of a run, a line of JSON for each, without holding them all. Whether the viewer may read what the run
    studies has been looked up."""
    async for event in Event.objects.filter(run_id=run.pk, seq__lte=run.last_seq).order_by("seq").aiterator(100):
        yield as_text(event, names.payload(run, event)).encode() + b"\n"
