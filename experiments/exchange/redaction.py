"""Redact events for outsiders: share links, and the files of a study."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from experiments.models import Event
from workers.record.events import Audience, Replied

A_PERSON = "a person"
STOPPED = re.compile(r"Stopped by .+\.", re.DOTALL)


def redact(events: Iterable[Event], audience: Audience, *, show_names: bool) -> list[Event]:
    """Return copies of the events, not to be saved. Fields that the table of events hides from this audience are
    emptied; names of people are replaced unless `show_names`. Free text is not changed."""
    found = []
    for event in events:
        content: Any = event.content
        changed = {name: type(getattr(content, name))() for name in event.row.hidden.get(audience, ())}
        if not show_names:
            changed |= {name: _remove_names(name, content) for name in event.row.people if name not in changed}
        # A copy: the caller's events keep their names
        shown = Event(run=event.run, seq=event.seq, kind=event.kind, payload=event.payload, time=event.time)
        shown.content = replace(content, **changed)
        found.append(shown)
    return found


def _remove_names(field: str, content: Any) -> str:
    """Return the replacement of a field that may name a person. Agents' names, and reasons that name no person,
    stay."""
    text: str = getattr(content, field)
    # Agents' names are no personal data
    if isinstance(content, Replied):
        return A_PERSON if content.by_person else text
    if field == "reason":
        return STOPPED.sub(f"Stopped by {A_PERSON}.", text) if STOPPED.fullmatch(text) else text
    return A_PERSON
