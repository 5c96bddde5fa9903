"""Data of a check's page: main scores on one axis with floors and ceiling, surprising images, generated images. The
truth is hidden from viewers who still have to review the system blind."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from experiments.core.system_names import SystemNameMasker
from experiments.core.thumbnails import is_key
from experiments.display.image_cards import ImageCard
from experiments.display.label_checks import AXIS, SEEN, count_positives, describe_reading, describe_split, read_check
from experiments.display.plots import Interval, Scale
from experiments.label_checks import drawing, lists
from experiments.label_checks.floors import FloorLane, Measure, read_lanes, read_rows
from experiments.label_checks.other_tests import read_tests
from experiments.models import CheckStatus, LabelCheck
from workers.record.estimates import Estimate
from workers.record.figures import figure
from workers.record.label_checks import CheckImage, CheckResult, NaturalResult

HIDDEN_TRUTH = "the truth, which you are to find out"
CORRECTED = "what r would be if the judge did not err, as long as its errors do not depend on the activation"
GOOD, SOME = 0.5, 0.2
"""Values of r from which a label explains much, or something, of the activation. r squared is a share of variance."""
TICKS = (0.0, 0.5, 1.0)


@dataclass(frozen=True)
class HeadlineRow:
    """A score on the axis, with base rate, floors and ceiling as marks."""

    name: str
    says: str
    estimate: Estimate
    interval: Interval
    marks: Sequence[tuple[float, str, str]]
    """Position, kind (floor, ceiling, base), text."""
    lanes: Sequence[FloorLane] = ()


def read_evidence(check: LabelCheck, names: SystemNameMasker) -> dict[str, Any]:
    """Return everything that the page shows of the result."""
    found = hide_truth(read_check(check), lists.place_of(check), names)
    natural, generated = found.natural, found.generated
    # One scale for all images of the page, natural and generated
    values = [*(natural.activations if natural else ())]
    threshold = generated.exemplar_mean if generated else None
    cards = _read_cards(found)
    scale = Scale.of([*values, *(card.activation for group in cards.values() for card in group)], threshold)
    return {
        "reading": describe_reading(check),
        "seen": SEEN.get(check.split, check.split),
        "remark": describe_split(check),
        "natural": natural,
        "positives": count_positives(natural) if natural else 0,
        "generated": generated,
        "headline": _read_headline(natural) if natural else [],
        "floors": read_rows(natural) if natural else [],
        "ticks": [(AXIS.at(value), f"{value:g}") for value in TICKS],
        "meaning": _explain(natural),
        "histogram": drawing.draw_natural(natural) if natural else None,
        "deciles": _read_deciles(natural) if natural else [],
        "tests": read_tests(natural.other_tests) if natural else None,
        "sweep": drawing.draw_sweep(generated.sweep, generated.threshold) if generated else None,
        "scale": scale,
        "cards": cards,
        "waits": check.status in (CheckStatus.QUEUED, CheckStatus.RUNNING),
    }


def hide_truth(found: CheckResult, place: tuple[str, str, int] | None, names: SystemNameMasker) -> CheckResult:
    """Return the result without the text of the truth, if the viewer still has to judge this system."""
    natural = found.natural
    if natural is None or natural.ceiling is None or (place is not None and not names.masks_unit(*place)):
        return found
    return replace(found, natural=replace(natural, ceiling=replace(natural.ceiling, what=HIDDEN_TRUTH)))


def _read_headline(found: NaturalResult) -> list[HeadlineRow]:
    """Return r and AUPRC, if measured, and r corrected for the judge's errors."""
    rows = []
    says: dict[Measure, tuple[str, str]] = {
        "pearson": ("r", "correlation of activation with what the label says"),
        "auprc": ("AUPRC", "how well activation finds the images that the label describes"),
    }
    # Floors of these kinds are drawn as lanes instead of single marks
    together = {each.spread.kind for each in read_rows(found)}
    for name, (short, words) in says.items():
        estimate: Estimate = getattr(found, name)
        if estimate.value is None or not math.isfinite(estimate.value):
            continue
        marks = [
            (AXIS.at(value), "floor", f"floor: {each.what}, {figure(value)}")
            for each in found.floors
            if each.kind not in together and (value := getattr(each, name)) is not None
        ]
        if found.ceiling and (value := getattr(found.ceiling, name)) is not None:
            marks.append((AXIS.at(value), "ceiling", f"ceiling: {found.ceiling.what}, {figure(value)}"))
        if name == "auprc" and found.base_rate is not None:
            words_of_base = f"base rate, the AUPRC of a label that says nothing: {figure(found.base_rate)}"
            marks.append((AXIS.at(found.base_rate), "base", words_of_base))
        interval = Interval.on(AXIS, estimate.value, estimate.low, estimate.high)
        rows.append(HeadlineRow(short, words, estimate, interval, marks, read_lanes(found, name)))
    if found.corrected and (value := found.corrected.pearson.value) is not None:
        estimate = found.corrected.pearson
        interval = Interval.on(AXIS, value, estimate.low, estimate.high)
        rows.append(HeadlineRow("r, corrected for the judge's errors", CORRECTED, estimate, interval, ()))
    return rows


