"""Detection with hard negatives: images that are easily taken for activating ones, but do not activate the unit.

delphi (Paulo et al., 2410.13928) draws them near the activating examples in an embedding, and from latents that fire
together with this one. Here both come from the activations of all units of the layer on the same images, which a check
has measured anyway. The embedding is the layer's own, without the unit, so it is not the judge's. An image is low if it
does not activate the unit (`detection_sample`) and its activation is at most the median of all images. The hardest
tenth of the low images is taken, by

1. likeness: the cosine to the nearest of the ten images that activate the unit most, each unit standardised;
2. neighbours: the highest rank that it has in any of the five units whose activations go best with the unit's.

Activating images are those of detection. The hardest tenth is equally hard among 1,000 and among 20,000 images, unlike
a fixed number. If only a sample was judged, at least `MIN_IMAGES` of it are taken.

Sanity tests (NeuronEval, 2506.05774; `tests/support/layer_sanity.py`): the share of 200 simulated units whose balanced
accuracy falls when half of the label is missing, when as much is added at random, and when it is added among images
similar to those of the concept. 90 % or more passes. A tenth of the images activates the unit; brackets: three tenths.

    base rate    0.1                                      0.01
                 missing     extra       extra, similar   missing     extra       extra, similar
    alike        1.00 (.99)  .93 (.68)   1.00 (1.00)      .92 (.74)   .30 (.36)   .98 (.95)
    neighbours   .99 (.98)   .90 (.69)   1.00 (1.00)      1.00 (.92)  .24 (.37)   1.00 (.97)
    detection    1.00 (.99)  .90 (.69)   .90 (.68)        .95 (.82)   .38 (.33)   .33 (.38)

So they detect a label that is too broad among similar images, which detection at 0.01 does not. None detects one that
is too broad elsewhere. At 0.01 only 38 of the 200 units have neighbours; the others have no figure.

For 13 units of toybox's layer4 with labels of the scripted scientist, medians for the label, for the label OR that
of another unit, and for that alone: alike .67, .67, .51 and neighbours .67, .65, .50, compared with .67, .66, .51
for detection itself. On these units hard images add nothing to detection (differences of -.01 to .01).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from workers.metrics.detection_sample import (
    MIN_IMAGES,
    OTHERS,
    Floats,
    Places,
    Side,
    average_shares,
    draw_images,
    explain_few,
    find_area,
    join_sides,
    read_vectors,
    split_images,
)
from workers.record.estimates import Estimate
from workers.record.other_tests import HardNegativesResult, NeighbourUnit

HARDEST = 0.1
"""Share of the low images that counts as hard."""
LOW_QUANTILE = 0.5
"""Activations up to this quantile of all images are low."""
TOP = 10
"""Images that activate the unit most, to which hard images are compared."""
MAX_NEIGHBOURS, MIN_R = 5, 0.1
"""Maximum number of neighbours, and minimum correlation of a neighbour with the unit."""
MIN_UNITS = 8
"""Minimum number of other varying units of the layer for an embedding."""
_FLAT = 1e-9


def score_hard_negatives(
    activations: ArrayLike,
    presence: ArrayLike,
    threshold: float,
    hardness: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    seed: int = 0,
) -> HardNegativesResult:
    """Score a label as `score_detection` does, with vectors (n,). Images with a higher `hardness` are harder."""
    acts, said, heavy, kept = read_vectors(activations, presence, weights)
    hard = np.asarray(hardness, np.float64).reshape(-1)[kept]
    rng = np.random.default_rng(seed)
    tenths, others = split_images(acts, heavy, threshold, rng)
    # At most the threshold: an activating image is never a negative one.
    low = min(threshold, _find_quantile(acts, heavy)) if len(acts) else threshold
    dim = others[acts[others] <= low]
    result = HardNegativesResult(images=len(dim), low=float(low))
    if why := explain_few(sum(map(len, tenths)), len(others)) or _explain_few_low(len(dim)):
        return replace(result, balanced_accuracy=Estimate(None, n=len(acts), why=why))
    if weights is None:
        # First, by the same seed as in detection, so that both have the same activating images
        tenths, heavy, others = draw_images(tenths, heavy, others, rng)
    hardest = _choose_hardest(dim, hard, heavy, rng)
    # Drawn anew, as the other negatives are; a weighted sample was drawn before.
    if weights is None:
        hardest = rng.permutation(hardest)[:OTHERS]
    bright = join_sides([Side(said[each], heavy[each]) for each in tenths if len(each)])
    dark, plain = Side(said[hardest], heavy[hardest]), Side(said[others], heavy[others])
    wrong, right = dark.estimate(dark.said_no), plain.estimate(plain.said_no)
    return replace(
        result,
        balanced_accuracy=average_shares(bright.estimate(bright.said_yes), wrong),
        auc=find_area(bright, dark),
        described=dark.estimate(dark.said_yes),
        # Negative if hard images fool the judge more often than others.
        drop=_halve_difference(right, wrong),
        failed=dark.unread,
    )


def measure_likeness(activations: ArrayLike, table: ArrayLike, own: int) -> Floats | None:
    """Return how similar each image is to those that activate the unit most, (n,); None with fewer than `MIN_UNITS`
    other units.

    `table` (n, units) holds the activations of all units of the layer; the unit is column `own`.
    """
    acts, others, _ = _read_others(activations, table, own)
    if others.shape[1] < MIN_UNITS:
        return None
    # Each unit standardised, or the loudest ones alone would decide what is alike.
    vectors = (others - others.mean(0)) / others.std(0)
    # A position without any activation has no direction.
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), _FLAT)
    top = np.argsort(-acts, kind="stable")[:TOP]
    return np.asarray((vectors @ vectors[top].T).max(1), np.float64)


def find_neighbours(
    activations: ArrayLike, table: ArrayLike, own: int, weights: ArrayLike | None = None
) -> tuple[NeighbourUnit, ...]:
    """Return the units whose activations correlate best with the unit's, best first, at least `MIN_R`."""
    acts, others, units = _read_others(activations, table, own)
    heavy = np.ones(len(acts)) if weights is None else np.asarray(weights, np.float64)
    if not len(units) or not heavy.sum() > 0:
        return ()
    mine, theirs = acts - np.average(acts, weights=heavy), others - np.average(others, axis=0, weights=heavy)
    lengths = np.sqrt((heavy @ mine**2) * (heavy @ theirs**2))
    r = np.divide((heavy * mine) @ theirs, lengths, out=np.zeros(len(units)), where=lengths > _FLAT)
    best = np.argsort(-r, kind="stable")[:MAX_NEIGHBOURS]
    return tuple(NeighbourUnit(int(units[at]), float(r[at])) for at in best if r[at] >= MIN_R)


