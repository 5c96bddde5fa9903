"""r and the base rate, corrected for a judge that errs."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from workers.metrics.judge_correction import correct_figures
from workers.metrics.judge_error import measure_judge_error
from workers.record.label_checks import JudgeError

FALSE_POSITIVES, FALSE_NEGATIVES = 0.1, 0.2
Floats = NDArray[np.float64]


def err(rng: np.random.Generator, truth: NDArray[np.bool_]) -> Floats:
    draw = rng.random(len(truth))
    return np.where(truth, draw >= FALSE_NEGATIVES, draw < FALSE_POSITIVES).astype(np.float64)


def known(rng: np.random.Generator, count: int) -> JudgeError:
    """What the judge does on as many images that show it as do not."""
    truth = np.repeat([True, False], count)
    return measure_judge_error(err(rng, truth).tolist(), truth.tolist())


def of_shares(wrong: float, missed: float, count: int = 100) -> JudgeError:
    said = [float(n < (1 - missed) * count) for n in range(count)] + [float(n < wrong * count) for n in range(count)]
    return measure_judge_error(said, [True] * count + [False] * count)


def test_errors_that_go_with_nothing_are_undone_to_the_digit() -> None:
    """Of each activation, present and absent, as many are mistaken as the judge's shares say."""
    activations, truth, answers = [], [], []
    for value, present, absent in ((0.0, 10, 90), (1.0, 30, 70), (2.0, 50, 50)):
        activations += [value] * 100
        truth += [1.0] * present + [0.0] * absent
        answers += [0.0] * (present // 5) + [1.0] * (present - present // 5)
        answers += [1.0] * (absent // 10) + [0.0] * (absent - absent // 10)
    found = correct_figures(activations, answers, None, of_shares(0.1, 0.2), resamples=50)
    assert found is not None
    true, observed = (np.corrcoef(activations, each)[0, 1] for each in (truth, answers))
    assert observed < 0.8 * true
    assert found.pearson.value == pytest.approx(true)
    assert found.base_rate.value == pytest.approx(0.3)


def test_the_corrected_r_is_nearer_to_the_true_one_and_its_interval_holds_it() -> None:
    true, held, nearer, trials = 0.675, 0, 0, 40
    for seed in range(trials):
        rng = np.random.default_rng([11, seed])
        truth = rng.random(1000) < 0.3
        activations = 2.0 * truth + rng.normal(size=1000)
        answers = err(rng, truth)
        found = correct_figures(activations, answers, None, known(rng, 60), seed=seed, resamples=200)
        assert found is not None
        assert found.pearson.value is not None
        assert found.pearson.low is not None
        assert found.pearson.high is not None
        held += found.pearson.low <= true <= found.pearson.high
        nearer += abs(found.pearson.value - true) < abs(float(np.corrcoef(activations, answers)[0, 1]) - true)
    assert held >= 0.9 * trials
    assert nearer >= 0.9 * trials


def test_a_judge_without_error_changes_little_and_few_known_images_leave_much_open() -> None:
    rng = np.random.default_rng(0)
    truth = rng.random(1000) < 0.4
    activations, answers = 2.0 * truth + rng.normal(size=1000), truth.astype(np.float64)
    widths = []
    for count in (200, 7):
        found = correct_figures(activations, answers, None, of_shares(0.0, 0.0, count))
        assert found is not None
        assert found.pearson.value == pytest.approx(np.corrcoef(activations, truth)[0, 1])
        assert found.pearson.low is not None
        assert found.pearson.high is not None
        widths.append(found.pearson.high - found.pearson.low)
    assert widths[1] > 2 * widths[0]


@pytest.mark.parametrize(
    ("wrong", "missed", "why"),
    [
        (0.5, 0.45, "hardly better than chance"),
        (0.9, 0.9, "hardly better than chance"),
        (0.35, 0.1, "false positives alone"),
        (0.0, 0.75, "no image undescribed"),
    ],
)
def test_what_errors_alone_explain_cannot_be_corrected(wrong: float, missed: float, why: str) -> None:
    answers = np.repeat([1.0, 0.0], (300, 700))
    found = correct_figures(np.arange(1000.0), answers, None, of_shares(wrong, missed))
    assert found is not None
    assert found.pearson.value is None
    assert found.base_rate.value is None
    assert why in found.pearson.why


def test_no_interval_where_known_images_leave_open_that_all_is_error() -> None:
    rng = np.random.default_rng(0)
    answers = np.repeat([1.0, 0.0], (50, 950))
    found = correct_figures(rng.normal(size=1000) + answers, answers, None, of_shares(0.0, 0.0, 7))
    assert found is not None
    assert found.pearson.value is not None
    assert found.pearson.low is None
    assert "known images" in found.pearson.why
    rare = correct_figures(rng.normal(size=1000), np.repeat([1.0, 0.0], (5, 995)), None, of_shares(0.0, 0.0))
    assert rare is not None
    assert "too few images" in rare.pearson.why


def test_nothing_is_corrected_without_known_cases_or_answers() -> None:
    activations, answers = np.arange(10.0), np.repeat([1.0, 0.0], 5)
    one_side = measure_judge_error([1.0], [True])
    assert correct_figures(activations, answers, None, one_side) is None
    assert correct_figures(activations, np.full(10, np.nan), None, of_shares(0.1, 0.1)) is None
    assert correct_figures(np.ones(10), answers, None, of_shares(0.1, 0.1)) is None


def test_a_correction_never_leaves_what_a_correlation_can_be() -> None:
    answers = np.repeat([1.0, 0.0], (300, 700))
    found = correct_figures(answers, answers, None, of_shares(0.1, 0.1))
    assert found is not None
    assert found.pearson.value == 1.0
    assert found.pearson.low is not None
    assert found.pearson.low <= 1.0


def test_weights_and_unread_answers_count_as_they_do_for_r() -> None:
    rng = np.random.default_rng(6)
    truth = rng.random(500) < 0.4
    activations, answers, weights = truth + rng.normal(size=500), err(rng, truth), rng.random(500)
    read = np.arange(500) >= 100
    some = correct_figures(activations[read], answers[read], weights[read], of_shares(0.1, 0.2), seed=3)
    answers[~read] = np.nan
    assert correct_figures(activations, answers, weights, of_shares(0.1, 0.2), seed=3) == some
