"""Tests of labels side by side: medians by source, each label, rank correlations; nothing without such figures."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.models import EvaluationItem, ItemStatus, LabelCheck
from workers.jobs.evaluations.tables_of_tests import TESTS, read_test_scores, tabulate_tests
from workers.record.evaluations import ResultTable


def item(place: int, source: str = "agent", **scores: Any) -> EvaluationItem:
    scores = {"pearson": place / 10, "detection": 0.5 + place / 20, "intruder": 1 - place / 10} | scores
    return EvaluationItem(
        pk=place,
        source=source,
        unit_name=f"toybox / layer4 / unit {place}",
        label=f"label {place}",
        status=ItemStatus.DONE,
        scores=scores,
    )


def by_key(items: list[EvaluationItem], sources: list[str]) -> dict[str, ResultTable]:
    return {table.key: table for table in tabulate_tests(items, sources)}


def test_labels_stand_with_all_tests_and_the_other_source_with_its_medians() -> None:
    items = [*(item(place) for place in range(8)), *(item(place, "shuffled", detection=0.5) for place in range(8))]
    found = by_key(items, ["agent", "shuffled"])
    assert set(found) == {"tests", "tests.labels", "tests.own", "tests.all"}
    first = found["tests.labels"].rows[3]
    assert [cell.text for cell in first[:2]] == ["layer4 / unit 3", "label 3"]
    assert [cell.value for cell in first[2:]] == [0.3, None, 0.65, None, None, None, 0.7, None]
    assert first[0].item == 3, "so that it is hidden from who is to judge the unit"
    detection = next(row for row in found["tests"].rows if row[0].text == TESTS["detection"])
    assert (detection[1].value, detection[1].n, detection[2].value) == (pytest.approx(0.675), 8, 0.5)


def test_agreement_is_by_rank_and_blank_where_it_says_nothing() -> None:
    rows = by_key([item(place) for place in range(8)], ["agent"])["tests.own"].rows
    r = {words: cell.value for words, cell in zip(TESTS.values(), rows[0][1:], strict=True)}
    assert r[TESTS["detection"]] == pytest.approx(1)
    assert r[TESTS["intruder"]] == pytest.approx(-1)
    assert r[TESTS["simulation"]] is None
    few = by_key([item(place) for place in range(4)], ["agent"])["tests.own"].rows
    assert all(cell.value is None for row in few for cell in row[1:])


def test_an_evaluation_from_before_has_no_such_tables() -> None:
    assert tabulate_tests([item(1, detection=None)], ["agent"]) == []
    assert tabulate_tests([], []) == []
    assert read_test_scores(LabelCheck(result={"natural": {"images": 3}})) == {}
    assert read_test_scores(LabelCheck()) == {}
