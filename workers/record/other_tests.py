"""Results of further tests of a label besides r and AUPRC: detection, hard negatives, intruder, simulation and fuzzing.

Stored with a label check as plain data. Each test misses some wrong labels; `detection.py`, `hard_negatives.py` and
`fuzzing.py` of `workers/metrics` say how many.
"""

from __future__ import annotations

from dataclasses import dataclass

from workers.record.estimates import NONE, Estimate

DETECTION_CHANCE = 0.5
"""Balanced accuracy and AUC of a label that predicts the same for every image."""
INTRUDER_CHANCE = 0.2
"""Share of sets that guessing gets right: one of five images is the intruder."""


@dataclass(frozen=True)
class Confusion:
    """Images of the sample by the unit's response and the label's prediction."""

    hits: int = 0
    """Activating and described."""
    misses: int = 0
    """Activating and not described."""
    false_alarms: int = 0
    """Not activating, though described."""
    rejections: int = 0
    """Neither."""
    failed_activating: int = 0
    """Activating, but the judge's answer could not be read."""
    failed_others: int = 0
    """Not activating, and the judge's answer could not be read."""


@dataclass(frozen=True)
class DetectionResult:
    """Does the label separate activating images from others?

    Precision, recall and F1 are for a mix of two activating images to one other, as in delphi's sample of 100 and
    50.
    """

    balanced_accuracy: Estimate = NONE
    """Mean of the shares of activating and of other images that the label gets right. An unreadable answer is wrong."""
    auc: float | None = None
    precision: float | None = None
    recall: float | None = None
    f1: float | None = None
    failed: Estimate = NONE
    """Share of answers that could not be read."""
    confusion: Confusion = Confusion()
    deciles: tuple[Estimate, ...] = ()
    """For each tenth of the activating images, lowest activation first, the share that the label describes."""
    activating: int = 0
    """Images above `threshold`, of `images`."""
    images: int = 0
    threshold: float | None = None
    """The unit's mask threshold: images above it are activating."""


@dataclass(frozen=True)
class IntruderResult:
    """Does the label find the one image that does not activate the unit among four that do?"""

    share: Estimate = NONE
    """Share of sets that it gets right. A tie between k images counts 1 / k, a set with an unreadable answer 0."""
    failed: int = 0
    """Sets with an unreadable answer."""
    deciles: tuple[float | None, ...] = ()
    """The share by tenth of the activating images; None if a tenth has too few images."""


@dataclass(frozen=True)
class SimulationResult:
    """How well the label predicts the activation after a scaling fitted on other images."""

    correlation: Estimate = NONE
    explained_variance: Estimate = NONE
    """1 - squared error / variance; below 0 if predictions are worse than the mean."""
    fitted: int = 0
    """Images on which the scaling was fitted. The n of the figures counts the images they were measured on."""
    graded: bool = False
    """True if the judge gives grades, False for yes or no."""


@dataclass(frozen=True)
class NeighbourUnit:
    """A unit of the same layer, and the correlation of its activations with the unit's (Pearson's r, weighted)."""

    unit: int
    r: float


@dataclass(frozen=True)
class HardNegativesResult:
    """Detection with the hardest of the images that do not activate the unit."""

    balanced_accuracy: Estimate = NONE
    """As in detection, with the same activating images."""
    auc: float | None = None
    described: Estimate = NONE
    """Share of the hard images that the label describes, although they do not activate the unit."""
    drop: Estimate = NONE
    """Balanced accuracy of detection minus this one: how much of detection was easy."""
    failed: int = 0
    """Hard images with an unreadable answer, which count as wrong."""
    images: int = 0
    """Images of low activation, from which the hardest are taken."""
    low: float | None = None
    """The highest activation that counts as low."""
    neighbours: tuple[NeighbourUnit, ...] = ()
    """The units whose strong images are the hard ones; empty if images that look alike are taken."""


@dataclass(frozen=True)
class FuzzingResult:
    """Does the label describe what is where the unit responds, and not elsewhere in the image?"""

    balanced_accuracy: Estimate = NONE
    """Mean of the shares of responding and of other parts that the label gets right."""
    responding: Estimate = NONE
    """Share of the parts where the unit responds that show what the label says."""
    elsewhere: Estimate = NONE
    """The same share among parts where it does not respond."""
    failed: Estimate = NONE
    """Share of unreadable answers; they count as wrong."""
    cover: float | None = None
    """Median share of the image that a part covers."""
    left_out: int = 0
    """Images without a second part of that size."""
    dimmed: bool = False
    """True if the judge looked at images dimmed outside the part, False if it knows what each part shows."""


@dataclass(frozen=True)
class OtherTests:
    """The tests on the natural images of one check. Hard negatives and fuzzing are None in older checks."""

    detection: DetectionResult = DetectionResult()
    intruder: IntruderResult = IntruderResult()
    simulation: SimulationResult = SimulationResult()
    alike: HardNegativesResult | None = None
    """Hard images that look to the network like those that activate the unit most."""
    neighbours: HardNegativesResult | None = None
    """Hard images that activate units which respond together with this one."""
    fuzzing: FuzzingResult | None = None
