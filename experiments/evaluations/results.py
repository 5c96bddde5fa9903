"""Read an evaluation's result from its row. Parts with an invalid shape are left out."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import msgspec

from experiments.models import Evaluation
from experiments.pairwise.of_evaluation import list_preferences, tabulate_preferences
from workers.record.evaluations import (
    Cell,
    EvaluationResult,
    Figure,
    Point,
    ResultNote,
    ResultPlot,
    ResultTable,
    Series,
)

T = TypeVar("T")
HEADLINE = 3
"""Number of figures shown in the list."""
SHOWN_ELSEWHERE = frozenset({"reason", "pearson", "base_rate", "pool", "testable", "judge", "cost"})
"""Scores shown elsewhere, or only used internally."""
SCORES = {
    "auprc": "AUPRC",
    "generated_auc": "AUC of 7 + 7",
    "alike": "hard negatives, alike",
    "neighbours": "hard negatives, neighbours",
    "intruder": "intruder test",
    "simulation": "explained variance",
    "missing": "misses",
    "extra": "adds",
    "pooled_positive": "entailed most",
    "pooled_neutral": "entailed least",
    "pooled_difference": "most less least, SD",
    "pooled_problem": "pooled prompts",
    "holding": "statements that hold",
    "false": "false statements",
    "agreement_by": "judged by",
    "success": "found out",
    "error": "NMSE",
    "exact": "exact of 10",
    "choices": "chosen right of 10",
    "ceiling": "by the truth, of 10",
    "faithfulness": "faithfulness of 10 %",
    "completeness": "completeness of 10 %",
    "recovered": "members recovered",
    "followers": "followers taken",
}
"""Display names of scores, if the key is not clear."""
HIDDEN = "hidden until you have reviewed it"


def read_result(row: Evaluation, hidden: Collection[int] = ()) -> EvaluationResult:
    """Return the valid parts of the result, plus preferences of judges once their trials are closed. Cells about the
    items in `hidden` are blanked, because the viewer may not see them yet."""
    # Results of older versions may have another shape
    found = _read(row.result)
    if hidden:
        # Plain notes cannot be blanked in part, so all of them are left out.
        found = _blank(replace(found, notes=_read_each(row.result, "notes", ResultNote)), hidden)
    figures, tables = list_preferences(row), tabulate_preferences(row)
    return replace(found, figures=(*found.figures, *figures), tables=(*found.tables, *tables))


def read_prepared(row: Evaluation) -> tuple[ResultTable, ...]:
    """Return tables of preparations before the items, or of later additions to the result."""
    return _read_each(row.prepared, "tables", ResultTable)


def _read(data: Any) -> EvaluationResult:
    return EvaluationResult(
        _read_each(data, "figures", Figure),
        _read_each(data, "tables", ResultTable),
        _read_each(data, "plots", ResultPlot),
        # Notes of earlier versions are plain text without items to blank
        (*_read_each(data, "notes", ResultNote), *map(ResultNote, _read_each(data, "notes", str))),
    )


def _read_each(data: Any, name: str, shape: type[T]) -> tuple[T, ...]:
    items = data.get(name) if isinstance(data, dict) else None
    found = []
    for each in items if isinstance(items, list) else ():
        try:
            found.append(msgspec.convert(each, shape))
        # Better to show less than to show a wrong figure
        except msgspec.ValidationError:
            continue
    return tuple(found)


def _blank(result: EvaluationResult, hidden: Collection[int]) -> EvaluationResult:
    """Return the result without statements about these items. Figures over many items remain."""

    def row(cells: tuple[Cell, ...]) -> tuple[Cell, ...]:
        told = any(each.item in hidden for each in cells)
        return tuple(Cell(HIDDEN) for _ in cells) if told else cells

    def points(some: tuple[Point, ...]) -> tuple[Point, ...]:
        return tuple(each for each in some if each.item not in hidden)

    def note(each: ResultNote) -> ResultNote:
        return replace(each, named=tuple(Cell(HIDDEN) if cell.item in hidden else cell for cell in each.named))

    tables = tuple(replace(table, rows=tuple(row(cells) for cells in table.rows)) for table in result.tables)
    plots = tuple(
        replace(plot, series=tuple(Series(part.name, points(part.points)) for part in plot.series))
        for plot in result.plots
    )
    return replace(result, tables=tables, plots=plots, notes=tuple(map(note, result.notes)))


def name_scores(scores: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scores shown beside an item, by display name. Scores with a dot are points of a curve."""
    shown = {name: value for name, value in scores.items() if name not in SHOWN_ELSEWHERE and "." not in name}
    return {SCORES.get(name, name): value for name, value in shown.items()}


def headline(row: Evaluation) -> list[Figure]:
    """Return the first figures for lists, those with a goal first."""
    figures = [each for each in _read(row.result).figures if each.value is not None]
    # False sorts before True; the order of the result is kept otherwise.
    return sorted(figures, key=lambda each: each.goal is None)[:HEADLINE]
