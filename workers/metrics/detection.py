"""Detection and intruder test: does a label tell images that activate a unit from those that do not?

Detection is from "Automatically Interpreting Millions of Features in Large Language Models" (Paulo, Mallen, Juang and
Belrose, 2410.13928) and its code, delphi: examples from each decile of activation and random ones that do not activate.
The intruder test is from "Evaluating SAE interpretability without explanations" (Paulo and Belrose, 2507.08473); here
the judge has the label, and picks the image that fits it least.

An image activates a unit if its activation is above the unit's mask threshold, so that its masked image shows a bright
region. delphi takes every activation above 0, which suits the latents of an auto-encoder, whose threshold is 0 too. A
convolutional unit answers with the maximum of a map, which is above 0 on nearly every image: on 99 to 100 % of the
images for units of toybox's layer3, where hardly an image would be left that does not activate; 34 to 73 % are above
the threshold (layer4: 10 to 54 %).

Sanity tests (NeuronEval, Oikarinen, Yan and Weng, 2506.05774; `tests/support/sanity.py`), the share of 200 simulated
units whose figure falls when half of the label is missing, and when as much is added; 90 % or more passes. A tenth of
the images activates the unit, and in brackets three tenths:

    base rate                0.1                      0.01
                             missing     extra        missing     extra
    balanced accuracy        1.00 (1.00) .95 (.77)    .97 (.84)   .32 (.34)
    precision                .36 (.18)   1.00 (1.00)  .06 (.18)   .39 (.41)
    recall                   1.00 (1.00) .00 (.00)    .99 (.85)   .00 (.00)
    F1                       1.00 (1.00) .56 (.01)    .99 (.85)   .12 (.04)
    intruder test            .99 (1.00)  .72 (.66)    .98 (.95)   .37 (.33)

So none of them is sure to fall when a label is too broad: 50 other images show too few of what it describes beside. r
and AUPRC fall in .95 or more of each. Below a base rate of 0.01 all five fail both.

Of 19 units of toybox's layer4 with labels of the scripted scientist, medians of the label, of the label OR that of
another unit, and of that alone: r .93, .63, -.01; balanced accuracy .66, .65, .51 (of F1 .49, .55, .19); intruder test
.42, .40, .20; explained variance .85, .40, .00. Balanced accuracy is low since twice as many images pass the mask
threshold as show what the unit responds to most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from workers.metrics.intervals import estimate_share
from workers.metrics.natural import PRESENT
from workers.record.estimates import Estimate
from workers.record.other_tests import Confusion, DetectionResult, IntruderResult

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

TENTHS = 10
IMAGES_A_TENTH, OTHERS = 10, 50
"""Images drawn, at most: of each tenth of the activating ones, and of the others."""
MIN_IMAGES = 20
"""Activating images, and others, below which nothing is measured: two for each tenth."""
SET_SIZE, MAX_SETS = 4, 5
"""Activating images of an intruder set, which are of one tenth; sets of a tenth, at most."""
_MIX = IMAGES_A_TENTH * TENTHS / OTHERS
"""Activating images to one other, for precision and F1, which depend on it."""


@dataclass(frozen=True)
class _Side:
    """Images that all activate the unit, or all do not, each (n,): what the judge said, NaN for an unread answer, and
    how many images each stands for."""

    presence: Floats
    weights: Floats

    @property
    def said_yes(self) -> float:
        """Share of the images that the label describes, unread answers being no yes."""
        return float(np.average(self.presence >= PRESENT, weights=self.weights))

    @property
    def said_no(self) -> float:
        return float(np.average(self.presence < PRESENT, weights=self.weights))

    @property
    def failed(self) -> float:
        return float(np.average(np.isnan(self.presence), weights=self.weights))

    @property
    def unread(self) -> int:
        return int(np.isnan(self.presence).sum())

    def estimate(self, share: float) -> Estimate:
        """Wilson's interval for as many images as the unequal weights are worth (Kish 1965)."""
        n = max(1, int(self.weights.sum() ** 2 / (self.weights**2).sum() + 1e-9))
        return replace(estimate_share(share * n, n), n=len(self.presence))


