"""Figures of images made from a label, as the papers print them."""

from __future__ import annotations

import numpy as np
import pytest

from workers.metrics.generated import score_generated, score_predictiveness


def test_the_figures_of_maia_and_cosy_by_hand() -> None:
    found = score_generated([4.0, 6.0], [1.0, 5.0, 0.0], [0.0, 2.0, 5.0, 5.0])
    assert (found.positive_mean, found.neutral_mean) == (5.0, 2.0)
    assert found.auc.value == pytest.approx(5 / 6)
    assert found.cosy_auc == pytest.approx((2 + 4) / 8), "positive images against controls alone"
    assert found.cosy_mad == pytest.approx((5 - 3) / np.std([0, 2, 5, 5]))
    assert (found.positives, found.neutrals, found.controls, found.unusable) == (2, 3, 4, 0)


def test_seeds_of_a_prompt_count_as_one_piece_of_evidence() -> None:
    rng = np.random.default_rng(1)
    high, low = rng.normal(1, 1, 7), rng.normal(0, 1, 7)
    once = score_generated(high, low)
    often = score_generated(np.repeat(high[:, None], 5, 1), np.repeat(low[:, None], 5, 1))
    assert often.auc == once.auc
    assert often.positives == 35
    assert once.auc.n == 14


def test_images_that_could_not_be_made_are_counted() -> None:
    found = score_generated([[np.nan, np.nan], [3.0, np.nan]], [1.0, 2.0])
    assert (found.positives, found.unusable) == (1, 3)
    assert found.auc.n == 3
    assert found.auc.value == 1.0


def test_controls_without_spread_have_a_mad_of_0_and_none_have_none() -> None:
    assert score_generated([1.0], [0.0], [2.0, 2.0]).cosy_mad == 0.0
    without = score_generated([1.0], [])
    assert (without.cosy_mad, without.cosy_auc, without.auc.value, without.neutral_mean) == (None, None, None, None)
    assert without.auc.why
    assert score_generated([], []).positive_mean is None


def test_predictiveness_counts_images_on_their_side_of_the_threshold() -> None:
    found = score_predictiveness([9, 8, 5, 1], [0, 4.9, 5.1, np.nan], 10.0)
    assert found.share.value == pytest.approx(5 / 7)
    assert found.share.n == 7
    assert (found.threshold, found.unusable) == (0.5, 1)
    sweep = dict(found.sweep)
    assert sweep[0.5] == found.share.value
    assert sweep[0.85] == pytest.approx((1 + 3) / 7)
    assert sweep[1.0] == pytest.approx(3 / 7)


@pytest.mark.parametrize("mean", [None, 0.0, -2.0, float("nan")])
def test_predictiveness_needs_an_exemplar_mean(mean: float | None) -> None:
    found = score_predictiveness([1.0], [0.0], mean)
    assert (found.share.value, found.sweep) == (None, ())
    assert "exemplars" in found.share.why
    assert score_predictiveness([], [], 1.0).share.why == "nothing was counted"
