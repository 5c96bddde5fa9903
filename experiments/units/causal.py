"""Show causal checks on a unit's page: the form, progress and results.

The formula and the figures are in `workers.causal`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.core import notify
from experiments.core.compatibility import explain_unchangeable
from experiments.core.errors import InvalidInput
from experiments.core.params import parse_float, parse_key
from experiments.display.number_format import percent
from experiments.display.plots.geometry import Plot
from experiments.display.plots.rows import IntervalRow, draw_intervals
from experiments.models import CausalCheck, Dataset, Layer
from experiments.units.forms import OTHER, AskCausalCheck
from experiments.units.unit_ranges import format_ranges
from workers.record.causal import CausalQuestion, CausalReport, ImageEffect, find_problem, read_causal_report
from workers.record.estimates import Estimate

MAX_CHECKS = 10
"""Maximum checks that a page links to, the newest."""
MAX_TYPED = 2_000
"""Maximum characters of a list of units."""
_MEASURES = {
    "kl": "KL divergence of the class probabilities from the model's own, in nats",
    "binary_kl": "KL divergence from the model's own, summed over classes, in nats",
    "change": "squared change of the output, over its variance among images",
}
UNCLEAR = "unclear"
"""A class that neither falls nor rises beyond chance."""
_KINDS = {"falls": "part-3", "rises": "part-0", "": "part-other"}
# ASCII only: `\d` would also take digits of other scripts.
_STRETCH = re.compile(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9})\s*)?", re.ASCII)


def read_question(layer: Layer, number: int, sent: Mapping[str, Any]) -> CausalQuestion:
    """Return the question of a unit's form: `change`, `factor`, `reference`, `others`, `seed`. Raises InvalidInput."""
    change = sent.get("change") or "0"
    # The list of changes has factors as its values, and one entry that points to the field beside it.
    factor = parse_float(sent.get("factor") if change == OTHER else change)
    if factor is None:
        raise InvalidInput("Write the factor as a number from 0 to 10, such as 0.5.", "factor")
    units = read_units(layer, number, sent.get("others") or "", "others")
    return check_question(layer, CausalQuestion(units, factor, sent.get("reference") or "zero"))


def check_question(layer: Layer, question: CausalQuestion) -> CausalQuestion:
    """Return the question if the layer can answer it. Raises InvalidInput, with the field."""
    if problem := find_problem(question, layer.units):
        raise InvalidInput(problem[1], problem[0])
    return question


def read_units(layer: Layer, number: int, others: str, field: str = "units") -> tuple[int, ...]:
    """Return the unit and those that are changed with it, given as ranges such as "3,5-8"; ascending. Raises
    InvalidInput."""
    if len(others) > MAX_TYPED:
        raise InvalidInput(f"Write the other units in at most {MAX_TYPED:,} characters, such as 3,5-8.", field)
    numbers = {number}
    for part in filter(str.strip, others.split(",")):
        found = _STRETCH.fullmatch(part)
        # An unreadable part becomes an empty range, so that one check refuses both.
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, -1)
        if last < first:
            raise InvalidInput(f"“{part.strip()[:40]}” names no units. Write numbers such as 3,5-8.", field)
        # Before the range is built: it may name a billion units.
        if last >= layer.units:
            raise InvalidInput(
                f"{layer.name} has no unit {last}. Name units from 0 to {layer.units - 1:,}, such as 3,5-8.", field
            )
        numbers.update(range(first, last + 1))
    return tuple(sorted(numbers))


# --- the section of a unit's page ---------------------------------------------------------------------


@dataclass(frozen=True)
class CausalFigures:
    """The output's change over some images, as text: for the units, and for control units."""

    name: str
    images: int
    divergence: str
    control_divergence: str
    same: str
    control_same: str


@dataclass(frozen=True)
class ClassRow:
    """A class in the table."""

    name: str
    change: str
    probability: str
    control: str
    direction: str


@dataclass(frozen=True)
class DrawnCausalCheck:
    """What the page shows of a result."""

    report: CausalReport
    measure: str
    figures: Sequence[CausalFigures]
    plot: Plot | None
    classes: Sequence[ClassRow]
    draws: str


