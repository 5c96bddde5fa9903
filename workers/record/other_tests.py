"""What other tests say of a label, beside r and AUPRC: detection, intruder and simulation.

Kept with a label check as plain data. Detection and the intruder test are blind to some labels that are too broad:
`workers/metrics/detection.py` says to how many, measured.
"""

from __future__ import annotations

from dataclasses import dataclass

from workers.record.estimates import NONE, Estimate

DETECTION_CHANCE = 0.5
"""Balanced accuracy and AUC of a label that says the same of every image."""
INTRUDER_CHANCE = 0.2
"""Share of sets that a guess gets right: one of five images is the intruder."""


@dataclass(frozen=True)
class Confusion:
    """Images of the sample by what the unit does and what the label says."""

    hits: int = 0
    """Activating and described."""
    misses: int = 0
    """Activating and not described."""
    false_alarms: int = 0
    """Not activating, though described."""
    rejections: int = 0
    """Neither."""
    failed_activating: int = 0
    """Activating; the judge's answer could not be read."""
    failed_others: int = 0
    """Not activating; the judge's answer could not be read."""


@dataclass(frozen=True)
class DetectionResult:
    """Does the label tell activating images from others? Precision, recall and F1 are of a mix of two activating images
    to one other, as in delphi's sample of 100 and 50."""

    balanced_accuracy: Estimate = NONE
    """Mean of the shares of activating and of other images that the label gets right; an unread answer is wrong."""
    auc: float | None = None
    precision: float | None = None
    recall: float | None = None
    f1: float | None = None
    failed: Estimate = NONE
    """Share of answers that could not be read."""
    confusion: Confusion = Confusion()
    deciles: tuple[Estimate, ...] = ()
    """Share that the label describes of each tenth of the activating images, lowest activation first."""
    activating: int = 0
    """Images above `threshold`, of `images`."""
    images: int = 0
    threshold: float | None = None
    """The unit's mask threshold: images above it are activating."""


@dataclass(frozen=True)
class IntruderResult:
    """Does the label tell one image that does not activate the unit from four that do?"""

    share: Estimate = NONE
    """Of the sets that it gets right; a tie between k images counts 1 / k, a set with an unread answer 0."""
    failed: int = 0
    """Sets with an unread answer."""
    deciles: tuple[float | None, ...] = ()
    """The share by tenth of the activating images; None where a tenth has too few images for a set."""


@dataclass(frozen=True)
class SimulationResult:
    """How well the label predicts the activation itself, after a scaling that was fitted on other images."""

    correlation: Estimate = NONE
    explained_variance: Estimate = NONE
    """1 less squared error over variance; below 0 for predictions that are worse than the mean."""
    fitted: int = 0
    """Images that the scaling was fitted on; n of the figures counts those that they were measured on."""
    graded: bool = False
    """Whether the judge gives grades rather than yes or no."""


@dataclass(frozen=True)
class OtherTests:
    """The three tests on the natural images of one check."""

    detection: DetectionResult = DetectionResult()
    intruder: IntruderResult = IntruderResult()
    simulation: SimulationResult = SimulationResult()