def measure_neighbours(table: ArrayLike, neighbours: tuple[NeighbourUnit, ...]) -> Floats:
    """Return the highest rank of each image in any of these units, (n,), in [0, 1]. Equal activations share a rank."""
    values = np.asarray(table, np.float64)[:, [each.unit for each in neighbours]]
    return np.asarray(stats.rankdata(values, "max", axis=0).max(1) / len(values), np.float64)


def _read_others(activations: ArrayLike, table: ArrayLike, own: int) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Return the activations, those of the other varying units, and their numbers. Unknown values count as 0."""
    # Unknown counts as silent, which is what most units are on most images.
    acts = np.nan_to_num(np.asarray(activations, np.float64).reshape(-1))
    values = np.nan_to_num(np.asarray(table, np.float64))
    varies = values.std(0) > _FLAT if len(values) else np.zeros(values.shape[1], bool)
    units = np.array([each for each in np.flatnonzero(varies) if each != own], np.int64)
    return acts, values[:, units], units


def _find_quantile(acts: Floats, weights: Floats) -> float:
    """Return the activation up to which `LOW_QUANTILE` of the weight lies."""
    # Weighted, since a sample may hold more bright images than the dataset.
    return float(np.quantile(acts, LOW_QUANTILE, weights=weights, method="inverted_cdf"))


def _choose_hardest(dim: Places, hardness: Floats, weights: Floats, rng: np.random.Generator) -> Places:
    """Return the hardest tenth by weight, at least `MIN_IMAGES` images. Ties are broken at random."""
    # Shuffled first and sorted stably, so that ties are broken at random.
    shuffled = rng.permutation(dim)
    ordered = shuffled[np.argsort(-hardness[shuffled], kind="stable")]
    # The weight before each image, so that at least one image is taken.
    before = np.cumsum(weights[ordered]) - weights[ordered]
    count = int((before < HARDEST * weights[ordered].sum()).sum())
    return ordered[: max(count, MIN_IMAGES)]


def _explain_few_low(count: int) -> str:
    return "" if count >= MIN_IMAGES else f"{count} images are of low activation, and it takes {MIN_IMAGES}"


def _halve_difference(plain: Estimate, hard: Estimate) -> Estimate:
    """Return half of the difference of two shares, treated as independent (MOVER)."""
    assert plain.value is not None
    assert hard.value is not None
    # Both balanced accuracies share the activating images, which cancel out.
    value = (plain.value - hard.value) / 2
    down = np.hypot(plain.value - (plain.low or 0.0), (hard.high or 0.0) - hard.value)
    up = np.hypot((plain.high or 0.0) - plain.value, hard.value - (hard.low or 0.0))
    return Estimate(value, value - float(down) / 2, value + float(up) / 2, plain.n + hard.n)
