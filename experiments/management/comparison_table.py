"""The table of `evaluate compare`: figures of each kind of evaluation by backbone, its progress and its cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.db.models import F, Sum

from experiments.evaluations.results import read_result
from experiments.management.comparing import OPEN, Step
from experiments.models import EvaluationItem, ItemStatus
from workers.record.evaluation_kinds import KINDS

TOTALS = {"items": "units done", "failed": "units failed", "cost": "US dollars", "tokens": "tokens", "seconds": "s"}
ALL_KINDS = "all"


@dataclass(frozen=True)
class TableCell:
    """A cell of the table; n is the number of items behind a figure."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None


@dataclass(frozen=True)
class Row:
    """A line of the table: a figure of a kind, by backbone."""

    kind: str
    figure: str
    label: str
    values: Mapping[str, TableCell]


def tabulate(steps: Sequence[Step]) -> list[Row]:
    """Return the headlines of each kind by backbone, its progress and its cost; then the totals of all kinds."""
    rows: list[Row] = []
    # Each kind once, in the order in which they ran.
    for kind in dict.fromkeys(step.kind for step in steps):
        of_kind = [step for step in steps if step.kind == kind]
        found = {step.backbone: {each.key: each for each in read_result(step.evaluation).figures} for step in of_kind}
        for key, words in KINDS[kind].headlines.items():
            values = {
                name: TableCell(each.value, each.low, each.high, each.n) if (each := figures.get(key)) else TableCell()
                for name, figures in found.items()
            }
            rows.append(Row(kind, key, f"{kind.label}: {words}", values))
        rows += _tabulate_totals(kind, kind.label, of_kind)
    return [*rows, *_tabulate_totals(ALL_KINDS, "All", steps)]


def _tabulate_totals(kind: str, words: str, steps: Sequence[Step]) -> list[Row]:
    """Return the cost of each backbone's runs. Seconds are those of its runs: preparation is shared by all."""
    taken = {}
    for name in dict.fromkeys(step.backbone for step in steps):
        own = [step for step in steps if step.backbone == name]
        items = EvaluationItem.objects.filter(evaluation__in=[step.evaluation.pk for step in own if step.evaluation.pk])
        sums = items.aggregate(
            tokens=Sum(F("run__prompt_tokens") + F("run__completion_tokens")), seconds=Sum("run__seconds")
        )
        # A sum without the runs of unknown price would look cheaper than it was.
        unpriced = items.filter(run__unpriced=True).exists()
        taken[name] = {
            "items": TableCell(sum(step.total - step.left for step in own), n=sum(step.total for step in own)),
            # Those that the same command does again have not failed for good.
            "failed": TableCell(items.filter(status=ItemStatus.FAILED).exclude(OPEN).count()),
            "cost": TableCell() if unpriced else TableCell(sum(step.cost for step in own)),
            "tokens": TableCell(sums["tokens"] or 0),
            "seconds": TableCell(sums["seconds"] or 0.0),
        }
    return [
        Row(kind, key, f"{words}: {label}", {name: values[key] for name, values in taken.items()})
        for key, label in TOTALS.items()
    ]


def write_text(rows: Sequence[Row]) -> str:
    """Format the table for a terminal, with a column for each backbone."""
    # All rows have the same columns.
    names = list(rows[0].values)
    lines = [["", *names], *([row.label, *(_write(row.figure, row.values[name]) for name in names)] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def _write(figure: str, cell: TableCell) -> str:
    if cell.value is None:
        return "unknown" if figure in TOTALS else "-"
    if figure in TOTALS:
        written = f"{cell.value:,.4f}" if figure == "cost" else f"{cell.value:,.0f}"
        return written if cell.n is None else f"{written} of {cell.n}"
    spread = "" if cell.low is None or cell.high is None else f" [{cell.low:.3f}, {cell.high:.3f}]"
    return f"{cell.value:.3f}{spread} n={cell.n}"


def write_plain(rows: Sequence[Row], undone: Sequence[str]) -> dict[str, Any]:
    """Return the table as plain JSON."""
    return {"backbones": list(rows[0].values), "rows": [asdict(row) for row in rows], "undone": list(undone)}
