"""The headline figures fall when a label is too narrow and when it is too broad; some that papers print do not."""

from __future__ import annotations

import pytest

from tests.support.sanity import make_units, share_falling


@pytest.mark.parametrize("frequency", [0.1, 0.01, 0.004, 0.001])
def test_the_headline_figures_fall_for_labels_that_are_too_narrow_or_too_broad(frequency: float) -> None:
    units = make_units(60, frequency, seed=12)
    assert min(share_falling("Pearson r", units)) > 0.9
    narrow, broad = share_falling("AUPRC", units)
    assert broad >= 0.9
    # Of something as rare as one image in a thousand 20 show it, too few for AUPRC to miss ten of them
    assert (narrow > 0.9) == (frequency > 0.001)


def test_the_tests_tell_metrics_apart() -> None:
    """The area under the curve of a label against the rest hardly sees what a label of something rare leaves out."""
    missing, _ = share_falling("AUC, label against the rest (CoSy)", make_units(60, 0.01, seed=12))
    assert missing < 0.9
    assert share_falling("mean of the label's images (MAIA +)", make_units(60, 0.01, seed=12))[0] < 0.9
