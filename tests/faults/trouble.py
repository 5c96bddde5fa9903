"""The faults of a campaign: what each does to an installation, and how it is mended."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.faults.part import Part
from tests.faults.site import FAKETIME, Site
from tests.support.line import Line

Act = Callable[[], None]


@dataclass(frozen=True)
class Fault:
    """`seconds` is the longest that it lasts; of one `place` there is one fault at a time."""

    name: str
    place: str
    seconds: float
    begin: Act
    mend: Act
    kills: bool = False


def list_faults(site: Site, rng: random.Random, *, disk: bool) -> list[Fault]:
    """All that can be done to this installation on this machine."""
    found: list[Fault] = []
    for part in site.parts:
        found += _of_part(part, rng)
    for name, line in site.lines.items():
        found += _of_line(name, line)
    cluster = site.cluster
    found.append(Fault("PostgreSQL killed", "database", 4, cluster.kill, cluster.start, kills=True))
    found.append(
        Fault(
            "PostgreSQL stopped",
            "database",
            15,
            lambda: cluster.signal(signal.SIGSTOP),
            lambda: cluster.signal(signal.SIGCONT),
        )
    )
    store = site.store
    found += [
        Fault("store killed", "store", 5, store.kill, store.start, kills=True),
        Fault("store stopped", "store", 15, lambda: store.signal(signal.SIGSTOP), lambda: store.signal(signal.SIGCONT)),
    ]
    if disk:  # a place of its own would let the store be started on a full disk, on which it ends at once
        found.append(Fault("disk filled", "store", 15, lambda: _fill(site.disk), lambda: _empty(site.disk)))
    if FAKETIME.exists():
        found += [_clock(site.clock, offset) for offset in ("+3600", "-3600", "+20")]
    return found


def _of_part(part: Part, rng: random.Random) -> list[Fault]:
    """A kill takes the children along, as a loss of power does, or leaves them, as a lack of memory does."""

    def kill() -> None:
        part.kill(whole=rng.random() < 0.5)

    killed = Fault(f"{part.name} killed", part.name, 5, kill, part.start, kills=True)
    return [killed, Fault(f"{part.name} stopped", part.name, 40, part.stop, part.go_on)]


def _of_line(name: str, line: Line) -> list[Fault]:
    def slow() -> None:
        line.delay = 0.1

    return [
        Fault(f"line to {name} cut", name, 1, line.cut, line.mend),
        Fault(f"line to {name} silent", name, 20, line.silence, line.mend),
        Fault(f"line to {name} slow", name, 10, slow, line.mend),
    ]


def _clock(file: Path, offset: str) -> Fault:
    return Fault(f"clock of a worker {offset} s", "clock", 20, lambda: _write(file, offset), lambda: _write(file, "+0"))


def _write(file: Path, words: str) -> None:
    new = file.with_suffix(".new")
    new.write_text(words)
    new.rename(file)


def _fill(disk: Path) -> None:
    """Leave no room at all."""
    with (disk / "filler").open("ab", buffering=0) as filler:
        for size in (1 << 20, 1 << 12):
            with suppress(OSError):
                while filler.write(os.urandom(size)):
                    pass


def _empty(disk: Path) -> None:
    (disk / "filler").unlink(missing_ok=True)