def read_section(
    layer: Layer, number: int, dataset: Dataset | None, asked: str, *, may_ask: bool, form: AskCausalCheck
) -> dict[str, Any]:
    """Return the content of the section; `asked` is the key of a check."""
    rows = CausalCheck.objects.filter(changed_units__layer=layer, changed_units__number=number)
    checks = list(rows.select_related("layer__model", "dataset", "job")[:MAX_CHECKS])
    # The requested check, else the newest.
    shown = next((each for each in checks if each.pk == parse_key(asked)), None) or next(iter(checks), None)
    why_not = explain_unchangeable(layer)
    others = set(shown.units) - {number} if shown else set()
    return {
        "checks": checks,
        "shown": shown,
        "with_others": format_ranges(others),
        "drawn": draw_check(shown) if shown else None,
        "progress": notify.read_progress(shown.job) if shown else None,
        "why_not": why_not,
        "may_ask": may_ask and not why_not and dataset is not None and dataset.available,
        "may_stop": may_ask,
        "form": form,
    }


def draw_check(row: CausalCheck) -> DrawnCausalCheck | None:
    """Return the result; None if it is not measured yet, or its data are invalid."""
    if row.measured is None:
        return None
    # The result comes from a worker: an invalid one must not break the unit's page.
    stored: Any = row.result
    try:
        return _draw(read_causal_report(stored))
    except (ValueError, OverflowError):
        return None


def _draw(report: CausalReport) -> DrawnCausalCheck:
    parts = {"All images": report.everywhere, "Most active tenth": report.most_active}
    return DrawnCausalCheck(
        report=report,
        measure=_MEASURES.get(report.measure, ""),
        figures=[_write_figures(name, effect) for name, effect in parts.items()] if not report.why else [],
        plot=_draw_classes(report.everywhere),
        classes=_list_classes(report.everywhere),
        draws="; ".join(format_ranges(each) for each in report.draws),
    )


def _draw_classes(effect: ImageEffect) -> Plot | None:
    """Plot the classes that change most, deepest fall first, against no change."""
    rows = [
        IntervalRow(
            each.name or f"class {each.number}",
            each.change.value,
            each.change.low,
            each.change.high,
            kind=_KINDS[each.direction],
        )
        for each in effect.classes
        if each.change.value is not None
    ]
    label = f"Classes whose logits change most over {effect.images:,} images"
    # The report is sorted already: from the deepest fall to the highest rise.
    plot = draw_intervals(rows, label, "change of the logit", level=0.0, sorts=False)
    if plot:
        used = {each.direction for each in effect.classes}
        names = {"falls": "falls", "rises": "rises", "": UNCLEAR}
        plot.legend = [(_KINDS[key], words) for key, words in names.items() if key in used]
        plot.table = None  # the page has its own table, with more columns
    return plot


def _list_classes(effect: ImageEffect) -> list[ClassRow]:
    return [
        ClassRow(
            each.name or f"class {each.number}",
            _write(each.change, _write_change),
            _write(each.probability, _write_points),
            "" if each.control is None else _write_change(each.control),
            each.direction or UNCLEAR,
        )
        for each in effect.classes
    ]


def _write_figures(name: str, effect: ImageEffect) -> CausalFigures:
    control = effect.control
    return CausalFigures(
        name=name,
        images=effect.images,
        divergence=_write(effect.divergence, "{:.3g}".format),
        control_divergence=_write_draws(control.divergences, "{:.3g}".format) or control.why,
        same=_write(effect.same, percent),
        control_same=_write_draws(control.same, percent),
    )


def _write(figure: Estimate, words: Callable[[float], str]) -> str:
    """Format a figure with its 95 % interval, or why there is none."""
    if figure.value is None:
        return figure.why
    if figure.low is None or figure.high is None:
        return f"{words(figure.value)} ({figure.why})" if figure.why else words(figure.value)
    return f"{words(figure.value)} [{words(figure.low)}, {words(figure.high)}]"


def _write_change(change: float) -> str:
    """Format with three decimals; smaller changes in scientific notation."""
    if not change:
        return "0"
    # Below half of the last decimal, three decimals would show 0.
    return f"{change:+.3f}" if abs(change) >= 0.0005 else f"{change:+.0e}"


def _write_points(change: float) -> str:
    """Format a change of a probability, in percentage points."""
    points = round(100 * change, 1)
    # After rounding, since -0.04 would be shown as "-0.0".
    return f"{points:+.1f}" if points else "0"


def _write_draws(values: Sequence[float], words: Callable[[float], str]) -> str:
    """Format the mean, the lowest and the highest; "" for none."""
    if not values:
        return ""
    return f"{words(sum(values) / len(values))} ({words(min(values))} to {words(max(values))})"
