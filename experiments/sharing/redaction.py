"""Events as an outsider is shown them: what the table of events hides from an audience is emptied, names of people go
unless they were asked for.

What people wrote in their own words stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from experiments.models import Event
from workers.record.events import Audience, Replied

SOMEBODY = "a person"
STOPPED = re.compile(r"Stopped by .+\.", re.DOTALL)


def redact(events: Iterable[Event], audience: Audience, *, show_names: bool) -> list[Event]:
    """The same events, not to be saved, with what this audience may know."""
    return [_redact_one(event, audience, show_names) for event in events]


def _redact_one(event: Event, audience: Audience, show_names: bool) -> Event:
    content: Any = event.content
    changed = {name: type(getattr(content, name))() for name in event.row.hidden.get(audience, ())}
    if not show_names:
        changed |= {name: _without_names(name, content) for name in event.row.people if name not in changed}
    shown = Event(run=event.run, seq=event.seq, kind=event.kind, payload=event.payload, time=event.time)
    shown.content = replace(content, **changed)
    return shown


def _without_names(field: str, content: Any) -> str:
    """What stands for a field that may name a person: an agent's name, and an end that nobody brought about, stay."""
    told: str = getattr(content, field)
    if isinstance(content, Replied):
        return SOMEBODY if content.by_person else told
    if field == "reason":
        return STOPPED.sub(f"Stopped by {SOMEBODY}.", told) if STOPPED.fullmatch(told) else told
    return SOMEBODY
