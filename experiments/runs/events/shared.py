"""What is new in a run: read and drawn once for all viewers of this process who have seen as much and may read as much.

Each viewer asks for what follows the last event that it has. Whoever asks first has it read; the others, and those whom
the same bell woke, are given what was found, where the same is hidden from them of the systems that it names. These are
not the run's own alone: what sums it up names those of related runs too. So a drawing notes which it asked about.
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

from experiments.core.system_names import Key, Names

MOST_KEPT = 200
"""Readings that are kept, the newest."""
MOST_BELLS = 500
MOST_EYES = 8
"""Readings of one place that are kept, for viewers from whom different things are hidden."""
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
class News:
    """What a viewer who has everything up to some event has not seen. `over` when nothing can follow; `rests` when
    nothing does unless a person has the run go on, which the bell then says."""

    messages: list[Message]
    seq: int
    over: bool
    rests: bool


@dataclass(frozen=True)
class _Reading:
    """What was read, when that began, and for whose eyes: of the systems asked about, `hidden` were hidden."""

    began: float
    news: News
    asked: frozenset[Key]
    hidden: frozenset[Key]

    def is_for(self, names: Names) -> bool:
        """Whether a viewer who reads these names may read it. Touches the database where any system was asked about."""
        return not self.asked or names.hidden & self.asked == self.hidden


class SharedNews:
    """Readings of this process. `read` touches the database, in a thread of its own."""

    def __init__(self) -> None:
        self._kept: dict[_Place, list[_Reading]] = {}
        self._reading: WeakValueDictionary[_Place, asyncio.Lock] = WeakValueDictionary()
        self._bells: dict[str, float] = {}

    def hear(self, bell: str) -> float:
        """The moment at which this bell was first heard here: what was read before may lack what it tells of."""
        heard = self._bells.setdefault(bell, time.monotonic())
        while len(self._bells) > MOST_BELLS:
            self._bells.pop(next(iter(self._bells)), None)
        return heard

    async def read(self, place: _Place, since: float, names: Names, read: Callable[[Names], News]) -> News:
        """What `read` returns with these names, or what it returned for another viewer who may read as much and whose
        reading began no earlier than `since`. The names are new: what is hidden is asked for each time."""
        lock = self._reading.setdefault(place, asyncio.Lock())
        async with lock:
            for known in self._kept.get(place, []):
                if known.began >= since and (not known.asked or await database_sync_to_async(known.is_for)(names)):
                    return known.news
            began = time.monotonic()
            reading = await database_sync_to_async(_read)(began, names, read)
            self._keep(place, reading)
        return reading.news

    def _keep(self, place: _Place, reading: _Reading) -> None:
        """The newest first; what was drawn earlier for the same eyes goes."""
        same = (reading.asked, reading.hidden)
        others = [each for each in self._kept.pop(place, []) if (each.asked, each.hidden) != same]
        self._kept[place] = [reading, *others][:MOST_EYES]
        for oldest in list(self._kept)[:-MOST_KEPT]:
            self._kept.pop(oldest, None)


def _read(began: float, names: Names, read: Callable[[Names], News]) -> _Reading:
    news, asked = read(names), frozenset(names.asked)
    return _Reading(began, news, asked, names.hidden & asked if asked else frozenset())
