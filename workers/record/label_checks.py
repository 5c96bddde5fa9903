"""What a label check found: how well the label predicts the unit on images that its author never saw.

Plain typed data, stored with the check and read by pages, the API and exports. Figures that could not be measured are
None, and `problem` says why. Sources: r and AUPRC, NeuronEval (2506.05774); AUC and MAD, CoSy (2405.20331);
predictiveness, SAIA (2510.21704); two means of 7 + 7 images, MAIA (2404.14394, section 4.1).
"""

from __future__ import annotations

from dataclasses import dataclass

from workers.record.circuits import CircuitFindings
from workers.record.estimates import NONE, Estimate
from workers.record.other_tests import OtherTests

FOREIGN_LABEL, RANDOM_UNIT = "label", "unit"
"""Kinds of floors."""
MIN_POSITIVES = 20
"""Images that show what a label says, and that do not, below which r and AUPRC have no interval: they say more of the
sample than of the label."""


@dataclass(frozen=True)
class LabelReading:
    """How a judge that reads words by a grammar understands a label; it scores only one that it understands whole."""

    read_as: str = ""
    """In words of the grammar: "red balls on snow OR cups"; "" if nothing is understood."""
    not_understood: tuple[str, ...] = ()
    """Words and phrases of the label, in order."""

    def says_same(self, label: str) -> bool:
        """Whether it was read as it is written."""
        return not self.not_understood and self.read_as.casefold() == label.strip(" .").casefold()

    @property
    def words(self) -> str:
        """In one or two sentences, for people and the agent."""
        quoted = ", ".join(f"“{each}”" for each in self.not_understood)
        sentences = [
            f"Read as “{self.read_as}”." if self.read_as else "",
            f"Not understood: {quoted}." if quoted else "",
        ]
        return " ".join(each for each in sentences if each)


@dataclass(frozen=True)
class Reference:
    """The same figures of something else on the same images: a floor, or the ceiling."""

    what: str
    """The label or the unit that was put in the place of the checked one."""
    pearson: float | None = None
    auprc: float | None = None
    auc: float | None = None
    """Of 7 + 7 generated images."""
    kind: str = ""
    """Of a floor: `FOREIGN_LABEL` or `RANDOM_UNIT`; "" in checks from before there were several of each."""


@dataclass(frozen=True)
class FloorFigure:
    """A figure of several floors of one kind: mean, standard deviation and range, and how far the label is above."""

    mean: float | None = None
    sd: float | None = None
    least: float | None = None
    most: float | None = None
    above: Estimate = NONE
    """The label's figure less the mean; its interval holds 0 for 95 in 100 labels that are no better than a floor."""


@dataclass(frozen=True)
class FloorSpread:
    """Floors of one kind, on the same images as the label."""

    kind: str
    """`FOREIGN_LABEL`: labels of other units on this unit; `RANDOM_UNIT`: this label on other units."""
    count: int
    pearson: FloorFigure
    auprc: FloorFigure


@dataclass(frozen=True)
class CheckImage:
    """One image, with what the unit answered and what the label says of it."""

    image: str
    """Key of the stored image."""
    masked: str
    activation: float
    expected: float
    """How much the label says that the unit should respond, in [0, 1]."""
    prompt: str = ""
    seed: int | None = None


@dataclass(frozen=True)
class JudgeError:
    """How often a judge errs on images whose truth is known."""

    n: int
    false_positives: Estimate
    false_negatives: Estimate
    unread: int


@dataclass(frozen=True)
class CorrectedFigures:
    """What r and the base rate would be if the judge did not err, by how often it does on known images."""

    pearson: Estimate
    """It holds where the judge's errors do not depend on the activation."""
    base_rate: Estimate


@dataclass(frozen=True)
class NaturalResult:
    """The label against held-out images of the dataset, at their natural base rate."""

    dataset: str = ""
    judge: str = ""
    exact: bool = False
    """Whether the judge knows what the images show, rather than looking at them."""
    images: int = 0
    positives: int = 0
    """Images that the label describes, of those that a judge saw."""
    unread: int = 0
    """Images of which the judge gave no answer that could be read; they are in no figure."""
    base_rate: float | None = None
    """Share of the images that the label describes."""
    threshold: float | None = None
    """The unit's mask threshold, which `f1` takes for "active"."""
    pearson: Estimate = NONE
    p_value: float | None = None
    """Of r = 0, by a permutation test."""
    auprc: Estimate = NONE
    f1: float | None = None
    deciles: tuple[float | None, ...] = ()
    """r within each tenth of the images by activation, lowest first."""
    floors: tuple[Reference, ...] = ()
    """Labels of other units, and random units, each by itself."""
    floor_spreads: tuple[FloorSpread, ...] = ()
    """All floors of a kind together; none in checks from before there were several of each."""
    ceiling: Reference | None = None
    """The truth, where it is known."""
    judge_error: JudgeError | None = None
    corrected: CorrectedFigures | None = None
    """Where `judge_error` is known; never in place of `pearson`."""
    agreement: Estimate = NONE
    """Share of equal pairs of answers to one image, where two people or more judge."""
    agreement_alpha: Estimate = NONE
    """The same corrected for chance: Krippendorff's alpha, 1 for full agreement, 0 for what chance would give."""
    activations: tuple[float, ...] = ()
    """Of the first 1,000 images, and after them of the others that the label describes; where a language model or
    people judge, of the images that they were asked about."""
    expected: tuple[float | None, ...] = ()
    """What the judge said of each of these, None where it could not be read, or nobody has answered."""
    bright_without: tuple[CheckImage, ...] = ()
    """The brightest images that the label does not describe."""
    dark_with: tuple[CheckImage, ...] = ()
    """The darkest images that it does describe."""
    circuit: CircuitFindings | None = None
    """Of a circuit: how its members go together on these images."""
    other_tests: OtherTests | None = None
    """Detection and its like; None for a check from before they were measured."""
    problem: str = ""


@dataclass(frozen=True)
class GeneratedResult:
    """The label against images drawn for it by somebody who knows the label alone."""

    writer: str = ""
    generator: str = ""
    prompts: int = 0
    """On either side."""
    seeds: int = 0
    refused: int = 0
    """Prompts that the generator would not draw."""
    positive_mean: Estimate = NONE
    neutral_mean: Estimate = NONE
    exemplar_mean: float | None = None
    auc: Estimate = NONE
    """Of the 7 + 7."""
    cosy_auc: float | None = None
    cosy_mad: float | None = None
    predictiveness: Estimate = NONE
    """Share of 10 + 10 images on the right side of `threshold` times the exemplar mean."""
    threshold: float = 0.5
    sweep: tuple[tuple[float, float], ...] = ()
    """Predictiveness by threshold."""
    floors: tuple[Reference, ...] = ()
    positive: tuple[CheckImage, ...] = ()
    neutral: tuple[CheckImage, ...] = ()
    problem: str = ""


@dataclass(frozen=True)
class CheckResult:
    """Both halves of a check."""

    natural: NaturalResult | None = None
    generated: GeneratedResult | None = None
    reading: LabelReading | None = None
    """How the label was read; None where a model or people judge, who take it as it is written."""
