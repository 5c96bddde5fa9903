"""What a run took: tokens, dollars and seconds, by round and by step, together and against the limits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from experiments.display.axes import Plot
from experiments.display.rounds import Step, steps
from experiments.display.tags.maia import clock, compact, dollars, took
from experiments.models import Run

Taken = Sequence[float]
"""What replies and results took, in the order of the parts of `MEASURES`."""


@dataclass(frozen=True)
class Measure:
    """Something that a run takes, and the parts in which a page tells it; `first` is the place of the first of them."""

    name: str
    limit: str
    first: int
    parts: tuple[str, ...]
    words: Callable[[float | None], str]

    def of(self, taken: Taken) -> Taken:
        return taken[self.first : self.first + len(self.parts)]


MEASURES = (
    Measure("Tokens", "tokens", 0, ("read", "written", "descriptions"), compact),
    Measure("Dollars", "cost", 3, ("replies", "descriptions"), dollars),
    Measure("Time", "seconds", 5, ("replies", "programs", "tools"), took),
)
WITHOUT_REPLY = ("reminder", "blocked", "limit_reached", "cancelled")
"""Kinds of events that tell what a reply took which did not come about."""
PARTS = sum(len(measure.parts) for measure in MEASURES)


@dataclass(frozen=True)
class Bar:
    """One part of one step in the plot by round."""

    x: float
    y: float
    width: float
    height: float
    part: int
    words: str


@dataclass(frozen=True)
class Shown:
    """One measure, drawn: by round, and together against its limit."""

    name: str
    parts: Sequence[str]
    total: float
    """All that the run took of it, as its header says too: of time also what went between the steps."""
    limit: float | None
    words: Callable[[float | None], str]
    rounds: Plot
    bars: Sequence[Bar]
    together: Plot
    line: str
    limit_y: float | None
    of_round: float
    """The most of a round, and the most of all: what each axis is made for."""
    of_all: float

    @property
    def said(self) -> str:
        """The run's total, as its head says it, against the limit where there is one."""
        words = clock if self.name == "Time" else self.words
        total = words(self.total)
        return f"{total} of {words(self.limit)}" if self.limit else total

    def ticks(self, plot: Plot, most: float) -> list[tuple[float, str]]:
        return [(plot.y(value), self.beside(value, most)) for value in plot.values]

    def beside(self, value: float, highest: float) -> str:
        """A value as it stands beside its axis."""
        if self.name != "Time" or not value:
            return self.words(value) if value else "0"
        unit, name = unit_of_time(highest)
        return f"{value / unit:g} {name}"

    @property
    def round_ticks(self) -> list[tuple[float, str]]:
        return self.ticks(self.rounds, self.of_round)

    @property
    def together_ticks(self) -> list[tuple[float, str]]:
        return self.ticks(self.together, self.of_all)


@dataclass(frozen=True)
class Row:
    """One step of the table: the parts of each measure, and all so far."""

    step: Step
    cells: Sequence[str]


def read(run: Run, params: Mapping[str, str]) -> dict[str, Any]:
    del params
    taken = by_round(run)
    step_of = steps(taken)
    sums = together(taken, step_of)
    all_of = [sum(each) for each in zip(*sums.values(), strict=True)] or [0.0] * PARTS
    used = [measure for measure in MEASURES if any(measure.of(all_of))]
    elsewhere = max(0.0, run.seconds - sum(MEASURES[-1].of(all_of)))
    shown = [drawn(measure, run, sums) for measure in used]
    unused = [measure.name.lower() for measure in MEASURES if measure not in used] if sums else []
    return {
        "shown": shown,
        "unused": [name for name in unused if not (run.unpriced and name == "dollars")],
        "used": used,
        "each_step": max((step.count for step in sums), default=1),
        "rows": table(used, sums),
        "totals": [words for measure in used for words in [*map(measure.words, measure.of(all_of)), ""]],
        "elsewhere": elsewhere,
        "in_steps": run.seconds - elsewhere,
    }


