"""Table 2 on features that were made: which rows there are, what each is fitted on, the headline, the repair."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from workers.spurious.features import GroupedFeatures
from workers.spurious.regression import l1_units
from workers.spurious.repair import repair_head
from workers.spurious.table import (
    Splits,
    Table2,
    compute_fixed_rows,
    compute_headline,
    compute_rows,
    draw_balanced,
    trace_units,
)

NAMES = ("car", "boat", "duck", "train")
PLACES = ("grass", "sand", "snow", "wood")


def features(cells, seed):
    """Units 0 to 3 tell the class, faintly; 4 to 7 the ground, plainly; 8 to 11 nothing."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(len(cells), 12))
    for at in range(4):
        values[:, at] += 2.0 * (cells[:, 0] == at)
        values[:, 4 + at] += 4.0 * (cells[:, 1] == at)
    return GroupedFeatures(values.astype(np.float32), cells)


@pytest.fixture(scope="module")
def splits():
    own = [(at, at) for at in range(4) for _ in range(45)] + [(at, (at + 1) % 4) for at in range(4) for _ in range(5)]
    every = [(a, b) for a in range(4) for b in range(4)]
    test = [(a, b) for a, b in every if a != b]
    parts = [features(np.array(each), seed) for seed, each in enumerate((own, every * 30, test * 40))]
    return Splits(*parts, NAMES, PLACES)


@pytest.fixture(scope="module")
def table(splits):
    chosen = l1_units(splits.validation.values, splits.validation.classes, 8)
    head = np.zeros((4, 12), np.float32), np.zeros(4, np.float32)
    head[0][:, :4], head[0][:, 4:8] = np.eye(4), 2 * np.eye(4)
    fixed = compute_fixed_rows(splits, head, chosen, 0)
    rows = compute_rows(splits, range(8), [0, 1, 2, 3], 0)
    curve = trace_units(splits, [0, 1, 2, 3])
    units = tuple(int(unit) for unit in chosen.used)
    return Table2("d", "m", 0, NAMES, PLACES, units, (0, 1, 2, 3), (), (*fixed.rows, *rows), fixed.l1_curve, curve)


def test_every_row_of_the_paper_is_there_regularised_and_not_where_that_makes_sense(table):
    both = {"l1_all", "l1_top", "agent", "balanced_all", "balanced_top"}
    rows = {(row.key, row.regularised) for row in table.rows}
    assert rows == {(key, way) for key in both for way in (True, False)} | {("original", False), ("random", False)}
    assert {row.data for row in table.rows if row.key.startswith("balanced")} == {"balanced"}
    assert table.row("random", regularised=False).repeats == 100
    assert table.row("balanced_top", regularised=True).repeats == 10


def test_units_that_tell_the_class_beat_those_that_a_bias_suggests(table):
    agent, rival = table.row("agent", regularised=False), table.row("l1_top", regularised=True)
    assert agent.accuracy > rival.accuracy + 0.2
    assert agent.accuracy > table.row("original", regularised=False).accuracy
    assert rival.units == agent.units == 4


def test_groups_are_class_and_ground_the_worst_first(table, splits):
    row = table.row("agent", regularised=False)
    assert [each.accuracy for each in row.groups] == sorted(each.accuracy for each in row.groups)
    assert row.worst == row.groups[0]
    assert {(each.class_name, each.ground) for each in row.groups} == {
        (a, b) for at, a in enumerate(NAMES) for ground, b in enumerate(PLACES) if at != ground
    }
    assert sum(each.images for each in row.groups) == len(splits.test)
    assert row.accuracy == pytest.approx(np.mean([each.accuracy for each in row.groups]))


def test_curves_tell_accuracy_by_number_of_units(table):
    assert [point.units for point in table.agent_curve] == [1, 2, 3, 4]
    units = [point.units for point in table.l1_curve]
    assert units == sorted(set(units))
    assert units[0] < 4 < units[-1]


def test_a_balanced_set_has_every_cell_equally_often_and_others_by_number(splits):
    part = draw_balanced(splits.balanced, 0, 0)
    _, counts = np.unique(part.cells, axis=0, return_counts=True)
    assert counts.tolist() == [20] * 16
    assert not np.array_equal(part.values, draw_balanced(splits.balanced, 0, 1).values)


def test_the_headline_is_of_means_over_seeds(table):
    found = compute_headline([table])
    agent, l1, balanced = (
        table.row(key, regularised=way).accuracy
        for key, way in (("agent", False), ("l1_top", True), ("balanced_top", True))
    )
    assert found.share.value == pytest.approx((agent - l1) / (balanced - l1))
    assert found.share.low is None  # one seed has no spread
    worse = replace(table, rows=tuple(replace(row, accuracy=row.accuracy / 2) for row in table.rows))
    both = compute_headline([table, worse])
    assert both.share.n == 2
    assert both.agent == pytest.approx(agent * 0.75)
    assert (both.share.low, both.share.why) == (None, "the gap itself may be 0")  # of two seeds that differ twofold
    parts = {"agent": 0.97}
    near = replace(table, rows=tuple(replace(row, accuracy=row.accuracy * parts.get(row.key, 1)) for row in table.rows))
    three = compute_headline([table, near, table]).share
    assert three.low <= three.value <= three.high


def test_without_a_selective_unit_there_is_no_headline(table, splits):
    assert compute_rows(splits, range(8), [], 0) == []
    fixed = tuple(row for row in table.rows if row.key in ("original", "l1_all"))
    assert compute_headline([replace(table, rows=fixed)]) is None


def test_a_table_is_plain_json(table):
    assert msgspec.json.decode(msgspec.json.encode(table), type=Table2) == table


def test_units_that_know_the_ground_are_left_out_of_the_head_and_the_worst_group_gains(splits):
    head = np.zeros((4, 12), np.float32), np.zeros(4, np.float32)
    head[0][:, :4], head[0][:, 4:8] = np.eye(4), np.eye(4)
    found = repair_head(splits, head, [4, 5, 6, 7])
    assert found.after > found.before + 0.3
    assert found.worst_after > found.worst_before
    assert [each.before for each in found.groups] == sorted(each.before for each in found.groups)
    assert head[0][0, 4] == 1  # the head that was given is left as it was


def test_weighing_units_by_one_changes_nothing(splits):
    head = np.random.default_rng(0).normal(size=(4, 12)).astype(np.float32), np.zeros(4, np.float32)
    found = repair_head(splits, head, [0, 5], factor=1.0)
    assert found.before == found.after


@pytest.mark.parametrize(("units", "factor", "reason"), [([12], 0.0, "no unit 12"), ([1], float("nan"), "by nan")])
def test_a_repair_that_cannot_be_made_is_refused(splits, units, factor, reason):
    head = np.zeros((4, 12), np.float32), np.zeros(4, np.float32)
    with pytest.raises(ValueError, match=reason):
        repair_head(splits, head, units, factor)
