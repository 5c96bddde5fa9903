"""Show where the time of a run went, as a waterfall: replies, programs, tools, and unknown. The segments add up to the
time in the head of the page; pauses and waits are not part of it, and shown apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from experiments.display.events import seconds_of_work
from experiments.display.number_format import clock, duration
from experiments.display.plots import Plot, WaterfallRow, WaterfallSpan, draw_waterfall
from experiments.models import Run
from workers.record.events import kind_of

ROWS = 60
"""Rounds that have a row; of more, neighbours share one."""
PARTS = (("part-0", "replies"), ("part-1", "programs"), ("part-2", "tools"), ("part-other", "other: loading, saving"))
FIELDS = ("kind", "time", "payload__round", "payload__number", "payload__seconds", "payload__tool_seconds")


@dataclass
class Segment:
    """A piece of work: `seconds` are measured, or the unexplained rest of a gap between two events."""

    round: int
    kind: str
    what: str
    seconds: float
    link: str = ""


@dataclass
class Timeline:
    """The pieces of work in order; seconds that the run was paused, or waited for a person or a worker."""

    total: float
    segments: list[Segment] = field(default_factory=list)
    still: dict[str, float] = field(default_factory=dict)

    @property
    def waits(self) -> list[tuple[str, str]]:
        return [(name, duration(seconds)) for name, seconds in self.still.items() if seconds >= 1]


def read_timeline(run: Run) -> Timeline:
    """Return the segments of a run. Time that its events do not explain lies in the gaps between them."""
    found = Timeline(seconds_of_work(run))
    before: datetime | None = None
    still, latest = "", 1
    for kind, time, place, number, own, tools in run.events.order_by("seq").values_list(*FIELDS):
        took = _build_segments(kind, number, own, tools)
        # Clocks of two workers may differ: a gap is never negative.
        gap = max((time - before).total_seconds() if before else 0.0, 0.0)
        # A pause is no work, whatever lies in its gap.
        if still:
            found.still[still] = found.still.get(still, 0.0) + gap
            gap = 0.0
        latest = place if isinstance(place, int) and place else latest
        rest = gap - sum(each.seconds for each in took)
        if rest > 0:
            found.segments.append(Segment(latest, "part-other", "Other: loading, saving", rest))
        for each in took:
            each.round = latest
        found.segments += took
        # A note or a handover does not end a pause.
        before, still = time, _name_still(kind) or (still if kind in ("note", "limits", "handover") else "")
    _fit(found, run.rounds or latest)
    return found


def _build_segments(kind: str, number: Any, own: Any, tools: Any) -> list[Segment]:
    """Return what an event says of the time before it."""
    seconds, in_tools = (each if isinstance(each, int | float) and each > 0 else 0.0 for each in (own, tools))
    if kind == "reply":
        return [Segment(0, "part-0", "Reply", seconds)]
    if kind != "result":
        return []
    link = f"?experiment={number}#experiment-{number}"
    parts = [Segment(0, "part-2", "Tools", in_tools, link), Segment(0, "part-1", "Program", seconds, link)]
    return [each for each in parts if each.seconds]


def _name_still(kind: str) -> str:
    """Name the time after an event while the run is idle."""
    if kind == "paused":
        return "paused"
    return "waited for a person" if kind_of(kind).suspends else ""


def _fit(found: Timeline, last: int) -> None:
    """Make the segments add up to the run's own time."""
    measured = sum(each.seconds for each in found.segments if each.kind != "part-other")
    between = sum(each.seconds for each in found.segments if each.kind == "part-other")
    # A gap was work only as far as the run's time allows; the rest of it the run waited for a worker.
    left = max(found.total - measured, 0.0)
    share = min(left / between, 1.0) if between else 0.0
    for each in found.segments:
        if each.kind == "part-other":
            each.seconds *= share
        elif measured > found.total:
            # Events of a run that was forked tell of work that its own time leaves out
            each.seconds *= found.total / measured
    if between * (1 - share) >= 1:
        found.still["waited for a worker"] = between * (1 - share)
    # Time that no gap explains follows the last round.
    if left - between * share > 1e-6:
        found.segments.append(Segment(last, "part-other", "Other: loading, saving", left - between * share))


def draw_timeline(found: Timeline) -> Plot | None:
    """Draw a row for each round, or for several, with each piece where it lies in the run's own time."""
    if found.total <= 0 or not found.segments:
        return None
    rounds = sorted({each.round for each in found.segments})
    # The double minus rounds up.
    together = -(-len(rounds) // ROWS)
    rows = []
    start = 0.0
    for first in range(0, len(rounds), together):
        some = rounds[first : first + together]
        spans, start = _place_segments(found.segments, some, start)
        name = f"Round {some[0]}" if len(some) == 1 else f"Rounds {some[0]}\N{EN DASH}{some[-1]}"
        rows.append(WaterfallRow(name, spans))
    label = f"Where the time went, round by round; together {clock(found.total)}"
    took = {kind: sum(each.seconds for each in found.segments if each.kind == kind) for kind, _ in PARTS}
    legend = [(kind, f"{name} {duration(took[kind])}") for kind, name in PARTS if took[kind]]
    return draw_waterfall(rows, label, "Time of work, pauses and waits left out", legend, duration, clock)


def _place_segments(
    segments: Sequence[Segment], rounds: Sequence[int], start: float
) -> tuple[list[WaterfallSpan], float]:
    """Lay the pieces of these rounds one after the other, from `start`; return also where they end."""
    spans = []
    for each in segments:
        if each.round in rounds and each.seconds > 0:
            words = f"Round {each.round}, {each.what}: {duration(each.seconds)}"
            spans.append(WaterfallSpan(start, start + each.seconds, each.kind, words, each.link))
            start += each.seconds
    return spans, start