def by_round(run: Run) -> dict[int, list[float]]:
    """What each round took, read from its events without their words.

    A reply that did not come about counts with the latest round that is there.
    """
    fields = ("kind", "payload__round", "payload__usage", "payload__seconds", "payload__tool_seconds")
    events = run.events.filter(kind__in=["reply", "result", *WITHOUT_REPLY]).order_by("seq")
    found: dict[int, list[float]] = {}
    for kind, told, usage, own, tools in events.values_list(*fields):
        known = usage if isinstance(usage, dict) else {}
        read, written, cost = (amount(known.get(name)) for name in ("prompt_tokens", "completion_tokens", "cost"))
        if kind in WITHOUT_REPLY and not (read or written or cost):
            continue
        number = told if isinstance(told, int) else 0
        place = max(found, default=number or 1) if kind in WITHOUT_REPLY else number
        took = found.setdefault(place, [0.0] * PARTS)
        more: tuple[float, ...] = (read, written, 0, cost, 0, amount(own), 0, 0)
        if kind == "result":
            more = (0, 0, read + written, 0, cost, 0, amount(own), amount(tools))
        found[place] = [before + each for before, each in zip(took, more, strict=True)]
    return found


def amount(value: Any) -> float:
    """What an event says it took; 0 where it says nothing of the kind."""
    return value if isinstance(value, int | float) else 0


def together(taken: Mapping[int, Taken], step_of: Mapping[int, Step]) -> dict[Step, Taken]:
    """What each step took."""
    groups: dict[Step, list[Taken]] = {}
    for number, step in step_of.items():
        groups.setdefault(step, []).append(taken[number])
    return {step: [sum(each) for each in zip(*group, strict=True)] for step, group in groups.items()}


def unit_of_time(seconds: float) -> tuple[float, str]:
    """What an axis up to so many seconds counts in."""
    return next(
        (unit, name) for unit, name in ((3600.0, "h"), (60.0, "min"), (1.0, "s")) if seconds >= 2 * unit or unit == 1
    )


def drawn(measure: Measure, run: Run, sums: Mapping[Step, Taken]) -> Shown:
    limit = run.limits.get(measure.limit)
    names = [str(step.first) for step in sums]
    parts = [measure.of(taken) for taken in sums.values()]
    so_far = list(accumulate(map(sum, parts)))
    rounds = plot(measure, names, [sum(each) for each in parts])
    # The limit is drawn where it tells something: far above what was used it would flatten the line.
    near = limit is not None and limit <= 4 * so_far[-1]
    highest = [*so_far, *([limit] if limit is not None and near else [])]
    total = plot(measure, names, highest)
    return Shown(
        measure.name,
        measure.parts,
        max(so_far[-1], run.seconds) if measure.name == "Time" else so_far[-1],
        limit,
        measure.words,
        rounds,
        [bar for place, step in enumerate(sums) for bar in bars(rounds, place, step, measure.of(sums[step]), measure)],
        total,
        total.slope(so_far),
        total.y(limit) if limit is not None and near else None,
        max(sum(each) for each in parts),
        max(highest),
    )


def plot(measure: Measure, names: Sequence[str], values: Sequence[float]) -> Plot:
    unit = unit_of_time(max(values))[0] if measure.name == "Time" else 1.0
    return Plot.over(names, values, unit, width=470, height=190, left=56)


def bars(plot: Plot, place: int, step: Step, parts: Taken, measure: Measure) -> Iterable[Bar]:
    """The parts of one step on top of each other."""
    width = round(max(plot.step * 0.7, 0.8), 1)
    reached = 0.0
    for part, value in enumerate(parts):
        if value:
            words = f"Round {step}: {measure.words(value)}, {measure.parts[part]}"
            top, bottom = plot.y(reached + value), plot.y(reached)
            x = round(plot.x(place + 0.5) - width / 2, 1)
            yield Bar(x, top, width, round(bottom - top, 1), part, words)
        reached += value


def table(used: Sequence[Measure], sums: Mapping[Step, Taken]) -> list[Row]:
    """A row for each step: for each measure its parts, then all so far."""
    rows: list[Row] = []
    so_far = dict.fromkeys(used, 0.0)
    for step, taken in sums.items():
        cells: list[str] = []
        for measure in used:
            so_far[measure] += sum(measure.of(taken))
            cells += [*map(measure.words, measure.of(taken)), measure.words(so_far[measure])]
        rows.append(Row(step, cells))
    return rows