def score_detection(
    activations: ArrayLike, presence: ArrayLike, threshold: float, weights: ArrayLike | None = None, *, seed: int = 0
) -> DetectionResult:
    """Score a label by a stratified sample; without weights it is drawn here, by the seed.

    All vectors are (n,); presence in [0, 1], NaN for an answer that could not be read. With `weights`, where only a
    sample was asked about, all images of that sample count, each as often as it stands for; 0 for one not asked about.

    """
    acts, said, heavy = _read(activations, presence, weights)
    rng = np.random.default_rng(seed)
    tenths, others = _split(acts, heavy, threshold, rng)
    active = sum(map(len, tenths))
    result = DetectionResult(activating=active, images=len(acts), threshold=threshold)
    if why := _explain_few(active, len(others)):
        return replace(result, balanced_accuracy=Estimate(None, n=len(acts), why=why))
    if weights is None:
        tenths, heavy, others = _draw(tenths, heavy, others, rng)
    parts = [_Side(said[each], heavy[each]) for each in tenths if len(each)]
    bright, dark = _join(parts), _Side(said[others], heavy[others])
    recall, alarms = bright.said_yes, dark.said_yes
    precision = _MIX * recall / (_MIX * recall + alarms) if recall + alarms > 0 else None
    both = _join([bright, dark])
    return replace(
        result,
        balanced_accuracy=_average(bright.estimate(recall), dark.estimate(dark.said_no)),
        auc=_find_area(bright, dark),
        precision=precision,
        recall=recall,
        f1=2 * _MIX * recall / (_MIX * recall + alarms + _MIX),
        failed=estimate_share(bright.unread + dark.unread, len(both.presence)),
        confusion=_count(bright.presence, dark.presence),
        deciles=tuple(part.estimate(part.said_yes) for part in parts),
    )


