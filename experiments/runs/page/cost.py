"""Show the cost of a run: tokens, dollars and seconds, by round and by step, in total and against the limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from experiments.display.number_format import clock, compact, dollars, duration
from experiments.display.plots import HALF, Plot
from experiments.display.rounds import RoundRange, steps
from experiments.models import Run
from experiments.runs.page.timeline import draw_timeline, read_timeline

Taken = Sequence[float]
"""What replies and results took, in the order of the parts of `MEASURES`."""


@dataclass(frozen=True)
class Resource:
    """A resource that a run uses, in parts; `first` is the place of the first part in `Taken`."""

    name: str
    limit: str
    first: int
    parts: tuple[str, ...]
    words: Callable[[float | None], str]

    def of(self, taken: Taken) -> Taken:
        return taken[self.first : self.first + len(self.parts)]


MEASURES = (
    Resource("Tokens", "tokens", 0, ("read", "written", "descriptions"), compact),
    Resource("Dollars", "cost", 3, ("replies", "descriptions"), dollars),
    Resource("Time", "seconds", 5, ("replies", "programs", "tools"), duration),
)
WITHOUT_REPLY = ("reminder", "blocked", "limit_reached", "cancelled")
"""Kinds of events with the usage of failed replies."""
PARTS = sum(len(measure.parts) for measure in MEASURES)


@dataclass(frozen=True)
class MeasureShown:
    """One measure, drawn: by round, and as a sum against its limit, which is left out if it is far above."""

    name: str
    parts: Sequence[str]
    said: str
    """The run's total as in its head, against the limit if there is one."""
    rounds: Plot
    together: Plot
    limit: float | None
    is_near: bool


def read_cost(run: Run, _: Mapping[str, str]) -> dict[str, Any]:
    # 1. What each round took, in steps.
    taken = _count_by_round(run)
    step_of = steps(taken)
    groups: dict[RoundRange, list[Taken]] = {}
    for number, step in step_of.items():
        groups.setdefault(step, []).append(taken[number])
    sums = {step: [sum(each) for each in zip(*group, strict=True)] for step, group in groups.items()}
    # A run without events has no sums to add.
    all_of = [sum(each) for each in zip(*sums.values(), strict=True)] or [0.0] * PARTS
    # 2. Measures that were used at all.
    used = [measure for measure in MEASURES if any(measure.of(all_of))]
    # Time between steps, such as loading models, is part of the run's seconds but of no event.
    elsewhere = max(0.0, run.seconds - sum(MEASURES[-1].of(all_of)))
    unused = [measure.name.lower() for measure in MEASURES if measure not in used] if sums else []
    timeline = read_timeline(run)
    return {
        "timeline": draw_timeline(timeline),
        "total": clock(timeline.total),
        "waits": timeline.waits,
        "shown": [draw(measure, run, sums) for measure in used],
        "unused": [name for name in unused if not (run.unpriced and name == "dollars")],
        "used": used,
        "each_step": max((step.count for step in sums), default=1),
        "rows": table(used, sums),
        "totals": [words for measure in used for words in [*map(measure.words, measure.of(all_of)), ""]],
        "elsewhere": elsewhere,
        "in_steps": run.seconds - elsewhere,
    }


def _count_by_round(run: Run) -> dict[int, list[float]]:
    """Return what each round took, read from its events without their words."""
    fields = ("kind", "payload__round", "payload__usage", "payload__seconds", "payload__tool_seconds")
    events = run.events.filter(kind__in=["reply", "result", *WITHOUT_REPLY]).order_by("seq")
    found: dict[int, list[float]] = {}
    for kind, stored, usage, own, tools in events.values_list(*fields):
        # A payload is stored JSON, which may be of any shape.
        known = usage if isinstance(usage, dict) else {}
        read, written, cost = (
            _parse_amount(known.get(name)) for name in ("prompt_tokens", "completion_tokens", "cost")
        )
        if kind in WITHOUT_REPLY and not (read or written or cost):
            continue
        number = stored if isinstance(stored, int) else 0
        # A reply that failed counts with the latest round.
        place = max(found, default=number or 1) if kind in WITHOUT_REPLY else number
        took = found.setdefault(place, [0.0] * PARTS)
        # In the order of MEASURES: three of tokens, two of dollars, three of seconds.
        more: tuple[float, ...] = (read, written, 0, cost, 0, _parse_amount(own), 0, 0)
        if kind == "result":
            more = (0, 0, read + written, 0, cost, 0, _parse_amount(own), _parse_amount(tools))
        found[place] = [before + each for before, each in zip(took, more, strict=True)]
    return found


def _parse_amount(value: Any) -> float:
    """Return a number of an event; 0 for anything else."""
    return value if isinstance(value, int | float) else 0


def draw(measure: Resource, run: Run, sums: Mapping[RoundRange, Taken]) -> MeasureShown:
    limit = run.limits.get(measure.limit)
    names = [str(step.first) for step in sums]
    each = [sum(measure.of(taken)) for taken in sums.values()]
    so_far = list(accumulate(each))
    # The limit is drawn where it tells something: far above what was used it would flatten the line.
    near = limit if limit is not None and limit <= 4 * so_far[-1] else None
    total = max(so_far[-1], run.seconds) if measure.name == "Time" else so_far[-1]
    words = clock if measure.name == "Time" else measure.words
    said = f"{words(total)} of {words(limit)}" if limit else words(total)
    rounds = plot(measure, names, each, f"{measure.name} by round; the table below says the same")
    for place, (step, taken) in enumerate(sums.items()):
        _add_bars(rounds, place, step, measure, taken)
    highest = so_far if near is None else [*so_far, near]
    together = plot(measure, names, highest, f"{measure.name} together: {said}")
    together.draw_sums(so_far)
    if near is not None:
        together.add_level(near)
    return MeasureShown(measure.name, measure.parts, said, rounds, together, limit, near is not None)


def plot(measure: Resource, names: Sequence[str], values: Sequence[float], label: str) -> Plot:
    if measure.name != "Time":
        return Plot.of_columns(names, values, label, HALF, lambda value: measure.words(value) if value else "0")
    units = ((3600.0, "h"), (60.0, "min"), (1.0, "s"))
    unit, name = next((unit, name) for unit, name in units if max(values) >= 2 * unit or unit == 1)
    return Plot.of_columns(names, values, label, HALF, lambda value: f"{value / unit:g} {name}" if value else "0", unit)


def _add_bars(plot: Plot, place: int, step: RoundRange, measure: Resource, taken: Taken) -> None:
    """Stack the parts of a step."""
    reached = 0.0
    for part, value in enumerate(measure.of(taken)):
        if value:
            words = f"Round {step}: {measure.words(value)}, {measure.parts[part]}"
            plot.add_bar(place + 0.15, place + 0.85, reached, reached + value, f"part part-{part}", words)
        reached += value


def table(used: Sequence[Resource], sums: Mapping[RoundRange, Taken]) -> list[tuple[RoundRange, list[str]]]:
    """Return a row for each step: for each measure its parts, then the sum so far."""
    rows = []
    so_far = dict.fromkeys(used, 0.0)
    for step, taken in sums.items():
        cells: list[str] = []
        for measure in used:
            so_far[measure] += sum(measure.of(taken))
            cells += [*map(measure.words, measure.of(taken)), measure.words(so_far[measure])]
        rows.append((step, cells))
    return rows
