"""Describe a sweep's progress and forecast in sentences: for the terminal, files and lists."""

from __future__ import annotations

from typing import Any

from experiments.runs.prediction_interval import PredictionInterval
from experiments.sweeps.forecast import SweepForecast
from experiments.sweeps.lists import count_left, state_of


def describe_progress(row: Any) -> str:
    """Describe the progress of a row of `lists.with_progress`."""
    parts = [f"{row.done_runs:,} of {row.planned:,} done"]
    for count, words in ((row.failed_runs, "failed"), (row.stopped_runs, "stopped"), (count_left(row), "to come")):
        if count:
            parts.append(f"{count:,} {words}")
    took = f"${row.cost:,.2f}, {row.tokens:,} tokens, {format_seconds(row.seconds)} of work"
    reason = f" {row.reason}" if row.reason else ""
    return f"{state_of(row).words}: {', '.join(parts)}. So far {took}.{reason}"


def describe_forecast(found: SweepForecast) -> str:
    """Describe the forecast for a number of runs, or why there is none."""
    runs = f"{found.runs:,} run{'s' * (found.runs != 1)} of {found.units:,} unit{'s' * (found.units != 1)}"
    if found.seconds is None:
        of = f" of {', '.join(found.unknown)}" if found.unknown else ""
        return f"{runs}. No run{of} is recorded here, so what that takes is not known yet."
    took = [f"{_format_spread(found.seconds, format_seconds)} of work"]
    if found.clock:
        threads = f"{found.threads} round{'s' * (found.threads != 1)} at once"
        took.append(f"{_format_spread(found.clock, format_seconds)} by the clock with {threads}")
    if found.cost:
        took.append(_format_spread(found.cost, "${:,.2f}".format))
    if found.tokens:
        took.append(f"{_format_spread(found.tokens, '{:,.0f}'.format)} tokens")
    return f"{runs}: {', '.join(took)}, judging by {found.recorded:,} recorded runs."


def format_seconds(seconds: float) -> str:
    """Format seconds for people: 45 s, 12 min, 3.5 h, 2.1 days."""
    for most, unit, words in ((120, 1, "{:.0f} s"), (7_200, 60, "{:.0f} min"), (172_800, 3_600, "{:.1f} h")):
        if seconds < most:
            return words.format(seconds / unit)
    return f"{seconds / 86_400:.1f} days"


def _format_spread(spread: PredictionInterval, words: Any) -> str:
    expected, lower, upper = (words(each) for each in (spread.expected, spread.lower, spread.upper))
    # A spread that rounds to nothing says nothing.
    return f"about {expected}" if lower == upper else f"about {expected} ({lower} to {upper})"