def score_intruder(activations: ArrayLike, presence: ArrayLike, threshold: float, *, seed: int = 0) -> IntruderResult:
    """Score a label by sets of four activating images of one tenth and one other image; arguments as for detection.

    No image is in two sets, so a tenth has as many sets as there are images for, `MAX_SETS` at most. Of a weighted
    sample there is no such figure: its sets would hold described images more often than those of all images.
    """
    acts, said, heavy = _read(activations, presence, None)
    rng = np.random.default_rng(seed)
    tenths, others = _split(acts, heavy, threshold, rng)
    if why := _explain_few(sum(map(len, tenths)), len(others)):
        return IntruderResult(Estimate(None, n=0, why=why))
    intruders = iter(rng.permutation(others).tolist())
    most = min(MAX_SETS, len(others) // TENTHS)
    scores: list[list[float]] = []
    failed = 0
    for tenth in tenths:
        sets = rng.permutation(tenth)[: SET_SIZE * min(most, len(tenth) // SET_SIZE)].reshape(-1, SET_SIZE)
        answers = [(said[four], float(said[next(intruders)])) for four in sets]
        failed += sum(bool(np.isnan([*four, one]).any()) for four, one in answers)
        scores.append([_judge_set(four, one) for four, one in answers])
    every = [each for some in scores for each in some]
    if not every:
        return IntruderResult(Estimate(None, n=0, why=f"no tenth has {SET_SIZE} activating images for a set"))
    share = estimate_share(float(np.sum(every)), len(every))
    return IntruderResult(share, failed, tuple(float(np.mean(some)) if some else None for some in scores))


def _judge_set(four: Floats, intruder: float) -> float:
    """1 if the label fits the intruder least, 1 / k if k images tie for that, else 0; 0 with an unread answer."""
    if np.isnan([*four, intruder]).any() or intruder > four.min():
        return 0.0
    return 1.0 / (1 + int((four == intruder).sum()))


def _read(activations: ArrayLike, presence: ArrayLike, weights: ArrayLike | None) -> tuple[Floats, Floats, Floats]:
    """The images with an activation that were asked about. Raises ValueError for unequal lengths."""
    acts, said = (np.asarray(each, np.float64).reshape(-1) for each in (activations, presence))
    heavy = np.ones_like(acts) if weights is None else np.asarray(weights, np.float64).reshape(-1)
    if not len(acts) == len(said) == len(heavy):
        raise ValueError(
            f"{len(acts)} activations, {len(said)} answers, {len(heavy)} weights: give all for each image."
        )
    kept = np.isfinite(acts) & (heavy > 0)
    return acts[kept], said[kept], heavy[kept]


def _split(acts: Floats, weights: Floats, threshold: float, rng: np.random.Generator) -> tuple[list[Places], Places]:
    """The activating images in ten parts of equal weight, lowest first and equal activations by lot; the others."""
    shuffled = rng.permutation(len(acts))
    ordered = shuffled[np.argsort(acts[shuffled], kind="stable")]
    is_active = acts[ordered] > threshold
    active = ordered[is_active]
    middle = np.cumsum(weights[active]) - weights[active] / 2
    part = np.minimum((TENTHS * middle / max(weights[active].sum(), 1e-300)).astype(int), TENTHS - 1)
    return [active[part == each] for each in range(TENTHS)], np.sort(ordered[~is_active])


def _draw(
    tenths: Sequence[Places], weights: Floats, others: Places, rng: np.random.Generator
) -> tuple[list[Places], Floats, Places]:
    """A part of each, with weights by which every activating image counts alike."""
    drawn = [rng.permutation(each)[:IMAGES_A_TENTH] for each in tenths]
    heavy = weights.copy()
    for every, some in zip(tenths, drawn, strict=True):
        heavy[some] *= len(every) / max(len(some), 1)
    return drawn, heavy, rng.permutation(others)[:OTHERS]


def _explain_few(active: int, others: int) -> str:
    """Why nothing is measured; "" if there are images enough."""
    for count, words in ((active, "activate the unit"), (others, "do not activate the unit")):
        if count < MIN_IMAGES:
            return f"{count} images {words}, and it takes {MIN_IMAGES}"
    return ""


def _join(sides: Sequence[_Side]) -> _Side:
    return _Side(np.concatenate([each.presence for each in sides]), np.concatenate([each.weights for each in sides]))


def _average(one: Estimate, two: Estimate) -> Estimate:
    """The mean of two independent shares, with the interval made of theirs (Zou and Donner 2008, "MOVER")."""
    assert one.value is not None
    assert two.value is not None
    value = (one.value + two.value) / 2
    down, up = (
        0.5 * float(np.hypot(one.value - (a or 0.0), two.value - (b or 0.0)))
        for a, b in ((one.low, two.low), (one.high, two.high))
    )
    return Estimate(value, value - down, value + up, one.n + two.n)


def _find_area(bright: _Side, dark: _Side) -> float:
    """The chance that the label fits an activating image better than another, ties counting half; an unread answer
    loses. Of answers that are yes or no it is the balanced accuracy."""
    high = np.where(np.isnan(bright.presence), -1.0, bright.presence)[:, None]
    low = np.where(np.isnan(dark.presence), 2.0, dark.presence)[None]
    wins = (high > low) + 0.5 * (high == low)
    return float(bright.weights @ wins @ dark.weights / (bright.weights.sum() * dark.weights.sum()))


def _count(bright: Floats, dark: Floats) -> Confusion:
    sums = [
        (int((side >= PRESENT).sum()), int((side < PRESENT).sum()), int(np.isnan(side).sum()))
        for side in (bright, dark)
    ]
    (hits, misses, lost), (alarms, rejections, lost_others) = sums
    return Confusion(hits, misses, alarms, rejections, lost, lost_others)
