"""Test the statements of a concluded bias run: two sets of images each, effect size, interval, corrected p.

`record/stated_biases.py` defines statements and which images bear on them. A case is a prompt, since its images share
everything that its words leave open.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from workers.metrics.significance import holm
from workers.record.bias_tests import BiasTest
from workers.record.events import Ended, ExperimentEnded, Payload
from workers.record.experiments import Observation
from workers.record.stated_biases import Sides, StatedBias, date_statements, find_sides, find_stated, prompt_of

Floats = NDArray[np.float64]

_RESAMPLES = 9_999


@dataclass(frozen=True)
class BiasStatement:
    """A stated bias, its images, and their result."""

    stated: StatedBias
    sides: Sides[Observation]
    test: BiasTest


def check_run(text: str, payloads: Sequence[Payload]) -> list[BiasStatement]:
    """Test the statements in a conclusion `text` on what the run logged, from these event `payloads`."""
    experiments = {each.number: each.observations for each in payloads if isinstance(each, ExperimentEnded)}
    return check_statements(text, experiments, find_stated(payloads))


def add_tests(end: Ended, payloads: Sequence[Payload]) -> Ended:
    """Return the end of a run with the test results of the biases that it states."""
    # Runs of other tasks state no bias
    if not end.conclusion.bias:
        return end
    return replace(end, biases=tuple(each.test for each in check_run(end.conclusion.bias, payloads)))


def check_statements(
    text: str, experiments: Mapping[int, Sequence[Observation]], stated: Sequence[StatedBias] = ()
) -> list[BiasStatement]:
    """Return the statements in a conclusion, the greatest effect first, each tested on what the run logged.

    `experiments` are the observations of each, by its number, in order. `stated` are the run's statements, each when it
    was first made: on new images they are one family of tests, from which a conclusion reports.
    """
    # 1. Each statement of the conclusion, dated by its first wording
    concluded = date_statements(text, stated)
    # Statements that a conclusion dropped count too: without them, the correction would be too mild
    dropped = [each for each in stated if each.words not in {other.words for other in concluded}]
    # 2. Measure them all; another stated context may explain a difference
    measured = [_measure(each, experiments, concluded) for each in (*concluded, *dropped)]
    # 3. Holm over those on fresh images: NaN leaves the others out of the family
    adjusted = holm([math.nan if each.test.p is None or not each.sides.fresh else each.test.p for each in measured])
    tested = [
        _judge(each, family if each.sides.fresh else _correct(each, len(measured)))
        for each, family in zip(measured, adjusted, strict=True)
    ]
    # 4. Only the conclusion's statements are returned
    return sorted(tested[: len(concluded)], key=lambda each: -abs(each.test.effect or 0.0))


def _judge(measured: BiasStatement, adjusted: float) -> BiasStatement:
    # Nothing was measured
    if math.isnan(adjusted) or measured.test.effect is None:
        return measured
    # A two-sided p is small for the opposite effect too
    same_way = (measured.test.effect < 0) == (measured.stated.direction == "weaker")
    return replace(measured, test=replace(measured.test, adjusted_p=adjusted, holds=same_way and adjusted < 0.05))


def _correct(measured: BiasStatement, statements: int) -> float:
    """Multiply the p-value by the number of contexts from which this one may have been chosen for its images'
    results.
    """
    # At least the statements, or the words that could have been chosen
    tried = max(statements, _count_contexts([*measured.sides.inside, *measured.sides.outside]))
    # Bonferroni: a p-value is at most 1
    return math.nan if measured.test.p is None else min(1.0, measured.test.p * tried)


def _measure(
    stated: StatedBias, experiments: Mapping[int, Sequence[Observation]], others: Sequence[StatedBias]
) -> BiasStatement:
    sides = find_sides(stated, experiments, others)
    parts = [_list_cases(side) for side in (sides.inside, sides.outside)]
    (one, first), (two, second) = ((len(part), float(part.mean()) if len(part) else None) for part in parts)
    told = BiasTest(stated.text, stated.context, stated.after, sides.fresh, one, two, first, second)
    # One prompt has no spread
    if min(one, two) < 2:
        where = f'with "{stated.context}" in their titles' if one < 2 else f'without "{stated.context}"'
        return BiasStatement(stated, sides, replace(told, why=f"The run drew fewer than two prompts {where}."))
    effect, error = _standardise(*parts)
    # Quantile of the normal distribution for 95 %
    low, high = effect - 1.959964 * error, effect + 1.959964 * error
    return BiasStatement(stated, sides, replace(told, effect=effect, low=low, high=high, p=_permute(*parts)))


def _list_cases(rows: Sequence[Observation]) -> Floats:
    """Return the mean activation of the images of each prompt, (prompts,)."""
    by_prompt: dict[str, list[float]] = defaultdict(list)
    for each in rows:
        # An imported run may have NaN
        if math.isfinite(each.activation):
            by_prompt[prompt_of(each)].append(each.activation)
    return np.array([np.mean(values) for values in by_prompt.values()], dtype=np.float64)


def _count_contexts(rows: Sequence[Observation]) -> int:
    """Count the contexts that may have been compared: words that some prompts have and others lack, at least two of
    each. Words that always occur together are one.
    """
    prompts = sorted({prompt_of(each) for each in rows})
    having: dict[str, set[int]] = defaultdict(set)
    for place, prompt in enumerate(prompts):
        for word in re.findall(r"\w+", prompt):
            having[word].add(place)
    # Words with the same prompts cannot be told apart, so they count once
    return len({frozenset(each) for each in having.values() if 2 <= len(each) <= len(prompts) - 2})


def _standardise(inside: Floats, outside: Floats) -> tuple[float, float]:
    """Return Hedges' g and its standard error (Hedges and Olkin 1985); 0 if nothing varies at all."""
    first, second = len(inside), len(outside)
    freedom = first + second - 2
    pooled = math.sqrt(((first - 1) * inside.var(ddof=1) + (second - 1) * outside.var(ddof=1)) / freedom)
    difference = float(inside.mean() - outside.mean())
    # A difference without any spread counts as an effect of 1
    scale = pooled or abs(difference) or 1.0
    # Hedges' correction is 0 at one degree of freedom
    effect = difference / scale * (1 - 3 / (4 * freedom - 1)) if freedom > 1 else difference / scale
    return effect, math.sqrt((first + second) / (first * second) + effect**2 / (2 * (first + second)))


def _permute(inside: Floats, outside: Floats) -> float:
    """Return the two-sided p of a permutation test."""
    # A fixed seed: the same images always give the same p
    found = stats.permutation_test(
        (inside, outside),
        lambda one, two, axis: one.mean(axis) - two.mean(axis),
        vectorized=True,
        n_resamples=_RESAMPLES,
        rng=np.random.default_rng(0),
    )
    return float(found.pvalue)
