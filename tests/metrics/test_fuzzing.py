"""Fuzzing: which images and parts, its figures, unread answers, and which wrong labels it sees."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from tests.support import layer_sanity
from tests.support.layer_sanity import PLACES, make_layers, share_falling_in
from workers.metrics.fuzzing import assign_parts, choose_top, score_fuzzing
from workers.record.other_tests import FuzzingResult


def test_the_images_are_the_strongest_of_those_that_activate_the_unit() -> None:
    acts = [0.5, 3.0, np.nan, 1.0, 2.0]
    assert choose_top(acts, 0.7, 2).tolist() == [1, 4]
    assert choose_top(acts, 0.7).tolist() == [1, 4, 3]
    dealt = assign_parts(101, seed=1)
    assert (dealt.sum(), len(dealt)) == (51, 101)
    assert (dealt == assign_parts(101, seed=1)).all()


def test_figures_are_shares_of_both_kinds_of_parts() -> None:
    found = score_fuzzing([1] * 30 + [0] * 10, [1] * 4 + [0] * 36, [0.1, 0.3, 0.2])
    assert (found.responding.value, found.elsewhere.value, found.failed.value) == (0.75, 0.1, 0)
    assert found.balanced_accuracy.value == pytest.approx((0.75 + 0.9) / 2)
    assert found.balanced_accuracy.low is not None
    assert 0.7 < found.balanced_accuracy.low < 0.825
    assert found.cover == 0.2
    assert msgspec.json.decode(msgspec.json.encode(found), type=FuzzingResult) == found


@pytest.mark.parametrize("answer", [0.0, 1.0])
def test_a_label_that_says_the_same_of_all_parts_is_at_chance(answer: float) -> None:
    assert score_fuzzing([answer] * 40, [answer] * 40).balanced_accuracy.value == 0.5


def test_answers_that_could_not_be_read_count_as_wrong() -> None:
    found = score_fuzzing([1] * 20 + [np.nan] * 20, [0] * 30 + [np.nan] * 10)
    assert found.balanced_accuracy.value == pytest.approx((0.5 + 0.75) / 2)
    assert found.failed.value == pytest.approx(30 / 80)


def test_too_few_parts_say_so() -> None:
    found = score_fuzzing([1] * 19, [0] * 40)
    assert found.balanced_accuracy.value is None
    assert "19 parts where the unit responds and 40 elsewhere" in found.balanced_accuracy.why


def test_fuzzing_sees_narrow_labels_and_what_stands_beside_not_other_images() -> None:
    """What the page says of it; the numbers are in `workers.metrics.fuzzing`."""
    for frequency in (0.1, 0.01):
        missing, extra, beside = share_falling_in(layer_sanity.fuzzing, make_layers(40, frequency, seed=12), 0.1)
        assert missing > 0.9 > 0.6 > extra
        assert beside > 0.7


def test_a_label_of_what_stands_beside_alone_is_below_chance() -> None:
    layer = make_layers(1, 0.1, seed=5)[0]
    beside = np.zeros((len(layer.there), PLACES), bool)
    beside[layer.there] = True
    beside[np.arange(len(layer.there)), layer.places] = False
    assert layer_sanity.fuzzing(layer, beside, 0.1) < 0.4
