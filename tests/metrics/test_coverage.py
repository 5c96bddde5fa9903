"""Which of the intervals that we print hold the truth as often as they say, and which are known not to: the table of
`make bench` in a small size. `FAILING` has those that 200 samples can tell; a mend takes its own out of it."""

from __future__ import annotations

import pytest

from tests.support.interval_coverage import Coverage, list_label_cases, list_summary_cases, list_weighted_cases, measure

TRIALS = 200
ENOUGH = 0.88
"""Of 200 intervals that each hold the truth with a chance of 0.95, fewer do once in 10,000 tries."""
FAILING = {
    ("counts of mean 0.05 in 30 runs", "", "mean"),
    ("gap closed, 3 seeds", "", "share"),
    ("paired share, 0.9 less 0.25, 5 units", "", "difference"),
    ("paired share, 0.97 less 0.9, 5 units", "", "difference"),
    ("paired share, 0.97 less 0.9, 12 units", "", "difference"),
    ("10 votes each on 21 units, intraclass correlation 0.3", "", "share"),
    ("10 votes each on 85 units, intraclass correlation 0.3", "", "share"),
    ("counts of mean 0.5 in 3 runs", "", "mean"),
}
HOLDING = {
    ("graded, right", "0.1", "r"),
    *(("sparse, right", rate, figure) for rate in ("0.1", "0.01", "0.004") for figure in ("r", "AUPRC")),
    *(("null", rate, "r") for rate in ("0.1", "0.01", "0.004")),
    ("graded, right, weighted 20%", "0.1", "r"),
    *((f"sparse, right, weighted {uniform}%", "0.1", figure) for uniform in (20, 50) for figure in ("r", "AUPRC")),
    ("median over 60 units", "", "median"),
    ("a share of 0.9 in 12", "", "share"),
    ("AUC of 7 and 7", "", "area"),
}
LISTS = [
    lambda: [case for case in list_label_cases((0.1, 0.01, 0.004)) if case.name in {"null", "sparse, right"}],
    lambda: [case for case in list_label_cases((0.1,)) if case.name == "graded, right"],
    list_weighted_cases,
    list_summary_cases,
]


def key(row: Coverage) -> tuple[str, str, str]:
    return row.case.name, row.case.setting, row.figure


@pytest.mark.more
def test_intervals_hold_the_truth_or_are_known_not_to() -> None:
    rows = {key(row): row.covered or 0.0 for cases in LISTS for row in measure(cases(), TRIALS, processes=2)}
    assert rows.keys() >= FAILING | HOLDING
    assert {name: rows[name] for name in HOLDING if rows[name] < ENOUGH} == {}
    assert {name: rows[name] for name in FAILING if rows[name] >= ENOUGH} == {}
