"""Events as an outsider is shown them. Names of people go unless they were asked for; what broke on our side, and
what a person was to do about it, always does: it may name folders and hosts.

What people wrote in their own words stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User

from experiments.core.display_name import person
from experiments.models import Event, Run

SOMEBODY = "a person"
STOPPED = re.compile(r"Stopped by .+\.", re.DOTALL)
INTERNAL: Mapping[str, str] = {"retrying": "what", "blocked": "reason", "failed": "reason"}
"""Kind of event -> the field that tells of our machinery."""


@dataclass(frozen=True)
class Discretion:
    """`people` are all names by which members are known; `hands` tells who wrote from which event on."""

    show_names: bool
    people: frozenset[str]
    hands: Sequence[tuple[int, str]]

    @classmethod
    def of(cls, run: Run, *, show_names: bool) -> Discretion:
        """Two queries, however long the run is."""
        if show_names:
            return cls(True, frozenset(), ())
        names = {name for user in User.objects.only("username", "first_name", "last_name") for name in names_of(user)}
        kept = run.events.filter(kind__in=["started", "handover"]).order_by("seq")
        return cls(False, frozenset(names), list(kept.values_list("seq", "payload__backbone")))

    def shown(self, events: Iterable[Event]) -> list[Event]:
        """The same events, not to be saved, with what an outsider may know."""
        return [self.told(event) for event in events]

    def told(self, event: Event) -> Event:
        payload = dict(event.payload)
        if internal := INTERNAL.get(event.kind):
            payload[internal] = ""
        if not self.show_names:
            payload |= self.without_names(event.seq, payload)
        return Event(run_id=event.run_id, seq=event.seq, kind=event.kind, payload=payload, time=event.time)

    def without_names(self, seq: int, payload: Mapping[str, Any]) -> dict[str, Any]:
        """The fields that change."""
        changed = {"who": SOMEBODY} if "who" in payload else {}
        if "author" in payload and (self.is_by_hand(seq) or payload["author"] in self.people):
            changed["author"] = SOMEBODY
        if STOPPED.fullmatch(str(payload.get("reason", ""))):
            changed["reason"] = f"Stopped by {SOMEBODY}."
        return changed

    def is_by_hand(self, seq: int) -> bool:
        """Whether a person wrote the replies at this place."""
        before = [backbone for start, backbone in self.hands if start < seq]
        return bool(before) and before[-1] == "person"


def names_of(user: User) -> set[str]:
    return {user.get_username(), person(user)}
