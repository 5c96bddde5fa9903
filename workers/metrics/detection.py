"""Detection and intruder test: does a label separate images that activate a unit from those that do not?

Detection is from "Automatically Interpreting Millions of Features in Large Language Models" (Paulo, Mallen, Juang and
Belrose, 2410.13928) and its code, delphi: examples from each decile of activation and random ones that do not activate.
The intruder test is from "Evaluating SAE interpretability without explanations" (Paulo and Belrose, 2507.08473). Here
the judge has the label and picks the image that fits it least.

An image activates a unit if its activation is above the unit's mask threshold, so that its masked image shows a bright
region. delphi takes every activation above 0, which suits latents of an auto-encoder, whose threshold is 0 too. A
convolutional unit returns the maximum of a map, which is above 0 on nearly every image: for units of toybox's layer3 on
99 to 100 % of the images, so that hardly any image does not activate. 34 to 73 % are above the threshold (layer4: 10 to
54 %).

Sanity tests (NeuronEval, Oikarinen, Yan and Weng, 2506.05774; `tests/support/sanity.py`): the share of 200 simulated
units whose figure falls when half of the label is missing, and when as much is added. 90 % or more passes. A tenth of
the images activates the unit; brackets: three tenths.

    base rate                0.1                      0.01
                             missing     extra        missing     extra
    balanced accuracy        1.00 (1.00) .95 (.77)    .97 (.84)   .32 (.34)
    precision                .36 (.18)   1.00 (1.00)  .06 (.18)   .39 (.41)
    recall                   1.00 (1.00) .00 (.00)    .99 (.85)   .00 (.00)
    F1                       1.00 (1.00) .56 (.01)    .99 (.85)   .12 (.04)
    intruder test            .99 (1.00)  .72 (.66)    .98 (.95)   .37 (.33)

So none of them reliably falls for a label that is too broad: 50 other images contain too few of those that it wrongly
describes. r and AUPRC fall in .95 or more of all cases. Below a base rate of 0.01 all five fail both tests.

For 19 units of toybox's layer4 with labels of the scripted scientist, medians for the label, for the label OR that
of another unit, and for that alone: r .93, .63, -.01; balanced accuracy .66, .65, .51 (of F1 .49, .55, .19);
intruder test .42, .40, .20; explained variance .85, .40, .00. Balanced accuracy is low because twice as many images
pass the mask threshold as show what the unit responds to most.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from workers.metrics.detection_sample import (
    IMAGES_A_TENTH,
    OTHERS,
    TENTHS,
    Floats,
    Side,
    average_shares,
    draw_images,
    explain_few,
    find_area,
    join_sides,
    read_vectors,
    split_images,
)
from workers.metrics.intervals import estimate_share
from workers.metrics.natural import PRESENT
from workers.record.estimates import Estimate
from workers.record.other_tests import Confusion, DetectionResult, IntruderResult

SET_SIZE, MAX_SETS = 4, 5
"""Activating images in an intruder set, all of one tenth; maximum number of sets per tenth."""
_MIX = IMAGES_A_TENTH * TENTHS / OTHERS
"""Activating images per other image, for precision and F1, which depend on this ratio."""


def score_detection(
    activations: ArrayLike, presence: ArrayLike, threshold: float, weights: ArrayLike | None = None, *, seed: int = 0
) -> DetectionResult:
    """Score a label on a stratified sample. Without weights, the sample is drawn here with the seed.

    All vectors are (n,). Presence is in [0, 1], NaN for an unreadable answer. `weights` say how many images each
    judged image stands for, 0 for one not judged; then all judged images count.
    """
    acts, said, heavy, _ = read_vectors(activations, presence, weights)
    rng = np.random.default_rng(seed)
    tenths, others = split_images(acts, heavy, threshold, rng)
    active = sum(map(len, tenths))
    result = DetectionResult(activating=active, images=len(acts), threshold=threshold)
    if why := explain_few(active, len(others)):
        return replace(result, balanced_accuracy=Estimate(None, n=len(acts), why=why))
    # Without weights the sample is drawn here, so each drawn image stands for several.
    if weights is None:
        tenths, heavy, others = draw_images(tenths, heavy, others, rng)
    # A tenth may be empty where activations tie.
    parts = [Side(said[each], heavy[each]) for each in tenths if len(each)]
    bright, dark = join_sides(parts), Side(said[others], heavy[others])
    recall, alarms = bright.said_yes, dark.said_yes
    # Undefined where the judge never says yes.
    precision = _MIX * recall / (_MIX * recall + alarms) if recall + alarms > 0 else None
    both = join_sides([bright, dark])
    return replace(
        result,
        balanced_accuracy=average_shares(bright.estimate(recall), dark.estimate(dark.said_no)),
        auc=find_area(bright, dark),
        precision=precision,
        recall=recall,
        f1=2 * _MIX * recall / (_MIX * recall + alarms + _MIX),
        # Of all answers, so that a judge that is often unreadable is seen to be.
        failed=estimate_share(bright.unread + dark.unread, len(both.presence)),
        confusion=_count(bright.presence, dark.presence),
        deciles=tuple(part.estimate(part.said_yes) for part in parts),
    )


def score_intruder(activations: ArrayLike, presence: ArrayLike, threshold: float, *, seed: int = 0) -> IntruderResult:
    """Score a label by sets of four activating images of one tenth and one other image. Arguments as for detection.

    A tenth has as many sets as its images allow, at most `MAX_SETS`. Weighted samples are not supported: their sets
    would contain described images more often than sets from all images.
    """
    acts, said, heavy, _ = read_vectors(activations, presence, None)
    rng = np.random.default_rng(seed)
    tenths, others = split_images(acts, heavy, threshold, rng)
    if why := explain_few(sum(map(len, tenths)), len(others)):
        return IntruderResult(Estimate(None, n=0, why=why))
    # No image is in two sets, so that the sets are independent.
    intruders = iter(rng.permutation(others).tolist())
    # Every tenth gets as many intruders as every other.
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
    """Return 1 if the label fits the intruder least, 1 / k if k images tie, else 0."""
    # An unreadable answer gives no point: a judge must not gain by silence.
    if np.isnan([*four, intruder]).any() or intruder > four.min():
        return 0.0
    # A judge that gives all images the same answer gets what guessing gets.
    return 1.0 / (1 + int((four == intruder).sum()))


def _count(bright: Floats, dark: Floats) -> Confusion:
    sums = [
        (int((side >= PRESENT).sum()), int((side < PRESENT).sum()), int(np.isnan(side).sum()))
        for side in (bright, dark)
    ]
    (hits, misses, lost), (alarms, rejections, lost_others) = sums
    return Confusion(hits, misses, alarms, rejections, lost, lost_others)
