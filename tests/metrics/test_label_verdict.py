"""The rule of reflection: written checks for each direction, and simulated checks of synthetic neurons."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.simulated_checks import TRUE, Eyes, draw_cases
from workers.metrics.label_verdict import BRIGHTEST, MANY, find_best_cut, judge_label
from workers.metrics.natural import score_natural
from workers.record.estimates import Estimate
from workers.record.label_checks import CheckImage, CheckResult, GeneratedResult, NaturalResult, Reference

N, LIT = 1_000, 100
TRUTH = np.arange(N) < LIT


def check(
    said: np.ndarray, truth: np.ndarray = TRUTH, *, known: bool = True, auc: float | None = 1.0, lit: float = 1.0
) -> CheckResult:
    """A check of a unit that answers 8 and more to the truth, and about 0 to all else. `lit`: share of drawn images."""
    rng = np.random.default_rng(3)
    activations = 9.0 * truth + rng.uniform(-1, 1, len(truth))
    scores = score_natural(activations, said, resamples=0)
    ceiling = Reference("the truth", score_natural(activations, truth, resamples=0).r.value) if known else None
    natural = NaturalResult(
        pearson=scores.r,
        ceiling=ceiling,
        activations=tuple(activations),
        expected=tuple(said.astype(float)),
    )
    drawn = tuple(CheckImage(f"{at}", "", 9.0 * (at < 24 * lit), 1.0, f"prompt {at}") for at in range(24))
    return CheckResult(natural, GeneratedResult(auc=Estimate(auc), exemplar_mean=9.0, positive=drawn))


@pytest.mark.parametrize("known", [True, False])
def test_the_truth_passes_however_rare_it_is(known: bool) -> None:
    for count in (3, BRIGHTEST - 6, MANY, 300):
        truth = np.arange(N) < count
        verdict = judge_label(check(truth, truth, known=known))
        assert verdict.passed, count
        assert verdict.direction == ""


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("said", "direction"),
    [
        (np.arange(N) < LIT / 2, "too narrow"),
        (np.arange(N) < 2 * LIT, "too broad"),
        (np.arange(N) >= N - LIT, "elsewhere"),
    ],
)
def test_a_wrong_label_fails_by_r_and_is_told_its_direction(said: np.ndarray, direction: str, known: bool) -> None:
    verdict = judge_label(check(said, known=known))
    assert verdict.failed == ("pearson",)
    assert verdict.direction == direction


def test_a_label_that_no_image_shows_fails_where_others_are_bright() -> None:
    nothing = np.zeros(N, bool)
    verdict = judge_label(check(nothing))
    assert (verdict.failed, verdict.direction) == (("described",), "elsewhere")
    dark = judge_label(check(nothing, nothing))
    assert dark.passed  # no image is bright, which is not held against it
    assert "described" not in dark.figures


def test_drawn_images_that_stay_dark_fail_a_label_that_natural_ones_support() -> None:
    assert judge_label(check(TRUTH, auc=0.7)).failed == ("generated_auc",)
    assert judge_label(check(TRUTH, lit=0.25)).failed == ("bright_positives",)


def test_what_could_not_be_measured_is_not_held_against_the_label() -> None:
    drawn = check(TRUTH).generated
    assert judge_label(CheckResult(None, drawn)).passed
    assert drawn is not None
    assert judge_label(CheckResult(None, replace(drawn, exemplar_mean=None))).passed
    with pytest.raises(ValueError, match="no verdict"):
        judge_label(check(TRUTH, auc=None))


def test_no_label_correlates_better_than_the_best_cut() -> None:
    rng = np.random.default_rng(5)
    activations = rng.exponential(size=12)
    labels = [[bool(number >> at & 1) for at in range(12)] for number in range(1, 2**12 - 1)]
    assert find_best_cut(activations) == pytest.approx(max(np.corrcoef(activations, each)[0, 1] for each in labels))
    assert find_best_cut(np.ones(12)) is None


@pytest.mark.more
def test_true_labels_of_synthetic_neurons_pass_and_those_wrong_by_one_property_fail(tmp_path: Path) -> None:
    """A fortieth of the simulation behind the thresholds: every second neuron of a seed, images drawn for ten."""
    eyes = Eyes(tmp_path, [0], dataset=2_000)
    cases = list(draw_cases(0))[::2]
    passed, counted = Counter[str](), Counter[str]()
    for case in cases:
        result = eyes.check(case)
        assert result.generated is not None
        supposed = replace(result, generated=replace(result.generated, auc=Estimate(1.0)))
        counted[case.kind] += 1
        passed[case.kind] += judge_label(supposed).passed
    assert passed[TRUE] == counted[TRUE] > 20
    wrong = sum(counted.values()) - counted[TRUE]
    assert sum(passed.values()) - passed[TRUE] <= 0.1 * wrong
    true = [each for each in cases if each.kind == TRUE]
    assert all(judge_label(eyes.check(each, draw=True)).passed for each in true[:: len(true) // 10])
