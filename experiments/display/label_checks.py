"""Show the label check beside a label: its correlation with interval, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypeVar

import msgspec
from django.db.models import Prefetch

from experiments.display.plots import Axis, Interval, Plot, PlotLine, PlotShape, Text
from experiments.models import CheckStatus, LabelCheck
from experiments.models.evaluation import DEVELOPMENT, PROBE
from workers.record.figures import figure
from workers.record.label_checks import (
    MIN_POSITIVES,
    CheckResult,
    GeneratedResult,
    LabelReading,
    NaturalResult,
    Reference,
)

T = TypeVar("T")
AXIS = Axis(-0.2, 1.0, 0, 1000)
"""Axis for r and AUPRC; lower values are drawn at its left end."""
ZERO = AXIS.at(0.0)
FIGURES, FIGURE_ROW = PlotShape(300, 70, 64, 12, 4, 18), 24
"""The drawing of a check's figures, and the height of one."""
HEAVY = ("result", "kept", "options")
"""Large columns that marks do not need."""
WAITS = frozenset({CheckStatus.QUEUED.value, CheckStatus.RUNNING.value})
WORDS = {
    CheckStatus.QUEUED.value: "checking…",
    CheckStatus.RUNNING.value: "checking…",
    CheckStatus.UNFINISHED.value: "check unfinished",
    CheckStatus.UNTESTABLE.value: "cannot be tested",
    CheckStatus.FAILED.value: "check failed",
    CheckStatus.DONE.value: "nothing measured",
}
"""Text shown if there is no figure."""
SEEN = {
    PROBE: "On images that its author never saw",
    DEVELOPMENT: "On development images, on which a run tried it",
    "": "On images from before datasets were split",
}
"""The images of a check, by its split."""
NOTES = {DEVELOPMENT: "development", "": "old images"}
"""Text beside a figure that is not from the probe split."""
REMARKS = {
    DEVELOPMENT: "A run tried this label while it went on, and its agent was told how it did. What is reported of a "
    "label is measured on the probe, which no agent is told of.",
    "": "This was measured before datasets were split into exemplars, development images and a probe. Where the "
    "dataset makes no fresh images, exemplars of the unit were cut from these, which lowers r; and an agent that tried "
    "labels was told how they did on the same images.",
}
"""Explanation of a figure that is not from the probe split."""


@dataclass(frozen=True)
class CheckMark:
    """The mark beside a label. `measure` and `value` are "" if nothing is measured; `title` has the rest."""

    state: str
    words: str
    measure: str = ""
    value: str = ""
    interval: Interval | None = None
    title: str = ""
    pk: int | None = None
    note: str = ""
    """What its images are if not the probe split, and a note if they are too few for an interval."""

    @property
    def waits(self) -> bool:
        return self.state in WAITS

    @property
    def zero(self) -> float:
        return ZERO


NOT_CHECKED = CheckMark("none", "not checked")


def describe_check(check: LabelCheck | None) -> CheckMark:
    """Return the mark of a check, or a mark for a missing check."""
    if check is None:
        return NOT_CHECKED
    # A check may wait for people under any status.
    words = "waits for people" if check.waits_for_people else WORDS.get(check.status, check.status)
    if check.pearson is None:
        if check.generated_auc is None:
            return CheckMark(check.status, words, title=check.reason, pk=check.pk)
        value, title = figure(check.generated_auc), "AUC of generated images; natural ones were not measured"
        return CheckMark(
            check.status, words, "AUC", value, Interval.on(AXIS, check.generated_auc, None, None), title, check.pk
        )
    interval = Interval.on(AXIS, check.pearson, check.pearson_low, check.pearson_high)
    title = ". ".join(each for each in (_describe_figures(check), describe_reading(check, news=True)) if each)
    notes = [NOTES.get(check.split, ""), "" if check.pearson_low is not None else "too few positives"]
    note = ", ".join(each for each in notes if each)
    return CheckMark(check.status, words, "r", figure(check.pearson), interval, title, check.pk, note)


@dataclass(frozen=True)
class CheckFigures:
    """What a card shows of a check: a plot, or `why` there is none.

    `ceiling` is the score of the truth itself; `remark` is set if the images are not the probe split.
    """

    plot: Plot | None = None
    why: str = ""
    ceiling: float | None = None
    remark: str = ""


def read_figures(check: LabelCheck, *, ceiling: bool = True) -> CheckFigures:
    """Return the figures of a check for a card; with `ceiling`, for viewers who may know if the label is right."""
    if check.status == CheckStatus.UNTESTABLE:
        return CheckFigures(why=f"Not readable: {check.reason or 'the label names nothing that an image could show.'}")
    natural = read_check(check).natural
    # A correlation with a handful of positives would look exact and say nothing.
    if natural and natural.expected and (positives := count_positives(natural)) < MIN_POSITIVES:
        return CheckFigures(why=f"Too few positives: {positives} of {natural.images:,} unseen images show it.")
    # The ceiling is the score of the truth: beside it, a viewer sees whether the label is right.
    known = natural.ceiling if natural and ceiling else None
    drawn = _draw_figures(check, known)
    return CheckFigures(drawn, ceiling=known.pearson if known else None, remark=describe_split(check) if drawn else "")


