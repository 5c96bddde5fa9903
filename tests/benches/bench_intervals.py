"""How often each interval that we print holds the truth, and how wide it is. Set MAIA_BENCH_TRIALS for other than 2,000
samples of each case."""

from __future__ import annotations

import os
from collections.abc import Iterable

import pytest

from tests.support.interval_coverage import Coverage, list_label_cases, list_summary_cases, list_weighted_cases, measure

TRIALS = int(os.environ.get("MAIA_BENCH_TRIALS", "2000"))


@pytest.mark.bench
@pytest.mark.timeout(0)
@pytest.mark.parametrize("cases", [list_summary_cases, list_weighted_cases, list_label_cases])
def test_print_how_often_intervals_hold_the_truth(cases) -> None:
    print_table(measure(cases(), TRIALS))


def print_table(rows: Iterable[Coverage]) -> None:
    """A row for each figure of each case."""
    print(f"\n{'':58} {'figure':10} {'truth':>6} {'given':>6} {'covers':>6} {'below':>6} {'width':>6} {'of 0':>6}")
    for row in rows:
        cells = (row.truth, row.given, row.covered, row.too_low, row.width, row.pointlike)
        told = " ".join(f"{each:6.3f}" if each is not None else f"{'-':>6}" for each in cells)
        print(f"{row.case.name:50} {row.case.setting:>7} {row.figure:10} {told}", flush=True)