def _explain(found: NaturalResult | None) -> str:
    """Explain the main scores for beginners."""
    if found is None or found.pearson.value is None:
        return ""
    r, low, high = found.pearson.value, found.pearson.low, found.pearson.high
    if low is None or high is None:
        return "These figures are of this sample alone: too few of its images show what the label says."
    # Before the size of r: it may be chance
    if low <= 0 <= high:
        return (
            "The interval holds 0: on these images the label tells nothing that could not be chance. More images, or "
            "another label, would have to show otherwise."
        )
    if r <= -SOME:
        return "The unit responds less where the label says that it should: the label is wrong, or turned round."
    share = f"about {r * r:.0%} of how its activation varies".replace("%", " %")
    if r >= GOOD:
        return f"The label predicts the unit well: it accounts for {share} over images that its author never saw."
    if r >= SOME:
        return f"The label is part of the truth: it accounts for {share}. The surprises below show what it leaves out."
    return f"The label says little of the unit: it accounts for {share}. The surprises below show what it leaves out."


def _read_deciles(found: NaturalResult) -> list[tuple[int, float | None, float | None]]:
    """Return (number of the tenth, r within it, position between -1 and 1 in thousandths)."""
    rows: list[tuple[int, float | None, float | None]] = []
    for number, value in enumerate(found.deciles, 1):
        rows.append((number, value, None if value is None else round(500 + 500 * max(-1.0, min(1.0, value)), 1)))
    return rows


def _read_cards(found: CheckResult) -> dict[str, list[ImageCard]]:
    """Return image cards by section. Images without a key are left out."""
    natural, generated = found.natural, found.generated
    return {
        "bright": _cards(natural.bright_without if natural else (), "dataset"),
        "dark": _cards(natural.dark_with if natural else (), "dataset"),
        "positive": _cards(generated.positive if generated else (), "generated"),
        "neutral": _cards(generated.neutral if generated else (), "generated"),
    }


def _cards(images: Iterable[CheckImage], origin: str) -> list[ImageCard]:
    return [
        ImageCard(
            each.prompt or _describe_expected(each.expected),
            each.activation,
            each.image,
            each.masked if is_key(each.masked) else each.image,
            origin,
            each.prompt,
            each.seed,
            measured=True,
        )
        for each in images
        if is_key(each.image)
    ]


def _describe_expected(expected: float) -> str:
    if expected >= 0.5:
        return "Described by the label" if expected >= 1 else f"Described by the label, says the judge ({expected:.2f})"
    return "Not described by the label" if expected <= 0 else f"Not described, says the judge ({expected:.2f})"