def count_positives(natural: NaturalResult) -> int:
    """Return the number of images that the label describes; for checks from before this was stored, of all images."""
    return natural.positives or sum(each is not None and each >= 0.5 for each in natural.expected)


def _draw_figures(check: LabelCheck, ceiling: Reference | None) -> Plot | None:
    """Plot r and AUPRC on unseen images with 95 % intervals, the base rate (the score of a label that says
    nothing), and the ceiling if known. None if neither is measured."""
    rows = [("r", check.pearson, check.pearson_low, check.pearson_high)]
    rows += [("AUPRC", check.auprc, check.auprc_low, check.auprc_high)]
    known = [(name, value, low, high) for name, value, low, high in rows if value is not None]
    if not known:
        return None
    x = Axis(AXIS.low, AXIS.high, FIGURES.left, FIGURES.edge)
    plot = Plot(FIGURES, x, Axis(0, 1, FIGURES.floor, FIGURES.top), _describe_figures(check))
    # Fixed lines: cards side by side are compared by eye.
    for value in (0.0, 0.5, 1.0):
        kind = "across zero" if value == 0 else "across"
        plot.grid.append(PlotLine(x.at(value), x.at(value), FIGURES.top, FIGURES.floor, kind))
        plot.add_below(value, f"{value:g}")
    for place, (name, value, low, high) in enumerate(known):
        y = FIGURES.top + FIGURE_ROW * (place + 0.5)
        plot.texts.append(Text(0, y, f"{name} {figure(value)}", "start", "name"))
        if low is not None and high is not None:
            plot.lines.append(PlotLine(x.at(low), x.at(high), y, y, "whisker"))
        if name == "AUPRC" and check.base_rate is not None:
            at = x.at(check.base_rate)
            plot.lines.append(PlotLine(at, at, y - 9, y + 9, "base-rate"))
        if ceiling and (most := ceiling.auprc if name == "AUPRC" else ceiling.pearson) is not None:
            plot.lines.append(PlotLine(x.at(most), x.at(most), y - 9, y + 9, "ceiling"))
        plot.add_dot(x.at(value), y, "figure", f"{name} {_format_interval(value, low, high)}")
    return plot


def _describe_figures(check: LabelCheck) -> str:
    """Return the main figures in a sentence, for tooltips and screen readers."""
    parts = [f"r {_format_interval(check.pearson, check.pearson_low, check.pearson_high)}"]
    if check.auprc is not None:
        parts.append(f"AUPRC {_format_interval(check.auprc, check.auprc_low, check.auprc_high)}")
    if check.base_rate is not None:
        parts.append(f"base rate {figure(check.base_rate)}")
    return f"{SEEN.get(check.split, check.split)}: {'; '.join(parts)}"


def describe_split(check: LabelCheck) -> str:
    """Return what to know about the natural images of a check; "" if they are the probe split."""
    return REMARKS.get(check.split, "") if check.pearson is not None else ""


def describe_reading(check: LabelCheck | None, *, news: bool = False) -> str:
    """Return how the judge read the label, in words; with `news`, only if it differs from the label."""
    reading = read_reading(check) if check else None
    if reading is None or (news and reading.says_same(check.text if check else "")):
        return ""
    return reading.words


def _format_interval(value: float | None, low: float | None, high: float | None) -> str:
    known = low is not None and high is not None
    return f"{figure(value)} (95 % interval {figure(low)} to {figure(high)})" if known else figure(value)


def fetch_checks() -> Prefetch[Any, Any, Any]:
    """Return a prefetch for lists of rows with a check: one query, without the per-image results."""
    return Prefetch("label_check", LabelCheck.objects.defer(*HEAVY))


def read_check(check: LabelCheck) -> CheckResult:
    """Return all parts of a check's result that have the right shape; others count as missing."""
    data = check.result if isinstance(check.result, dict) else {}
    natural = _read_part(data.get("natural"), NaturalResult)
    return CheckResult(natural, _read_part(data.get("generated"), GeneratedResult), read_reading(check))


def read_reading(check: LabelCheck) -> LabelReading | None:
    """Return how the judge understood the label; None if it is taken as written."""
    return _read_part(check.reading or None, LabelReading)


def _read_part(data: Any, shape: type[T]) -> T | None:
    """Return a part, with defaults for fields that do not fit."""
    if not isinstance(data, dict):
        return None
    # The type variable is not bound to dataclasses, which all callers pass.
    hints = {each.name for each in fields(shape)}  # type: ignore[arg-type]
    fitting: dict[str, Any] = {}
    for name in hints & data.keys():
        # Older results lack fields or have other types: each field is read separately, so that the rest survives.
        try:
            msgspec.convert({name: data[name]}, shape)
        except msgspec.ValidationError:
            continue
        fitting[name] = data[name]
    return msgspec.convert(fitting, shape)
