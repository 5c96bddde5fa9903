"""Figures and items of an evaluation as files: CSV, JSON, LaTeX with booktabs. Each file ends with the progress and a
caveat."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from experiments.core.spreadsheets import cell
from experiments.core.system_names import SystemNameMasker
from experiments.evaluations import lists
from experiments.evaluations.results import read_result
from workers.record.decoding import encode
from workers.record.evaluations import CAVEAT, Cell, EvaluationResult, Figure, ResultTable

_SPECIAL = {
    "\\": r"\textbackslash{}",
    **{each: f"\\{each}" for each in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "\n": " ",
    "\r": " ",
}
TESTS = "tests"
"""Key, or start of the keys, of tables that compare tests of labels."""
COLUMNS = ("figure", "key", "value", "low", "high", "n", "goal", "note")


def describe_progress(row: Any) -> str:
    """Describe the progress of a row of `with_progress`, including what failed or is missing."""
    if not row.planned:
        return "not planned yet"
    words = f"{row.done_items} of {row.all_items} items done"
    left = [(row.failed_items, "failed"), (row.lacking_items, "without a label"), (row.open_items, "not done")]
    return ", ".join([words, *(f"{count} {what}" for count, what in left if count)])


def _write_csv(row: Any, names: SystemNameMasker) -> str:
    """Return the figures, the tables of tests, the progress and the caveat as CSV."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    result = read_result(row, lists.list_hidden(row, names))
    for each in result.figures:
        values = (each.label, each.key, each.value, each.low, each.high, each.n, each.goal, each.note)
        writer.writerow([cell(value) for value in values])
    for table in result.tables:
        if table.key.partition(".")[0] == TESTS:
            _write_table(writer, table)
    writer.writerow([cell("Progress"), "", "", "", "", "", "", cell(describe_progress(row))])
    writer.writerow([cell("Note"), "", "", "", "", "", "", cell(CAVEAT)])
    return f"\ufeff{out.getvalue()}"  # The mark by which spreadsheets recognize UTF-8


def _write_table(writer: Any, table: ResultTable) -> None:
    """Write a table in the columns of figures: one line per number, named by row and column."""
    for cells in table.rows:
        # A row is named by its cells without a number
        named = " / ".join(each.text for each in cells if each.value is None and each.text)
        for column, each in zip(table.columns, cells, strict=True):
            if each.value is not None:
                label = f"{table.title}: {named}: {column}"
                values = (label, table.key, each.value, each.low, each.high, each.n or "", "", "")
                writer.writerow([cell(value) for value in values])


def _write_json(row: Any, names: SystemNameMasker) -> str:
    """Return the result and the settings of the evaluation as JSON."""
    found = {
        "evaluation": row.pk,
        "kind": row.kind,
        "name": row.name,
        "created": row.created.isoformat(),
        "backbone": row.backbone,
        "backbone_model": row.backbone_model,
        "seed": row.seed,
        "options": row.options,
        "items": {
            "all": row.all_items,
            "done": row.done_items,
            "failed": row.failed_items,
            "lacking": row.lacking_items,
            "open": row.open_items,
        },
        "result": encode(read_result(row, lists.list_hidden(row, names))),
        "note": CAVEAT,
    }
    return json.dumps(found, ensure_ascii=False, indent=1)


# --- LaTeX ---


def _write_latex(row: Any, names: SystemNameMasker) -> str:
    """Return the figures, and each table, as LaTeX tables."""
    result: EvaluationResult = read_result(row, lists.list_hidden(row, names))
    parts = [
        "% needs \\usepackage{booktabs}",
        _set_table(_escape(row.name), COLUMNS_OF_FIGURES, _figure_rows(result), row),
    ]
    for table in result.tables:
        rows = [[_set_cell(each) for each in cells] for cells in table.rows]
        parts.append(_set_table(_escape(table.title), [_escape(each) for each in table.columns], rows, row))
    return "\n\n".join(parts) + "\n"


COLUMNS_OF_FIGURES = ("", "value", r"95\,\% interval", "$n$")


def _figure_rows(result: EvaluationResult) -> list[list[str]]:
    return [
        [_escape(each.label), _number(each.value), _format_interval(each), str(each.n or "")] for each in result.figures
    ]


def _format_interval(each: Figure | Cell) -> str:
    return "" if each.low is None or each.high is None else f"[{_number(each.low)}, {_number(each.high)}]"


def _number(value: float | None) -> str:
    return "--" if value is None else f"${value:.3g}$"


def _set_cell(each: Cell) -> str:
    if each.value is None:
        return _escape(each.text)
    parts = [_escape(each.text), _number(each.value), _format_interval(each)]
    return " ".join(part for part in parts if part)


def _set_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], row: Any) -> str:
    # Rows of older results may be longer or shorter than the head; LaTeX needs them equal.
    width = max([len(columns), *(len(cells) for cells in rows)])
    lines = [" & ".join([*cells, *[""] * (width - len(cells))]) + r" \\" for cells in rows]
    head = " & ".join([*columns, *[""] * (width - len(columns))]) + r" \\"
    caption = f"{title}. {_escape(describe_progress(row).capitalize())}. {_escape(CAVEAT)}"
    start = [
        r"\begin{table}",
        r"\centering",
        rf"\begin{{tabular}}{{l{'r' * (width - 1)}}}",
        r"\toprule",
        head,
        r"\midrule",
    ]
    end = [r"\bottomrule", r"\end{tabular}", rf"\caption{{{caption}}}", r"\end{table}"]
    return "\n".join([*start, *lines, *end])


def _escape(text: str) -> str:
    """Escape text for LaTeX."""
    return "".join(_SPECIAL.get(each, each) for each in text)


FILES: Mapping[str, tuple[Callable[[Any, SystemNameMasker], str], str]] = {
    "csv": (_write_csv, "text/csv"),
    "json": (_write_json, "application/json"),
    "tex": (_write_latex, "application/x-tex"),
}
"""File extension -> writer and media type."""
