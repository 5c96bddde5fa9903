"""Plot functions of a number: samples as dots, predictions of hypotheses as curves, and their errors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from experiments.display.functions.samples import FunctionEvidence, HypothesisFit, LoggedSample, shorten
from experiments.display.number_format import shorten_value
from experiments.display.plots import Axis, Plot, PlotLine, PlotShape, PlotTable, fit_axis
from workers.record.figures import figure
from workers.record.functions import FunctionScore, ScoredInput, read_number

MAX_DOTS = 1_200
"""Maximum samples with a dot; of more, every n-th."""
_LARGE = PlotShape(960, 380, 58, bottom=42)
_RESIDUALS = PlotShape(960, 200, 58, bottom=42)
_OUTLYING = 50
"""One in this many values at either end may be so far off that it does not stretch the axis."""
EARLIER, NEWEST = "part-other", "part-3"
_TRUTH, _ANSWER = "truth", "answer"
ANSWERED = "the code of the answer"
Point = tuple[float, float]


def plot_samples(
    found: FunctionEvidence, shape: PlotShape = _LARGE, most: int = MAX_DOTS, *, linked: bool = True
) -> Plot | None:
    """Plot output by input; None unless a sample has two numbers. Outliers are drawn at the edge, and the note
    counts them. After the end also the truth and the values of the answer's code. `linked`: dots link to their
    experiment."""
    # 1. Points, and the axes that hold nearly all of them.
    measured = [each for each in found.samples if each.place]
    places = [each.place for each in measured if each.place]
    if not places:
        return None
    truth, answer = _list_scored(found.score, "truth"), _list_scored(found.score, "answer")
    across = fit_axis([x for x, _ in (*places, *truth)], shape.left, shape.edge)
    low, high = _find_span([y for _, y in (*places, *truth)])
    upwards = fit_axis([low, high], shape.floor, shape.top, lines=5)
    # 2. Lines below the dots: intervals, truth, predictions, answer.
    plot = _open_plot(shape, across, upwards, f"{len(places):,} samples of the function: output by input")
    plot.name_axes("input" if shape is _LARGE else "", "output")
    _mark_intervals(plot, found)
    _add_curve(plot, truth, _TRUTH, "the truth")
    for fit in found.fits:
        _add_curve(plot, _list_predictions(found, fit), fit.kind, fit.short)
    _add_curve(plot, answer, _ANSWER, ANSWERED)
    # Count from the newest sample, so that it is always among those drawn.
    # The double minus rounds up.
    every = -(-len(measured) // most)
    _add_samples(plot, found, measured[::-1][::every][::-1], linked=linked)
    # 4. What is left out, and the table.
    outside = sum(not upwards.low <= y <= upwards.high for _, y in places)
    plot.note = _describe_left_out(every, outside)
    plot.table = _tabulate(found.score.inputs) if found.score and found.score.inputs else None
    return plot


def plot_residuals(found: FunctionEvidence) -> Plot | None:
    """Plot the predictions of each hypothesis minus the outputs, by input; None without numeric predictions. After
    the end also the values of the answer's code minus the truth."""
    rows = [(fit.kind, fit.short, _subtract(found, fit)) for fit in found.fits]
    truth = dict(_list_scored(found.score, "truth"))
    missed = [(x, y - truth[x]) for x, y in _list_scored(found.score, "answer") if x in truth]
    rows.append((_ANSWER, f"{ANSWERED}, from the truth", missed))
    rows = [each for each in rows if each[2]]
    if not rows:
        return None
    points = [point for _, _, some in rows for point in some]
    across = fit_axis([x for x, _ in points], _RESIDUALS.left, _RESIDUALS.edge)
    upwards = fit_axis([0.0, *_find_span([y for _, y in points])], _RESIDUALS.floor, _RESIDUALS.top, lines=4)
    plot = _open_plot(_RESIDUALS, across, upwards, "What hypotheses miss by, by input")
    plot.name_axes("input", "said less came")
    for kind, name, some in rows:
        plot.legend.append((kind, name))
        for x, y in some[:: -(-len(some) // MAX_DOTS)]:
            words = f"{name} at {figure(x)}: off by {figure(y)}"
            plot.add_dot(plot.x.at(x), plot.y.at(y), kind, words)
    plot.note = _describe_left_out(1, sum(not upwards.low <= y <= upwards.high for _, y in points))
    return plot


def _open_plot(shape: PlotShape, across: Axis, upwards: Axis, label: str) -> Plot:
    plot = Plot(shape, across, upwards, label, "function")
    plot.add_ticks_across()
    plot.add_ticks_below()
    return plot


def _find_span(values: Sequence[float]) -> tuple[float, float]:
    """Return the range of nearly all values with as much margin again on both sides, or of all values if they fit
    into it."""
    ordered = sorted(values)
    # One wild value must not flatten all others.
    cut = len(ordered) // _OUTLYING
    low, high = ordered[cut], ordered[-1 - cut]
    return max(ordered[0], 2 * low - high), min(ordered[-1], 2 * high - low)


def _mark_intervals(plot: Plot, found: FunctionEvidence) -> None:
    """Mark where the function behaves differently: a band as found, two vertical lines in truth."""
    for low, high in found.exceptions:
        start, end = max(low, plot.x.low), min(high, plot.x.high)
        if start < end:
            words = f"Said to do something else from {figure(low)} to {figure(high)}"
            plot.add_bar(start, end, plot.y.low, plot.y.high, "left-out", words)
    if found.exceptions:
        plot.legend.append(("left-out", "something else, as found"))
    interval = found.score.truth.interval if found.score and found.score.truth else None
    for each in interval or ():
        at = plot.x.at(each)
        plot.lines.append(PlotLine(at, at, plot.shape.top, plot.shape.floor, "upright"))


def _add_curve(plot: Plot, points: Sequence[Point], kind: str, name: str) -> None:
    if points:
        plot.legend.append((kind, name))
        plot.add_path(sorted(points), kind)


def _add_samples(plot: Plot, found: FunctionEvidence, chosen: Iterable[LoggedSample], *, linked: bool) -> None:
    plot.legend += [(EARLIER, "earlier samples"), (NEWEST, f"experiment {found.newest}")]
    for each in chosen:
        if each.place:
            x, y = each.place
            said = "; ".join(
                f"{shorten(name)} says {shorten_value(value)}" for name, value in each.sample.predictions.items()
            )
            words = f"{figure(x)} gives {figure(y)}{f'; {said}' if said else ''}; experiment {each.number}"
            kind = NEWEST if each.number == found.newest else EARLIER
            link = f"{found.run.get_absolute_url()}?experiment={each.number}#experiment-{each.number}" * linked
            plot.add_dot(plot.x.at(x), plot.y.at(y), kind, words, link)


def _list_predictions(found: FunctionEvidence, fit: HypothesisFit) -> list[Point]:
    return [point for each in found.told_by(fit.name) if (point := each.place_of(fit.name))]


def _subtract(found: FunctionEvidence, fit: HypothesisFit) -> list[Point]:
    pairs = [(each.place, each.place_of(fit.name)) for each in found.told_by(fit.name)]
    return [(came[0], said[1] - came[1]) for came, said in pairs if came and said]


def _list_scored(score: FunctionScore | None, field: str) -> list[Point]:
    """Return the numeric values of the truth or the answer at the inputs that an answer was scored on."""
    inputs: Sequence[ScoredInput] = score.inputs if score else ()
    pairs = [(read_number(each.input), read_number(getattr(each, field))) for each in inputs]
    return [(x, y) for x, y in pairs if x is not None and y is not None]


def _describe_left_out(every: int, outside: int) -> str:
    parts = [f"One in {every} is drawn."] if every > 1 else []
    if outside:
        parts.append(f"{outside:,} lie{'s' * (outside == 1)} far off, and stand{'s' * (outside == 1)} at the edge.")
    return " ".join(parts)


def _tabulate(inputs: Sequence[ScoredInput]) -> PlotTable:
    rows = [tuple(map(shorten_value, (each.input, each.truth, each.answer))) for each in inputs]
    return PlotTable(("Input", "Truth", "Answer"), rows)
