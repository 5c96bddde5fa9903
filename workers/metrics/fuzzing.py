"""Fuzzing on masks: does the label say what is seen where the unit responds?

From delphi (Paulo et al., 2410.13928), where a judge is shown text with tokens marked that activated the latent, or
others, and says whether they are marked rightly. Here one half of the images that activate a unit most has the region
marked where the unit is above its mask threshold, and the other half a region of the same shape and size where it is
not (`lab.parts`); the judge says whether the marked part shows what the label says. Each image is asked about once, so
that the two shares are independent.

Sanity tests (NeuronEval, 2506.05774; `tests/support/layer_sanity.py`), the share of 200 simulated units whose balanced
accuracy falls when half of the label is missing, when as much is added anywhere, and when it is added elsewhere in the
images that show the concept, one of nine places each; 90 % or more passes. Alike where 10 and 30 % activate the unit:

    base rate    missing   extra   extra in the same images
    0.1          1.00      .38     .98
    0.01         .99       .06     .84

So it sees labels that are too narrow and those that speak of what stands beside, and not those that are too broad in
images other than the top ones.

Of 13 units of toybox's layer4 with labels of the scripted scientist, medians of the label, of the label OR that of
another unit, and of that alone: .99, .96, .50.
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
"""Parts where the unit responds, and where it does not, at most."""


def choose_top(activations: ArrayLike, threshold: float, count: int = 2 * MAX_PARTS) -> Places:
    """Places of the images that activate the unit most, best first: a tenth of all, or as many as it takes."""
    acts = np.nan_to_num(np.asarray(activations, np.float64).reshape(-1), nan=-np.inf)
    best = np.argsort(-acts, kind="stable")[: min(count, max(2 * MIN_IMAGES, len(acts) // 10))]
    return best[acts[best] > threshold]


def deal_parts(count: int, *, seed: int) -> NDArray[np.bool_]:
    """By lot which half of the images has the part marked where the unit responds, (count,)."""
    dealt = np.arange(count) % 2 == 0
    return np.random.default_rng(seed).permutation(dealt)


def score_fuzzing(responding: ArrayLike, elsewhere: ArrayLike, covers: Sequence[float] = ()) -> FuzzingResult:
    """What the judge said of either kind of parts, in [0, 1], NaN for an answer that could not be read; `covers` are
    shares of the images that parts cover."""
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
    """Why nothing is measured; "" if there are parts enough of either kind."""
    if min(responding, elsewhere) >= MIN_IMAGES:
        return ""
    return (
        f"{responding} parts where the unit responds and {elsewhere} elsewhere could be marked, and it takes "
        f"{MIN_IMAGES} of either"
    )


def _read_side(presence: ArrayLike) -> Side:
    said = np.asarray(presence, np.float64).reshape(-1)
    return Side(said, np.ones_like(said))
