"""Logistic regressions: as many units as were asked for, what a penalty does, and classes that are absent."""

from __future__ import annotations

import numpy as np
import pytest

from workers.spurious.regression import fit, l1_units, tune_strength


@pytest.fixture
def made():
    """Twelve units of which the first three tell three classes, and nothing else does."""
    rng = np.random.default_rng(0)
    classes = np.arange(300) % 3
    features = rng.normal(size=(300, 12))
    for unit in range(3):
        features[:, unit] += 3.0 * (classes == unit)
    return features, classes


@pytest.mark.parametrize("count", [1, 2, 3])
def test_as_many_units_are_used_as_were_asked_for_and_the_right_ones(made, count):
    found = l1_units(*made, count)
    assert len(found.used) == count
    assert set(found.used) <= {0, 1, 2}


def test_no_unit_leaves_the_most_frequent_class(made):
    features, _ = made
    found = l1_units(features, np.array([0] * 100 + [1] * 200), 0)
    assert set(found.predict(features)) == {1}


def test_more_units_than_there_are_are_refused(made):
    with pytest.raises(ValueError, match="13 units were asked for, of 12"):
        l1_units(*made, 13)


def test_without_a_penalty_every_unit_has_a_weight_and_it_predicts(made):
    features, classes = made
    found = fit(features, classes, [2, 0, 1])
    assert sorted(found.used) == [0, 1, 2]
    assert (found.predict(features) == classes).mean() > 0.85


def test_it_standardises_so_that_units_of_any_size_count_alike(made):
    features, classes = made
    larger = features * 10.0 ** np.arange(12) + 5
    assert (fit(features, classes).predict(features) == fit(larger, classes).predict(larger)).mean() > 0.99


def test_of_two_classes_both_are_predicted(made):
    features, classes = made
    two = features[classes < 2], classes[classes < 2]
    assert (fit(*two).predict(two[0]) == two[1]).mean() > 0.9


def test_an_absent_class_is_never_predicted(made):
    features, classes = made
    kept = classes != 1
    assert set(fit(features[kept], classes[kept]).predict(features)) <= {0, 2}


def test_a_constant_unit_does_no_harm(made):
    features, classes = made
    features[:, 11] = 4.0
    assert np.isfinite(fit(features, classes).weights).all()


def test_the_strength_is_tuned_on_halves_and_the_same_for_the_same_seed(made):
    assert tune_strength(*made, 3) == tune_strength(*made, 3)
    assert 10**-3 < tune_strength(*made, 3) < 11
