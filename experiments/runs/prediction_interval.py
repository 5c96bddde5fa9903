"""Forecast cost and time of future runs from past ones: a sum with one-sided 90 % prediction bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import mean, stdev

from experiments.models import Run
from workers.record.estimates import find_student
from workers.record.statuses import Status

RECORDED = 300
"""Number of newest runs that are read."""
SURE = 0.9
"""Nine of ten sums are at most the upper bound."""
ENOUGH = 5
"""From this number of runs of the same model and toolset on, those of others are ignored."""
ONCE = 2.0
"""A single recorded value has no known spread: the upper sum is then twice as large."""


@dataclass(frozen=True)
class PredictionInterval:
    """A sum over many runs, forecast from recorded ones: the expected value, and the upper bound of nine in ten."""

    expected: float
    upper: float

    @classmethod
    def of(cls, values: Sequence[float], count: int) -> PredictionInterval | None:
        """Return the sum of `count` more runs like the recorded ones; None if nothing is recorded."""
        if not values:
            return None
        expected, recorded = mean(values) * count, len(values)
        if recorded == 1:
            return cls(expected, ONCE * expected)
        # The upper limit of a prediction by Student's t: the sum varies, and so does the mean of few records.
        error = stdev(values) * sqrt(count + count * count / recorded)
        return cls(expected, expected + find_student(recorded - 1, SURE) * error)

    @property
    def lower(self) -> float:
        """Return the lower bound of nine in ten."""
        # As far below as above; time and money are never negative.
        return max(0.0, 2 * self.expected - self.upper)

    def __add__(self, other: PredictionInterval) -> PredictionInterval:
        """Add two sums that vary independently."""
        # Independent deviations add in squares.
        beyond = sqrt((self.upper - self.expected) ** 2 + (other.upper - other.expected) ** 2)
        return PredictionInterval(self.expected + other.expected, self.expected + other.expected + beyond)


@dataclass(frozen=True)
class RecordedRun:
    """Usage of a run that ended by itself: seconds of work, US dollars, tokens, rounds."""

    seconds: float
    cost: float
    tokens: int
    rounds: int


def read_recorded(backbone: str, backbone_model: str, **chosen: object) -> list[RecordedRun]:
    """Return the newest runs of a backbone that ended by themselves; `chosen` are further conditions of the query."""
    ended = Run.objects.filter(
        backbone=backbone,
        backbone_model=backbone_model,
        # Runs that failed or were stopped took less than a whole run takes.
        status__in=[Status.CONCLUDED, Status.LIMIT_REACHED],
        seconds__gt=0,
        **chosen,
    )
    names = ("seconds", "cost", "prompt_tokens", "completion_tokens", "rounds")
    rows = ended.order_by("-pk").values_list(*names)[:RECORDED]
    return [RecordedRun(seconds, cost, sent + got, rounds) for seconds, cost, sent, got, rounds in rows]


def read_alike(backbone: str, backbone_model: str, *narrower: Mapping[str, object]) -> list[RecordedRun]:
    """Return runs of a backbone under the first of these conditions that enough of them meet, else all there are."""
    for chosen in narrower:
        if len(found := read_recorded(backbone, backbone_model, **chosen)) >= ENOUGH:
            return found
    return read_recorded(backbone, backbone_model)


def add(parts: Sequence[PredictionInterval | None]) -> PredictionInterval | None:
    """Return the sum of the known ones."""
    known = [each for each in parts if each is not None]
    return sum(known[1:], known[0]) if known else None
