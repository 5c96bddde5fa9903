"""The headline figures fall when a label is too narrow and when it is too broad; some that papers print do not."""

from __future__ import annotations

import pytest

from tests.support.sanity import make_units, share_falling


@pytest.mark.parametrize("frequency", [0.1, 0.01])
@pytest.mark.parametrize("metric", ["Pearson r", "AUPRC"])
def test_the_headline_figures_fall_for_labels_that_are_too_narrow_or_too_broad(metric: str, frequency: float) -> None:
    missing, extra = share_falling(metric, make_units(60, frequency, seed=12))
    assert missing > 0.9
    assert extra > 0.9


def test_the_tests_tell_metrics_apart() -> None:
    """The area under the curve of a label against the rest hardly sees what a label of something rare leaves out."""
    missing, _ = share_falling("AUC, label against the rest (CoSy)", make_units(60, 0.01, seed=12))
    assert missing < 0.9
    assert share_falling("mean of the label's images (MAIA +)", make_units(60, 0.01, seed=12))[0] < 0.9
