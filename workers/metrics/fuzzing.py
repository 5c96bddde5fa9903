"""Fuzzing on masks: does the label say what is seen where the unit responds?

From delphi (Paulo et al., 2410.13928), in which a judge sees text with marked tokens, some of which activated the
latent, and says whether they are marked correctly. Here, one half of the images that activate a unit most is marked
where the unit is above its mask threshold. The other half is marked in a region of the same shape and size where it is
not (`lab.parts`). The judge says whether the marked part shows what the label says. Each image is judged once, so that
the two shares are independent.

Sanity tests (NeuronEval, 2506.05774; `tests/support/layer_sanity.py`): the share of 200 simulated units whose balanced
accuracy falls when half of the label is missing, when as much is added anywhere, and when it is added elsewhere in the
images that show the concept, in one of nine positions each. 90 % or more passes. The result is the same if 10 or 30 %
of the images activate the unit.

    base rate    missing   extra   extra in the same images
    0.1          1.00      .38     .98
    0.01         .99       .06     .84

So it detects labels that are too narrow or that describe what is beside the concept. It does not detect labels that are
too broad in images other than the top ones.

For 13 units of toybox's layer4 with labels of the scripted scientist, medians for the label, for the label OR that
of another unit, and for that alone: .99, .96, .50.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from workers.metrics.detection_sample import MIN_IMAGES, Places, Side, average_shares, join_sides
from workers.metrics.intervals import estimate_share
from workers.record.estimates import Estimate
from workers.record.other_tests import FuzzingResult

MAX_PARTS = 50
"""Maximum number of parts where the unit responds, and of other parts."""


def choose_top(activations: ArrayLike, threshold: float, count: int = 2 * MAX_PARTS) -> Places:
    """Return positions of the images that activate the unit most, best first."""
    # Unknown activations are sorted last, and are never above a threshold.
    acts = np.nan_to_num(np.asarray(activations, np.float64).reshape(-1), nan=-np.inf)
    # A tenth of all images, or as many as the figure needs.
    best = np.argsort(-acts, kind="stable")[: min(count, max(2 * MIN_IMAGES, len(acts) // 10))]
    return best[acts[best] > threshold]


def assign_parts(count: int, *, seed: int) -> NDArray[np.bool_]:
    """Choose at random which half of the images is marked where the unit responds, (count,)."""
    # Exactly half, which a toss for each image would not give.
    dealt = np.arange(count) % 2 == 0
    return np.random.default_rng(seed).permutation(dealt)


def score_fuzzing(responding: ArrayLike, elsewhere: ArrayLike, covers: Sequence[float] = ()) -> FuzzingResult:
    """Score the judge's answers about parts, in [0, 1], NaN if unreadable. `covers` are the shares of the images
    that parts cover."""
    right, wrong = (_read_side(each) for each in (responding, elsewhere))
    result = FuzzingResult(cover=float(np.median(covers)) if len(covers) else None)
    if why := explain_few_parts(len(right.presence), len(wrong.presence)):
        return replace(result, balanced_accuracy=Estimate(None, n=len(right.presence) + len(wrong.presence), why=why))
    both = join_sides([right, wrong])
    return replace(
        result,
        balanced_accuracy=average_shares(right.estimate(right.said_yes), wrong.estimate(wrong.said_no)),
        responding=right.estimate(right.said_yes),
        elsewhere=wrong.estimate(wrong.said_yes),
        failed=estimate_share(both.unread, len(both.presence)),
    )


def explain_few_parts(responding: int, elsewhere: int) -> str:
    """Return why nothing is measured; "" if there are enough parts of each kind."""
    if min(responding, elsewhere) >= MIN_IMAGES:
        return ""
    return (
        f"{responding} parts where the unit responds and {elsewhere} elsewhere could be marked, and it takes "
        f"{MIN_IMAGES} of either"
    )


def _read_side(presence: ArrayLike) -> Side:
    said = np.asarray(presence, np.float64).reshape(-1)
    return Side(said, np.ones_like(said))
