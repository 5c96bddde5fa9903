"""Other tests on the page of a check: rows of figures, counts of detection, and its curve by decile."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from experiments.display.plots import Axis, Plot, PlotLine, PlotShape, PlotTable
from experiments.label_checks.hard_tests import LabelTestRow, list_alike, list_fuzzing, list_neighbours
from workers.record.estimates import Estimate
from workers.record.figures import EN_DASH, figure
from workers.record.other_tests import (
    DETECTION_CHANCE,
    INTRUDER_CHANCE,
    Confusion,
    DetectionResult,
    OtherTests,
    SimulationResult,
)

TENTHS = 10
MIX = 2 / 3
"""Share of activating images in the mix for precision and F1: the precision of a label that fits every image, or of
random images. Its F1 is 0.8."""
BLIND = "It need not fall when the label is too broad."


@dataclass(frozen=True)
class LabelTestEvidence:
    """All data of the section."""

    rows: Sequence[LabelTestRow]
    counts: Sequence[tuple[str, int, int, int]]
    """For activating and other images: described, not described, unreadable; empty if no images were judged."""
    activating: str
    """Number of images that activate the unit, and the threshold."""
    curve: Plot | None


def read_tests(found: OtherTests | None) -> LabelTestEvidence | None:
    """Return the data of the section; None for a check from before these tests."""
    if found is None:
        return None
    detection = found.detection
    rows = [
        *_list_detection(detection),
        *list_alike(found.alike),
        *list_neighbours(found.neighbours),
        *list_fuzzing(found.fuzzing),
        _read_intruder(found),
        *_list_simulation(found.simulation),
    ]
    counts = _read_counts(detection.confusion)
    return LabelTestEvidence(rows, counts, _describe_activating(detection), _draw_deciles(detection))


def _list_detection(found: DetectionResult) -> list[LabelTestRow]:
    accuracy = LabelTestRow(
        "Detection, balanced accuracy",
        f"How often the label is right about an image: the mean over activating and other ones. {BLIND}",
        found.balanced_accuracy,
        figure(DETECTION_CHANCE),
    )
    if found.balanced_accuracy.value is None:
        return [accuracy]
    n = found.balanced_accuracy.n
    return [
        accuracy,
        LabelTestRow(
            "AUC",
            "The chance that the label fits an activating image better than another. Of yes or no it is the balanced "
            f"accuracy. {BLIND}",
            Estimate(found.auc, n=n),
            figure(DETECTION_CHANCE),
        ),
        LabelTestRow(
            "F1",
            f"Of precision and recall, at two activating images to one other. {BLIND}",
            Estimate(found.f1, n=n),
            "0.80 if it fits all",
        ),
        LabelTestRow(
            "Precision",
            "Of the images that the label describes, how many activate the unit. It need not fall when the label is "
            "too narrow.",
            Estimate(found.precision, n=n),
            figure(MIX),
        ),
        LabelTestRow(
            "Recall",
            "Of the activating images, how many the label describes. It never falls when the label is too broad.",
            Estimate(found.recall, n=n),
            "1 if it fits all",
        ),
        LabelTestRow("Failed", "Answers that could not be read. Above they count as wrong.", found.failed, EN_DASH),
    ]


def _read_intruder(found: OtherTests) -> LabelTestRow:
    failed = found.intruder.failed
    lost = f" {failed} of {found.intruder.share.n} sets had an unread answer and count as wrong." if failed else ""
    says = "Of four activating images and one other, how often the label fits the other one least."
    return LabelTestRow("Intruder test", f"{says} {BLIND}{lost}", found.intruder.share, figure(INTRUDER_CHANCE))


def _list_simulation(found: SimulationResult) -> list[LabelTestRow]:
    again = (
        "it is r again, of half of the images"
        if found.graded
        else "for a judge who answers yes or no it is r again, of half of the images"
    )
    return [
        LabelTestRow(
            "Simulation, correlation",
            f"Activation predicted from the label, against the activation: {again}.",
            found.correlation,
            "0",
        ),
        LabelTestRow(
            "Simulation, explained variance",
            "How much of the activation the prediction gets right, its size too. The scaling is fitted on the other "
            f"{found.fitted:,} images.",
            found.explained_variance,
            "0",
        ),
    ]


def _read_counts(found: Confusion) -> list[tuple[str, int, int, int]]:
    rows = [
        ("Activate the unit", found.hits, found.misses, found.failed_activating),
        ("Do not", found.false_alarms, found.rejections, found.failed_others),
    ]
    return rows if any(sum(counts) for _, *counts in rows) else []


def _describe_activating(found: DetectionResult) -> str:
    if found.threshold is None:
        return ""
    return (
        f"{found.activating:,} of {found.images:,} images activate the unit: above its mask threshold, "
        f"{figure(found.threshold)}."
    )


def _draw_deciles(found: DetectionResult) -> Plot | None:
    """Draw the share described by the label, for each tenth of the activating images, and for the others as a level."""
    known = [
        (number, each)
        for number, each in enumerate(found.deciles[:TENTHS], 1)
        if each.value is not None and math.isfinite(each.value)
    ]
    # One point is no curve
    if len(known) < 2:
        return None
    shape = PlotShape(470, 210, 46, 14, 24, 44)
    plot = Plot(
        shape,
        Axis(0.5, TENTHS + 0.5, shape.left, shape.edge, 1),
        Axis(0, 1, shape.floor, shape.top),
        "Share of images that the label describes, by tenth of the activating images",
    )
    plot.name_axes("tenth of the activating images, strongest last", "described")
    for value in (0, 0.5, 1):
        plot.add_across(value, f"{value:g}")
    plot.add_path([(number, each.value or 0.0) for number, each in known], "part-0")
    for number, each in known:
        plot.add_below(number, str(number))
        x = plot.x.at(number)
        if each.low is not None and each.high is not None:
            plot.lines.append(PlotLine(x, x, plot.y.at(each.low), plot.y.at(each.high), "whisker"))
        plot.add_dot(x, plot.y.at(each.value or 0.0), "part-0", _describe_tenth(number, each))
    if others := found.confusion.false_alarms + found.confusion.rejections + found.confusion.failed_others:
        share = found.confusion.false_alarms / others
        plot.add_level(share)
        plot.note = f"Dashed: of the images that do not activate the unit, {figure(share)} are described."
    rows = [(str(number), each.value, each.low, each.high, each.n) for number, each in known]
    plot.table = PlotTable(("Tenth", "Described", "From", "To", "Images"), rows)
    return plot


def _describe_tenth(number: int, each: Estimate) -> str:
    span = "" if each.low is None or each.high is None else f", {figure(each.low)} to {figure(each.high)}"
    return f"tenth {number}: {figure(each.value)}{span}, {each.n} images"
