"""Made-up results of evaluations: figures, tables and plots of each kind."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from experiments.models import EvaluationKind
from workers.record.evaluations import Cell, EvaluationResult, Figure, Point, ResultPlot, ResultTable, Series

SOURCES = ("agent", "one-shot", "import:milan", "shuffled")


def make_result(kind: EvaluationKind, items: Sequence[int], chance: random.Random) -> EvaluationResult:
    """What an evaluation of this kind may come to; cells and points lead to these items."""
    names = {
        EvaluationKind.SYNTHETIC: ("mono", "or", "conditional"),
        EvaluationKind.ABLATION: ("full", "exemplars only", "generated only", "no edits", "flawed generator"),
        EvaluationKind.SPURIOUS: ("original", "l1, top 50", "random 22", "l1, top 22", "units of the agent"),
        EvaluationKind.BIAS: ("planted biases found", "false statements a run"),
    }.get(kind, SOURCES)
    figures = tuple(_figure(name, chance) for name in names)
    table = ResultTable(
        "means",
        "Means by source",
        ("Source", "Mean", "Median r", "AUPRC"),
        tuple((Cell(name), _cell(chance), _cell(chance), _cell(chance)) for name in names),
        "Averages are weighted by units.",
    )
    units = ResultTable(
        "units",
        "Every unit",
        ("Unit", "r", "Label"),
        tuple(
            (Cell(f"unit {n}"), Cell(value=chance.random(), item=key), Cell("red balls", item=key))
            for n, key in enumerate(items)
        ),
    )
    if kind == EvaluationKind.BIAS:
        units = _statements(items, chance)
    points = tuple(Point(f.value or 0, 0, f.low, f.high, None, f.label) for f in figures)
    intervals = ResultPlot("figures", "By source", "intervals", "share", "", (Series("", points),))
    strip = ResultPlot(
        "strip",
        "r of every unit",
        "strip",
        "source",
        "r",
        tuple(
            Series(name, tuple(Point(n, chance.random(), item=key, label=f"unit {n}") for n, key in enumerate(items)))
            for name in names[:4]
        ),
    )
    line = ResultPlot(
        "line",
        "Accuracy against number of units",
        "line",
        "units",
        "accuracy",
        tuple(
            Series(name, tuple(Point(n, 0.6 + 0.3 * n / (n + 8) + place / 40, 0.58, 0.9) for n in range(1, 50, 6)))
            for place, name in enumerate(("l1", "agent"))
        ),
    )
    plots = (intervals, line) if kind == EvaluationKind.SPURIOUS else (intervals, strip)
    return EvaluationResult(figures, (table, units), plots, ("import:milan lacks 3 of 12 units: 2, 5, 9.",))


def _statements(items: Sequence[int], chance: random.Random) -> ResultTable:
    rows = []
    for key in items:
        effect = chance.uniform(-2, 2)
        p = math.exp(-abs(effect) * 4)
        told = (
            Cell("car", item=key),
            Cell("Cars score lower in snow."),
            Cell("", effect, effect - 0.4, effect + 0.4, 12),
        )
        rows.append((*told, Cell(value=p), Cell(value=min(1.0, p * 6)), Cell("yes" if p * 6 < 0.05 else "no")))
    columns = ("Class", "Statement", "Effect", "p", "corrected p", "Holds")
    return ResultTable("statements", "Statements", columns, tuple(rows))


def _figure(name: str, chance: random.Random) -> Figure:
    value = chance.uniform(0.3, 0.95)
    low, high = max(0.0, value - 0.1), min(1.0, value + 0.08)
    note = "Wilcoxon p = 0.003, Holm 0.01" if name == "agent" else ""
    return Figure(f"{name}.right", name, value, low, high, 12, 0.8 if name in {"mono", "agent"} else None, note)


def _cell(chance: random.Random) -> Cell:
    value = chance.random()
    return Cell(value=value, low=value - 0.1, high=value + 0.1, n=12)
