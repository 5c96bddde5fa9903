"""How often the 95 % intervals that we print hold what they are of, over many samples whose truth is known."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import stats

from experiments.pairwise.proportions import measure_proportion
from tests.support.simulated_units import Floats, SimulatedUnit
from workers.lab.measured_splits import PILOT
from workers.metrics import intervals
from workers.metrics.generated import estimate_area
from workers.metrics.natural import NaturalScores, plan_images, score_natural
from workers.metrics.ranking import area_under_curve
from workers.metrics.strata import draw_strata
from workers.record.estimates import Estimate

Rng = np.random.Generator
Trial = Callable[[Rng], list[tuple[str, float, Estimate]]]
"""One sample: name of each figure, what is true of it, and what we say of it."""
BASE_RATES = (0.1, 0.03, 0.01, 0.004)
PROBE = 5_000
"""Images of a probe: at a base rate of 0.004 it has 20 positives."""
RESAMPLES = 400
"""Checks take 1,000: the ends of an interval are the same on average, and samples come sooner."""
GUESS = "guess"
_FOUND = 0.85
"""Share of the images that a label describes which a cheap judge finds."""
_RATED = 0.7
"""True share of votes for the first of two labels."""


@dataclass(frozen=True)
class Case:
    """Samples of one kind. `name` and `setting` are the first columns of the table."""

    name: str
    setting: str
    trial: Trial


@dataclass(frozen=True)
class Coverage:
    """What came of the samples of a case, for one figure."""

    case: Case
    figure: str
    truth: float
    trials: int
    given: float
    """Share of the samples in which there is an interval."""
    covered: float | None
    """Share of the given intervals that hold the truth."""
    too_low: float | None
    """Share of the given intervals that lie wholly below it."""
    width: float | None
    """Mean width of the given intervals."""
    pointlike: float | None
    """Share of the given intervals of width 0."""


def measure(cases: Sequence[Case], trials: int, processes: int | None = None) -> Iterator[Coverage]:
    """Each case over so many samples; the same for any number of processes."""
    with ProcessPoolExecutor(processes or os.cpu_count()) as pool:
        parts = max(1, trials // 50)
        tasks = [(case, part, trials // parts) for case in cases for part in range(parts)]
        drawn = iter(list(pool.map(_draw, tasks)))
        for case in cases:
            rows = [each for _ in range(parts) for each in next(drawn)]
            for name in dict.fromkeys(name for name, _, _ in rows):
                yield _sum_up(case, name, [(truth, found) for each, truth, found in rows if each == name])


def _draw(task: tuple[Case, int, int]) -> list[tuple[str, float, Estimate]]:
    case, part, count = task
    rng = np.random.default_rng([part, *case.name.encode(), *case.setting.encode()])
    return [each for _ in range(count) for each in case.trial(rng)]


def _sum_up(case: Case, figure: str, rows: Sequence[tuple[float, Estimate]]) -> Coverage:
    bounds = [
        (low, truth, high) for truth, each in rows if (low := each.low) is not None and (high := each.high) is not None
    ]
    count = len(bounds)
    if not count:
        return Coverage(case, figure, rows[0][0], len(rows), 0.0, None, None, None, None)
    return Coverage(
        case,
        figure,
        rows[0][0],
        len(rows),
        count / len(rows),
        sum(low <= truth <= high for low, truth, high in bounds) / count,
        sum(high < truth for _, truth, high in bounds) / count,
        float(np.mean([high - low for low, _, high in bounds])),
        sum(high - low < 1e-9 for low, _, high in bounds) / count,
    )


# --- label checks: r and AUPRC --------------------------------------------------------------------------


def list_label_cases(rates: Sequence[float] = BASE_RATES) -> list[Case]:
    """As many images as a check takes of a probe of `PROBE`, of every kind of unit and label."""
    return [Case(unit.name, f"{unit.base_rate:g}", partial(_check, unit)) for unit in _list_units(rates)]


def list_weighted_cases() -> list[Case]:
    """180 images drawn by strata, as a language model and people judge them, with a guess and without."""
    rates = (0.1, 0.03, 0.01)
    guessed = [unit for unit in _list_units(rates) if unit.kind != "null" or unit.base_rate > rates[-1]]
    without = [SimulatedUnit(kind, 0.1) for kind in ("graded", "sparse")]  # type: ignore[arg-type]
    return [
        Case(f"{unit.name}, weighted, {words}", f"{unit.base_rate:g}", partial(_check_weighted, unit, words == GUESS))
        for units, words in ((guessed, GUESS), (without, "no guess"))
        for unit in units
    ]


def _list_units(rates: Sequence[float]) -> list[SimulatedUnit]:
    units = [
        SimulatedUnit(kind, rate, label)
        for kind in ("graded", "sparse")
        for label in ("right", "narrow", "broad")
        for rate in rates
    ]  # type: ignore[arg-type]
    return units + [SimulatedUnit("null", rate) for rate in rates]


def _check(unit: SimulatedUnit, rng: Rng) -> list[tuple[str, float, Estimate]]:
    acts, there = unit.draw(rng, PILOT)
    further = unit.draw(rng, min(plan_images(int(there.sum()), PILOT), PROBE) - PILOT)
    acts, there = np.append(acts, further[0]), np.append(there, further[1])
    return _name_figures(unit, score_natural(acts, there, seed=_seed(rng), resamples=RESAMPLES))


def _check_weighted(unit: SimulatedUnit, is_guessed: bool, rng: Rng) -> list[tuple[str, float, Estimate]]:
    acts, there = unit.draw(rng, PILOT)
    guess = _guess(unit, there, rng) if is_guessed else None
    if guess is not None:
        further = unit.draw(rng, min(plan_images(int(guess.sum()), PILOT), PROBE) - PILOT)
        acts, there = np.append(acts, further[0]), np.append(there, further[1])
        guess = np.append(guess, _guess(unit, further[1], rng))
    sample = draw_strata(acts, guess, 180, seed=_seed(rng))
    asked = sample.positions
    found = score_natural(acts[asked], there[asked], sample.weights, seed=_seed(rng), resamples=RESAMPLES)
    return _name_figures(unit, found)


def _guess(unit: SimulatedUnit, there: Floats, rng: Rng) -> Floats:
    """What a cheap judge says: it finds `_FOUND` of what the label describes, and half as many images besides."""
    chances = np.where(there > 0, _FOUND, unit.base_rate / 2)
    return (rng.random(len(there)) < chances).astype(np.float64)


def _name_figures(unit: SimulatedUnit, found: NaturalScores) -> list[tuple[str, float, Estimate]]:
    r, precision = unit.truth
    return [("r", r, found.r), ("AUPRC", precision, found.auprc)]


# --- evaluations: shares, gaps, votes, counts ---------------------------------------------------------------


def list_summary_cases() -> list[Case]:
    """The other intervals, each by the function that evaluations call."""
    made = [
        *((f"median over {n} units", partial(_median, n)) for n in (12, 20, 30, 60)),
        *((f"gap closed, {n} seeds", partial(_gap, n)) for n in (3, 5, 10)),
        *(
            (f"paired share, {one:g} less {two:g}, {n} units", partial(_paired, n, one, two))
            for one, two in ((0.9, 0.25), (0.97, 0.9))
            for n in (5, 12, 20)
        ),
        *(
            (f"10 votes each on {n} units, intraclass correlation {icc:g}", partial(_votes, n, icc))
            for icc in (0.1, 0.3)
            for n in (21, 85)
        ),
        *((f"counts of mean {mean:g} in {n} runs", partial(_counts, n, mean)) for n, mean in ((3, 0.5), (30, 0.05))),
        *((f"a share of 0.9 in {n}", partial(_share, n)) for n in (5, 12, 85)),
        *((f"mean of {n} scores", partial(_mean, n)) for n in (5, 12, 30)),
        ("AUC of 7 and 7", _area),
    ]
    return [Case(name, "", trial) for name, trial in made]


def _seed(rng: Rng) -> int:
    return int(rng.integers(2**31))


def _median(n: int, rng: Rng) -> list[tuple[str, float, Estimate]]:
    shape = stats.beta(8, 1.5)
    return [("median", float(shape.median()), intervals.estimate_median(shape.rvs(n, random_state=rng)))]


def _mean(n: int, rng: Rng) -> list[tuple[str, float, Estimate]]:
    shape = stats.beta(8, 1.5)
    return [("mean", float(shape.mean()), intervals.estimate_mean(shape.rvs(n, random_state=rng)))]


def _gap(n: int, rng: Rng) -> list[tuple[str, float, Estimate]]:
    base, ceiling = rng.normal(0.65, 0.02, n), rng.normal(0.80, 0.02, n)
    reached = base + 0.85 * (ceiling - base) + rng.normal(0, 0.015, n)
    return [("share", 0.85, intervals.estimate_gap(reached, base, ceiling))]


def _paired(n: int, one: float, two: float, rng: Rng) -> list[tuple[str, float, Estimate]]:
    first, second = (rng.random(n) < each for each in (one, two))
    return [("difference", one - two, intervals.estimate_difference(first, second))]


def _votes(n: int, icc: float, rng: Rng) -> list[tuple[str, float, Estimate]]:
    spread = 1 / icc - 1
    of_units = rng.beta(_RATED * spread, (1 - _RATED) * spread, n)
    votes = [(unit, bool(each)) for unit, rate in enumerate(of_units) for each in rng.random(10) < rate]
    found = measure_proportion(votes)
    return [("share", _RATED, Estimate(found.value, found.low, found.high, found.n))]


def _counts(n: int, mean: float, rng: Rng) -> list[tuple[str, float, Estimate]]:
    return [("mean", mean, intervals.estimate_counts(rng.poisson(mean, n)))]


def _share(n: int, rng: Rng) -> list[tuple[str, float, Estimate]]:
    return [("share", 0.9, intervals.estimate_share(int(rng.binomial(n, 0.9)), n))]


def _area(rng: Rng) -> list[tuple[str, float, Estimate]]:
    area = area_under_curve(rng.normal(1.5, 1, 7), rng.normal(0, 1, 7))
    return [("area", float(stats.norm.cdf(1.5 / np.sqrt(2))), estimate_area(area, 7, 7))]
