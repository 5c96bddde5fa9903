"""The result of a label check: how well the label predicts the unit on images that its author never saw.

Plain typed data, stored with the check and read by pages, API and exports. Figures that could not be measured are
None, and `problem` says why. Sources: r and AUPRC, NeuronEval (2506.05774); AUC and MAD, CoSy (2405.20331);
predictiveness, SAIA (2510.21704); two means of 7 + 7 images, MAIA (2404.14394, section 4.1).
"""

from __future__ import annotations

from dataclasses import dataclass

from workers.record.circuits import CircuitFindings
from workers.record.estimates import NONE, Estimate
from workers.record.other_tests import OtherTests

FOREIGN_LABEL, RANDOM_UNIT = "label", "unit"
"""Kinds of baselines ("floors")."""
MIN_POSITIVES = 20
"""r and AUPRC have an interval only with this many images that the label describes, and as many that it does not.
With fewer they say more about the sample than about the label."""


@dataclass(frozen=True)
class LabelReading:
    """How a grammar-based judge understands a label. It scores only a label that it understands completely."""

    read_as: str = ""
    """In words of the grammar, such as "red balls on snow OR cups"; "" if nothing is understood."""
    not_understood: tuple[str, ...] = ()
    """Words and phrases of the label that were not understood, in order."""

    def says_same(self, label: str) -> bool:
        """True if the label was read as written."""
        # Case and a full stop do not change what a label says
        return not self.not_understood and self.read_as.casefold() == label.strip(" .").casefold()

    @property
    def words(self) -> str:
        """One or two sentences for people and the agent."""
        quoted = ", ".join(f"“{each}”" for each in self.not_understood)
        sentences = [
            f"Read as “{self.read_as}”." if self.read_as else "",
            f"Not understood: {quoted}." if quoted else "",
        ]
        return " ".join(each for each in sentences if each)


@dataclass(frozen=True)
class Reference:
    """The figures of something else on the same images: a floor or the ceiling."""

    what: str
    """The label or unit that replaced the checked one."""
    pearson: float | None = None
    auprc: float | None = None
    auc: float | None = None
    """Of 7 + 7 generated images."""
    kind: str = ""
    """Kind of a floor: `FOREIGN_LABEL` or `RANDOM_UNIT`; "" in older checks with one floor each."""


@dataclass(frozen=True)
class FloorFigure:
    """A figure over several floors of one kind: mean, standard deviation, range, and the label's advantage."""

    mean: float | None = None
    sd: float | None = None
    least: float | None = None
    most: float | None = None
    above: Estimate = NONE
    """The label's figure minus the mean. Its interval includes 0 for 95 % of labels that are no better than a floor."""


@dataclass(frozen=True)
class FloorSpread:
    """Floors of one kind on the same images as the label."""

    kind: str
    """`FOREIGN_LABEL`: labels of other units on this unit. `RANDOM_UNIT`: this label on other units."""
    count: int
    pearson: FloorFigure
    auprc: FloorFigure


@dataclass(frozen=True)
class CheckImage:
    """One image with the unit's activation and the label's prediction."""

    image: str
    """Key of the stored image."""
    masked: str
    activation: float
    expected: float
    """The predicted response of the unit, in [0, 1]."""
    prompt: str = ""
    seed: int | None = None


@dataclass(frozen=True)
class JudgeError:
    """How often a judge errs on images with known truth."""

    n: int
    false_positives: Estimate
    false_negatives: Estimate
    unread: int


@dataclass(frozen=True)
class CorrectedFigures:
    """r and base rate as they would be without the judge's errors, estimated from known images."""

    pearson: Estimate
    """Valid if the judge's errors do not depend on the activation."""
    base_rate: Estimate


@dataclass(frozen=True)
class NaturalResult:
    """The label on held-out images of the dataset at their natural base rate."""

    dataset: str = ""
    judge: str = ""
    exact: bool = False
    """True if the judge knows what the images show and does not have to look at them."""
    images: int = 0
    positives: int = 0
    """Judged images that the label describes."""
    unread: int = 0
    """Images without a readable answer of the judge. No figure includes them."""
    base_rate: float | None = None
    """Share of the images that the label describes."""
    threshold: float | None = None
    """The unit's mask threshold; for `f1`, a unit above it is active."""
    pearson: Estimate = NONE
    p_value: float | None = None
    """p-value of r = 0 from a permutation test."""
    auprc: Estimate = NONE
    f1: float | None = None
    deciles: tuple[float | None, ...] = ()
    """r within each tenth of the images by activation, lowest first."""
    floors: tuple[Reference, ...] = ()
    """Labels of other units, and random units, each separately."""
    floor_spreads: tuple[FloorSpread, ...] = ()
    """All floors of a kind together; empty in older checks with one floor each."""
    ceiling: Reference | None = None
    """Figures of the truth, if it is known."""
    judge_error: JudgeError | None = None
    corrected: CorrectedFigures | None = None
    """Present if `judge_error` is known. It never replaces `pearson`."""
    agreement: Estimate = NONE
    """Share of equal pairs of answers to one image, if two or more people judge."""
    agreement_alpha: Estimate = NONE
    """Krippendorff's alpha of the same answers: 1 for full agreement, 0 for chance."""
    activations: tuple[float, ...] = ()
    """Activations of the first 1,000 images, followed by the others that the label describes. If a language model or
    people judge, of the images that they were asked about."""
    expected: tuple[float | None, ...] = ()
    """The judge's answer for each of these; None if it could not be read or is missing."""
    bright_without: tuple[CheckImage, ...] = ()
    """The brightest images that the label does not describe."""
    dark_with: tuple[CheckImage, ...] = ()
    """The darkest images that it does describe."""
    circuit: CircuitFindings | None = None
    """For a circuit: how its members respond together on these images."""
    other_tests: OtherTests | None = None
    """Detection and further tests; None in checks from before they existed."""
    problem: str = ""


@dataclass(frozen=True)
class GeneratedResult:
    """The label on images drawn for it. The writer of the prompts knows only the label."""

    writer: str = ""
    generator: str = ""
    prompts: int = 0
    """Prompts on each side."""
    seeds: int = 0
    refused: int = 0
    """Prompts that the generator refused to draw."""
    positive_mean: Estimate = NONE
    neutral_mean: Estimate = NONE
    exemplar_mean: float | None = None
    auc: Estimate = NONE
    """Of the 7 + 7 images."""
    cosy_auc: float | None = None
    cosy_mad: float | None = None
    predictiveness: Estimate = NONE
    """Share of 10 + 10 images on the correct side of `threshold` times the exemplar mean."""
    threshold: float = 0.5
    sweep: tuple[tuple[float, float], ...] = ()
    """Predictiveness by threshold."""
    floors: tuple[Reference, ...] = ()
    positive: tuple[CheckImage, ...] = ()
    neutral: tuple[CheckImage, ...] = ()
    problem: str = ""


@dataclass(frozen=True)
class CheckResult:
    """Both parts of a check."""

    natural: NaturalResult | None = None
    generated: GeneratedResult | None = None
    reading: LabelReading | None = None
    """How the label was read; None if a model or people judge, who take it as written."""
