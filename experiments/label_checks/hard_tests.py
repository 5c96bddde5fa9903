"""Hard negatives and fuzzing on the page of a check: rows of figures beside detection, and the limits of each."""

from __future__ import annotations

from dataclasses import dataclass

from workers.record.estimates import Estimate
from workers.record.figures import EN_DASH, figure
from workers.record.other_tests import DETECTION_CHANCE, FuzzingResult, HardNegativesResult, NeighbourUnit

ALIKE_BLIND = "It need not fall when the label is too broad in other images than these."
NEIGHBOURS_BLIND = "It need not fall when the label is too broad in images that no neighbour responds to."
FUZZING_BLIND = "It need not fall when the label is too broad in other images."


@dataclass(frozen=True)
class LabelTestRow:
    """A figure of a test: name, explanation, value with interval, and the chance level."""

    name: str
    says: str
    estimate: Estimate
    chance: str = ""

    @property
    def reason(self) -> str:
        """Return why there is no value or no interval."""
        if self.estimate.low is not None or not self.estimate.why:
            return ""
        return f"No {'figure' if self.estimate.value is None else 'interval'}: {self.estimate.why}."


def list_alike(found: HardNegativesResult | None) -> list[LabelTestRow]:
    """Return rows of hard negatives by similarity; empty for older checks."""
    if found is None:
        return []
    says = "The other images are those that look most like the top images to this layer, and hardly activate the unit."
    return _list_hard("Hard negatives, alike", says, ALIKE_BLIND, found)


def list_neighbours(found: HardNegativesResult | None) -> list[LabelTestRow]:
    """Return rows of hard negatives by neighbours, which are named; empty for older checks."""
    if found is None:
        return []
    says = f"The other images activate the units that respond with this one{_name_units(found.neighbours)}, not it."
    return _list_hard("Hard negatives, neighbours", says, NEIGHBOURS_BLIND, found)


def list_fuzzing(found: FuzzingResult | None) -> list[LabelTestRow]:
    """Return rows of fuzzing; empty for older checks."""
    if found is None:
        return []
    says = (
        "Of the top images the judge sees a marked part: how often it is right about whether the unit responds there. "
        f"{FUZZING_BLIND}{_describe_parts(found)}"
    )
    row = LabelTestRow("Fuzzing, balanced accuracy", says, found.balanced_accuracy, figure(DETECTION_CHANCE))
    if found.balanced_accuracy.value is None:
        return [row]
    return [
        row,
        LabelTestRow("Parts that respond", "Of these, how many show what the label says.", found.responding, EN_DASH),
        LabelTestRow("Parts elsewhere", "The same of equally large parts elsewhere.", found.elsewhere, EN_DASH),
        LabelTestRow(
            "Fuzzing, failed", "Answers that could not be read. Above they count as wrong.", found.failed, EN_DASH
        ),
    ]


def _list_hard(name: str, says: str, blind: str, found: HardNegativesResult) -> list[LabelTestRow]:
    tells = f"Balanced accuracy. {says} {blind}"
    if found.failed:
        tells += f" {found.failed} of these images had an unread answer, which counts as wrong."
    row = LabelTestRow(name, tells, found.balanced_accuracy, figure(DETECTION_CHANCE))
    if found.balanced_accuracy.value is None:
        return [row]
    n = found.balanced_accuracy.n
    low = "" if found.low is None else f", {figure(found.low)}"
    return [
        row,
        LabelTestRow("AUC", "Of the same images.", Estimate(found.auc, n=n), figure(DETECTION_CHANCE)),
        LabelTestRow(
            "Less than detection by",
            "How much of detection was easy: its balanced accuracy less this one. The hard images are a tenth of the "
            f"{found.images:,} whose activation is at most the median{low}.",
            found.drop,
            "0 if none",
        ),
    ]


def _name_units(neighbours: tuple[NeighbourUnit, ...]) -> str:
    named = ", ".join(f"{each.unit} (r {figure(each.r)})" for each in neighbours)
    return f": {named}" if named else ""


def _describe_parts(found: FuzzingResult) -> str:
    parts = []
    if found.dimmed:
        parts.append(" The judge saw whole images with the rest dimmed, so the surroundings may influence it.")
    if found.cover is not None:
        parts.append(f" The median part covers {figure(100 * found.cover)} % of its image.")
    if found.left_out:
        parts.append(f" {found.left_out} images have no second part of that size.")
    return "".join(parts)
