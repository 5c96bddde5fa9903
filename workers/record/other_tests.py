"""What other tests say of a label, beside r and AUPRC: detection, hard negatives, intruder, simulation and fuzzing.

Kept with a label check as plain data. Each is blind to some wrong labels: `detection.py`, `hard_negatives.py` and
`fuzzing.py` of `workers/metrics` say to how many, measured.
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
class NeighbourUnit:
    """A unit of the same layer, and how its activations go with those of the unit (Pearson's r, weighted)."""

    unit: int
    r: float


@dataclass(frozen=True)
class HardNegativesResult:
    """Detection where the images that do not activate the unit are the hardest of them."""

    balanced_accuracy: Estimate = NONE
    """As in detection, with the same activating images."""
    auc: float | None = None
    described: Estimate = NONE
    """Share of the hard images that the label describes, though they do not activate the unit."""
    drop: Estimate = NONE
    """Balanced accuracy of detection less this one: how much of detection was easy."""
    failed: int = 0
    """Hard images with an unread answer, which count as wrong."""
    images: int = 0
    """Images of low activation, of which the hardest are taken."""
    low: float | None = None
    """The highest activation that counts as low."""
    neighbours: tuple[NeighbourUnit, ...] = ()
    """The units whose strong images are the hard ones; none where those are taken that look alike."""


@dataclass(frozen=True)
class FuzzingResult:
    """Does the label say what is seen where the unit responds, rather than elsewhere in the image?"""

    balanced_accuracy: Estimate = NONE
    """Mean of the shares of parts where it responds, and where it does not, that the label gets right."""
    responding: Estimate = NONE
    """Share of the parts where the unit responds that show what the label says."""
    elsewhere: Estimate = NONE
    """The same of parts where it does not respond."""
    failed: Estimate = NONE
    """Share of answers that could not be read; they count as wrong."""
    cover: float | None = None
    """Share of its image that a part covers, as the median."""
    left_out: int = 0
    """Images without a second part of that size."""
    dimmed: bool = False
    """Whether the judge looked at images whose rest was dimmed, rather than knowing what each part shows."""


@dataclass(frozen=True)
class OtherTests:
    """The tests on the natural images of one check. Hard negatives and fuzzing: None in checks from before them."""

    detection: DetectionResult = DetectionResult()
    intruder: IntruderResult = IntruderResult()
    simulation: SimulationResult = SimulationResult()
    alike: HardNegativesResult | None = None
    """Hard images that look, to the network, like those that activate the unit most."""
    neighbours: HardNegativesResult | None = None
    """Hard images that activate the units that respond with this one."""
    fuzzing: FuzzingResult | None = None
