"""Faults at random on an installation under sweeps, for as long as told: `python -m tests.faults --seconds 3600`.

Afterwards everything is mended, the sweeps play to their end, and what was kept is checked.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from tests.faults import invariants
from tests.faults.scientist import QUESTION, Request, Scientist
from tests.faults.site import Site, private_disk
from tests.faults.trouble import Fault, list_faults

AT_ONCE = 2
"""Faults at the same time, at most."""
GAPS = (0.5, 6.0)
"""Seconds between the beginnings of two faults."""
SETTLING = 300.0
"""Seconds that a sweep may take to its end when nothing troubles it any more."""
DISK_MB = 400


@dataclass
class Report:
    """What was done, and what came of it."""

    faults: Counter[str] = field(default_factory=Counter)
    kills: int = 0
    runs: int = 0
    replies: int = 0
    lost: list[Request] = field(default_factory=list)
    """Replies that were asked for and not recorded, since a fault came in between."""
    violations: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        done = ", ".join(f"{count} x {name}" for name, count in sorted(self.faults.items()))
        lines = [
            f"{self.faults.total()} faults, {self.kills} of them kills: {done}",
            f"{self.runs} runs, {self.replies} replies recorded, {len(self.lost)} lost on their way:",
            *(f"  round {each.number} of {each.question}" for each in self.lost),
            f"{len(self.violations)} violations" + (":" if self.violations else "."),
            *(f"  {each}" for each in self.violations),
        ]
        return "\n".join(lines)


def run_campaign(
    folder: Path, laboratory: Path, seconds: float, seed: int, units: int, say: Callable[[str], None] = print
) -> Report:
    """Trouble an installation in `folder` for so many seconds, under sweeps of so many units one after another."""
    rng, report = random.Random(seed), Report()
    with (
        private_disk(folder / "disk", DISK_MB) as disk,
        Scientist() as scientist,
        Site(folder, laboratory, scientist.url) as site,
    ):
        scientist.is_recorded = partial(_is_recorded, site)
        trouble = Trouble(list_faults(site, rng, disk=disk), rng, report, say)
        sweeps = 0
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if _all_over(site):
                trouble.mend()
                sweeps += 1
                site.sweep(QUESTION.format(sweep=sweeps), units, seed + sweeps)
            trouble.go_on()
            _restart(site, trouble, say)
            time.sleep(rng.uniform(*GAPS))
        trouble.mend()
        say("Everything is mended; the sweeps play to their end.")
        _settle(site, lambda: _restart(site, trouble, say))
        invariants.check(site, scientist, report)
    return report


class Trouble:
    """Faults under way, each with the moment at which it is mended."""

    def __init__(self, faults: Sequence[Fault], rng: random.Random, report: Report, say: Callable[[str], None]) -> None:
        self.active: list[tuple[float, Fault]] = []
        self._faults, self._rng, self._report, self._say = faults, rng, report, say
        self._began = time.monotonic()

    def go_on(self) -> None:
        """Mend what is due, and begin another fault where there is room for it."""
        now = time.monotonic()
        for due, fault in list(self.active):
            if due <= now:
                self.active.remove((due, fault))
                fault.mend()
        places = {fault.place for _, fault in self.active}
        free = [each for each in self._faults if each.place not in places]
        if len(self.active) == AT_ONCE or not free:
            return
        fault = self._rng.choice(free)
        lasts = self._rng.uniform(0.1, 1.0) * fault.seconds
        self._say(f"{now - self._began:6.1f} s  {fault.name}, for {lasts:.1f} s")
        self.active.append((now + lasts, fault))
        self._report.faults[fault.name] += 1
        self._report.kills += fault.kills
        fault.begin()

    def mend(self) -> None:
        """All of them."""
        while self.active:
            self.active.pop()[1].mend()


def _is_recorded(site: Site, question: str, number: int) -> bool:
    query = (
        "SELECT count(*) FROM experiments_event AS e JOIN experiments_run AS r ON r.id = e.run_id "
        "WHERE r.question = %s AND e.kind = 'reply' AND (e.payload ->> 'round')::int = %s"
    )
    return bool(_ask(site, query, question, number)[0][0])


def _all_over(site: Site) -> bool:
    """Whether no sweep is under way, as far as the database answers."""
    try:
        return not site.rows("SELECT 1 FROM experiments_sweep WHERE status <> 'done'")
    except psycopg.OperationalError:
        return False


def _ask(site: Site, query: str, *values: object) -> list[tuple[Any, ...]]:
    """As `site.rows`, however long the database is away."""
    for _ in range(600):
        try:
            return site.rows(query, *values)
        except psycopg.OperationalError:
            time.sleep(0.1)
    raise TimeoutError("the database stayed away")


def _restart(site: Site, trouble: Trouble, say: Callable[[str], None]) -> None:
    """Start what ended by itself, as the supervisor of a machine does, and say so."""
    troubled = {fault.place for _, fault in trouble.active}
    for part in site.parts:
        if part.name not in troubled and part.has_ended():
            say(f"          {part.name} ended by itself and is started again")
            part.start()


def _settle(site: Site, keep_up: Callable[[], None]) -> None:
    """Until all has been played; where it takes too long, the invariants say which runs did not end."""
    until = time.monotonic() + SETTLING
    while not _all_over(site) and time.monotonic() < until:
        keep_up()
        time.sleep(0.5)
