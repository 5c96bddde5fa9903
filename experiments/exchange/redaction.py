"""Events as an outsider is shown them: under a link, and in the files of a study."""

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
    """The same events, not to be saved: what the table of events hides from this audience is emptied, names of people
    go unless they were asked for. What people wrote in their own words stays as it is."""
    found = []
    for event in events:
        content: Any = event.content
        changed = {name: type(getattr(content, name))() for name in event.row.hidden.get(audience, ())}
        if not show_names:
            changed |= {name: _without_names(name, content) for name in event.row.people if name not in changed}
        shown = Event(run=event.run, seq=event.seq, kind=event.kind, payload=event.payload, time=event.time)
        shown.content = replace(content, **changed)
        found.append(shown)
    return found


def _without_names(field: str, content: Any) -> str:
    """What stands for a field that may name a person: an agent's name, and an end that nobody brought about, stay."""
    text: str = getattr(content, field)
    if isinstance(content, Replied):
        return SOMEBODY if content.by_person else text
    if field == "reason":
        return STOPPED.sub(f"Stopped by {SOMEBODY}.", text) if STOPPED.fullmatch(text) else text
    return SOMEBODY
