"""Every interval that we print holds the truth as often as it says, and none is a point: the table of `make bench` in a
small size."""

from __future__ import annotations

import pytest

from tests.support.interval_coverage import Coverage, list_label_cases, list_summary_cases, list_weighted_cases, measure

TRIALS = 200
ENOUGH = 0.88
"""Of 200 intervals that each hold the truth with a chance of 0.95, fewer do once in 10,000 tries."""
LISTS = [
    lambda: [case for case in list_label_cases((0.1, 0.01, 0.004)) if case.name in {"null", "sparse, right"}],
    lambda: [case for case in list_label_cases((0.1,)) if case.name.startswith("graded")],
    lambda: [case for case in list_weighted_cases() if case.setting != "0.03" and "narrow" not in case.name],
    list_summary_cases,
]


def name_of(row: Coverage) -> str:
    return f"{row.case.name} {row.case.setting} {row.figure}"


@pytest.mark.more
@pytest.mark.parametrize("cases", LISTS)
def test_intervals_hold_the_truth_as_often_as_they_say(cases) -> None:
    rows = list(measure(cases(), TRIALS, processes=2))
    given = [row for row in rows if row.given]
    assert len(given) > 5
    assert [name_of(row) for row in rows if not row.given] == []
    assert {name_of(row): row.covered for row in given if (row.covered or 0) < ENOUGH} == {}
    assert {name_of(row): row.pointlike for row in given if row.pointlike} == {}
