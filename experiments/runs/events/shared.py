"""Read and draw news of a run once for all viewers of this process with the same last event and the same permissions.

Each viewer asks for what follows its last event. The first request reads it. The others, and those that the same bell
woke, get the same result if the same system names are hidden from them. Such names are not only the run's own: its
summary names systems of related runs too. So a drawing records which it asked about.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

from channels.db import database_sync_to_async

from experiments.core.system_names import Key, SystemNameMasker

MAX_KEPT = 200
"""Number of newest readings that are kept."""
MAX_BELLS = 500
MAX_VARIANTS = 8
"""Readings kept for one place, for viewers from whom different things are hidden."""
_Place = tuple[int, int]
"""A run, and the last event seen."""


@dataclass(frozen=True)
class Message:
    """One message to a browser: its kind, the kind of the event where it is one, and the JSON that is sent."""

    kind: str
    text: str
    event: str = ""

    @classmethod
    def of(cls, kind: str, event: str = "", **content: Any) -> Message:
        named = {"kind": event} if event else {}
        return cls(kind, json.dumps({"type": kind, **named, **content}), event)


@dataclass(frozen=True)
class RunUpdate:
    """What a viewer at some event has not seen yet. `over` if nothing can follow; `rests` if nothing does until a
    person resumes the run, which the bell then reports."""

    messages: list[Message]
    seq: int
    over: bool
    rests: bool


@dataclass(frozen=True)
class _Reading:
    """The result of a read, its start time, and its viewers' permissions: of the systems asked about, `hidden` were
    hidden."""

    began: float
    news: RunUpdate
    asked: frozenset[Key]
    hidden: frozenset[Key]

    def is_for(self, names: SystemNameMasker) -> bool:
        """True if a viewer who reads these names may read it. Touches the database if any system was asked about."""
        return not self.asked or names.hidden & self.asked == self.hidden


class SharedUpdates:
    """Readings of this process. `read` uses the database, in another thread."""

    def __init__(self) -> None:
        self._kept: dict[_Place, list[_Reading]] = {}
        # A lock lives only as long as a viewer waits for it.
        self._reading: WeakValueDictionary[_Place, asyncio.Lock] = WeakValueDictionary()
        self._bells: dict[str, float] = {}

    def hear(self, bell: str) -> float:
        """Return when this bell was first heard here: earlier readings may lack the event it announces."""
        heard = self._bells.setdefault(bell, time.monotonic())
        # Dictionaries keep the order of insertion: the first bell is the oldest.
        while len(self._bells) > MAX_BELLS:
            self._bells.pop(next(iter(self._bells)), None)
        return heard

    async def read(
        self, place: _Place, since: float, names: SystemNameMasker, read: Callable[[SystemNameMasker], RunUpdate]
    ) -> RunUpdate:
        """Return the result of `read` for these names, or an earlier one for another viewer with the same permissions,
        started no earlier than `since`. The names are fresh: permissions are checked each time."""
        lock = self._reading.setdefault(place, asyncio.Lock())
        async with lock:
            for known in self._kept.get(place, []):
                if known.began >= since and (not known.asked or await database_sync_to_async(known.is_for)(names)):
                    return known.news
            # Before the read: an event that comes during it may be missing.
            began = time.monotonic()
            reading = await database_sync_to_async(_read)(began, names, read)
            self._keep(place, reading)
        return reading.news

    def _keep(self, place: _Place, reading: _Reading) -> None:
        """Keep the reading, the newest first; drop the earlier one for the same permissions."""
        same = (reading.asked, reading.hidden)
        others = [each for each in self._kept.pop(place, []) if (each.asked, each.hidden) != same]
        self._kept[place] = [reading, *others][:MAX_VARIANTS]
        # `pop` above and the assignment put the newest place last.
        for oldest in list(self._kept)[:-MAX_KEPT]:
            self._kept.pop(oldest, None)


def _read(began: float, names: SystemNameMasker, read: Callable[[SystemNameMasker], RunUpdate]) -> _Reading:
    news, asked = read(names), frozenset(names.asked)
    return _Reading(began, news, asked, names.hidden & asked if asked else frozenset())
