"""Define the columns of exported tables; write them as JSON Lines and CSV.

Rows are read and written in batches, so memory does not grow with their number. `workers/jobs/parquet.py` writes the
same columns as Parquet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any, Literal

from django.contrib.auth.models import User
from django.db.models import BooleanField, ExpressionWrapper, QuerySet

from experiments.core import blindness
from experiments.core.display_name import person
from experiments.core.spreadsheets import cell, csv_header, csv_line, json_line
from experiments.core.system_names import SystemNameMasker
from experiments.display.label_checks import fetch_checks
from experiments.exchange.image_services import Progress
from experiments.exchange.run_record import arrival_of
from experiments.label_checks.lists import place_of
from experiments.models import ExportSubject, Format, Label, Run
from experiments.pairwise.of_evaluation import name_sources
from workers.record.evaluations import CAVEAT

AT_ONCE = 1_000
Kind = Literal["text", "whole", "figure", "flag", "time", "texts", "json"]
Get = Callable[[Any], Any]


@dataclass(frozen=True)
class TableColumn:
    name: str
    kind: Kind
    get: Get


@dataclass(frozen=True)
class Table:
    """A table. `prepared` adds joins and prefetches, so that a batch takes a constant number of queries."""

    noun: str
    columns: Sequence[TableColumn]
    prepared: Callable[[QuerySet[Any]], QuerySet[Any]]
    run: Callable[[Any], Run | None] = lambda _: None
    """Return the run whose system the row names."""
    place: Callable[[Any], tuple[str, str, int] | None] = lambda _: None
    """Return (model, layer, unit) that the row names without a run."""
    telling: frozenset[str] = frozenset()
    """Further columns that reveal what a hidden system responds to."""

    def batches(
        self, rows: QuerySet[Any], progress: Progress, viewer: User | None = None
    ) -> Iterator[list[dict[str, Any]]]:
        """Yield batches of rows as dicts. Systems that this person may not know are hidden."""
        names = SystemNameMasker(viewer)
        total, done = rows.count(), 0
        # Fetched in chunks, so that memory does not grow with the rows
        found = self.prepared(rows).iterator(chunk_size=AT_ONCE)
        while batch := [self.row(each, names) for _, each in zip(range(AT_ONCE), found, strict=False)]:
            done += len(batch)
            yield batch
            progress(f"Writing {self.noun}", min(done, total), total)

    def row(self, each: Any, names: SystemNameMasker) -> dict[str, Any]:
        row = {column.name: column.get(each) for column in self.columns}
        run = self.run(each)
        place = self.place(each)
        # Hide what this person still has to judge: the unit itself, or the system of a run
        if place is not None and names.masks_unit(*place):
            empty = {"model": "", "layer": "", "unit": None, **dict.fromkeys(self.telling)}
            return row | {name: value for name, value in empty.items() if name in row}
        if run is None or not names.is_masked(run):
            return row
        hidden = names.place(run) | {"units": [], "versions": names.versions(run)}
        return row | {name: value for name, value in hidden.items() if name in row}


def path(dotted: str) -> Get:
    """Return a getter for an attribute, or for an attribute of an attribute."""
    names = dotted.split(".")

    def get(row: Any) -> Any:
        for name in names:
            row = getattr(row, name)
        return row

    return get


def columns(kind: Kind, *names: str) -> list[TableColumn]:
    """Return columns of one kind. In "cost=known_cost" the column is named before the attribute."""
    parts = [name.partition("=") for name in names]
    return [TableColumn(name, kind, path(shown or name)) for name, _, shown in parts]


def source(run: Run) -> str:
    """Return the file that an imported run came from, "" for a run made here."""
    return imported_run.name if (imported_run := arrival_of(run)) else ""


def _add_verdicts(runs: QuerySet[Any]) -> QuerySet[Any]:
    """Annotate runs with whether the verdict is hidden. A file can be passed on, so a verdict stays hidden while any
    blind review is open."""
    hidden = ExpressionWrapper(blindness.has_hidden_verdict(None), output_field=BooleanField())
    return runs.annotate(verdict_hidden=hidden)


def _list_system_columns(run: str = "") -> list[TableColumn]:
    return [*columns("text", f"model={run}model", f"layer={run}layer"), *columns("whole", f"unit={run}unit")]


RUNS = Table(
    "runs",
    [
        *columns("whole", "run=pk"),
        *columns("text", "question", "task"),
        *_list_system_columns(),
        *columns("text", "status", "reason", "backbone", "backbone_model", "owner=owner.username"),
        *columns("time", "created", "started", "ended"),
        *columns("whole", "rounds", "experiments=experiment_count", "observations=observation_count"),
        *columns("whole", "prompt_tokens", "completion_tokens"),
        *columns("figure", "cost=known_cost", "seconds", "exemplar_mean", "best_activation"),
        *columns("texts", "labels"),
        TableColumn("description", "text", lambda run: run.conclusion.get("description", "")),
        TableColumn("bias", "text", lambda run: run.conclusion.get("bias", "")),
        TableColumn("reasoning", "text", lambda run: run.conclusion.get("reasoning", "")),
        TableColumn("verdict", "text", lambda run: "" if run.verdict_hidden else run.verdict),
        TableColumn("verdict_final", "whole", lambda run: 0 if run.verdict_hidden else int(run.verdict_final)),
        TableColumn("reviews", "whole", lambda run: 0 if run.verdict_hidden else run.verdict_opinions),
        TableColumn("reviews_agreeing", "whole", lambda run: 0 if run.verdict_hidden else run.verdict_agreeing),
        TableColumn("imported_from", "text", source),
        *columns("whole", "seed"),
        *columns("json", "options", "limits", "versions"),
    ],
    lambda rows: _add_verdicts(rows.select_related("owner", "imported_run")),
    lambda run: run,
)
EXPERIMENTS = Table(
    "experiments",
    [
        *columns("whole", "run=run_id", "experiment=number", "round"),
        *_list_system_columns("run."),
        *columns("text", "status", "code", "output", "error"),
        *columns("figure", "seconds", "tool_seconds"),
        *columns("json", "calls"),
    ],
    lambda rows: rows.select_related("run").defer("state"),
    path("run"),
)
OBSERVATIONS = Table(
    "observations",
    [
        *columns("whole", "run=experiment.run_id", "experiment=experiment.number", "round=experiment.round"),
        *columns("whole", "position"),
        *_list_system_columns("experiment.run."),
        *columns("text", "title"),
        *columns("figure", "activation", "claimed"),
        *columns("flag", "measured", "claim_differs=differs"),
        *columns("text", "origin", "prompt"),
        *columns("whole", "seed"),
        *columns("json", "parameters"),
        *columns("text", "image=image_id", "masked=masked_id", "original", "map=map_id"),
        *columns("figure", "map_low", "map_high", "map_threshold"),
    ],
    lambda rows: rows.select_related("experiment__run").defer("experiment__state", "experiment__code"),
    path("experiment.run"),
)


def units(label: Label) -> list[str]:
    return [f"{unit.layer.model.name} / {unit.layer.name} / {unit.number}" for unit in label.units.all()]


def _take_first(get: Get) -> Get:
    """Return a getter for the first unit of a label; None if the label has no unit."""
    return lambda label: next((get(unit) for unit in label.units.all()), None)


LABELS = Table(
    "labels",
    [
        TableColumn("model", "text", _take_first(lambda unit: unit.layer.model.name)),
        TableColumn("layer", "text", _take_first(lambda unit: unit.layer.name)),
        TableColumn("unit", "whole", _take_first(lambda unit: unit.number)),
        *columns("text", "label=text", "source"),
        *columns("whole", "run=run_id", "position"),
        *columns("json", "scores"),
        TableColumn("units", "texts", units),
    ],
    lambda rows: rows.select_related("run").prefetch_related("units__layer__model"),
    path("run"),
)


def _list_unit_columns() -> list[TableColumn]:
    """Return columns of a row's unit; empty if the unit left the catalogue."""

    def part(index: int) -> Get:
        return lambda row: place[index] if (place := place_of(row)) else None

    return [
        TableColumn("model", "text", part(0)),
        TableColumn("layer", "text", part(1)),
        TableColumn("unit", "whole", part(2)),
    ]


CHECKS = Table(
    "checks",
    [
        *columns("whole", "check=pk"),
        *columns("text", "label=text"),
        *_list_unit_columns(),
        *columns("text", "dataset", "status", "reason"),
        *columns("time", "created", "measured"),
        *columns("figure", "pearson", "pearson_low", "pearson_high", "auprc", "auprc_low", "auprc_high"),
        *columns("figure", "p_value", "base_rate", "generated_auc", "seconds", "cost"),
        *columns("json", "options"),
        TableColumn("note", "text", lambda _: CAVEAT),
    ],
    lambda rows: rows.select_related("unit__layer__model").defer("result", "kept"),
    place=place_of,
)
EVALUATIONS = Table(
    "items of evaluations",
    [
        *columns("whole", "evaluation=evaluation_id"),
        *columns("text", "evaluation_name=evaluation.name", "kind=evaluation.kind", "backbone=evaluation.backbone"),
        *columns("text", "backbone_model=evaluation.backbone_model"),
        *columns("whole", "seed=evaluation.seed", "item=position"),
        *columns("text", "group", "source"),
        *_list_unit_columns(),
        *columns("json", "item_options=options"),
        *columns("text", "status", "reason"),
        *columns("whole", "run=run_id", "check=label_check_id"),
        *columns("text", "label"),
        TableColumn("pearson", "figure", lambda item: item.label_check and item.label_check.pearson),
        TableColumn("auprc", "figure", lambda item: item.label_check and item.label_check.auprc),
        *columns("json", "scores", "evidence"),
        *columns("figure", "seconds"),
        TableColumn("note", "text", lambda _: CAVEAT),
    ],
    lambda rows: rows.select_related("evaluation", "unit__layer__model").prefetch_related(fetch_checks()),
    place=place_of,
    telling=frozenset({"scores", "group"}),
)
OF_ITEM = [
    *columns("whole", "queue=item.queue_id"),
    *columns("text", "queue_name=item.queue.name"),
    *columns("whole", "item=item.position", "run=item.run_id"),
    *_list_system_columns("item.run."),
]
REVIEWS = Table(
    "reviews",
    [
        *OF_ITEM,
        TableColumn("reviewer", "text", lambda review: person(review.reviewer)),
        TableColumn("additional", "whole", lambda review: int(review.slot is None)),
        *columns("whole", "supported", "specific", "complete", "confounds", "samples"),
        *columns("text", "verdict", "corrected_label", "note"),
        *columns("time", "submitted"),
    ],
    lambda rows: rows.select_related("item__queue", "item__run", "reviewer"),
    path("item.run"),
)
VERDICTS = Table(
    "final verdicts",
    [
        *OF_ITEM,
        *columns("text", "verdict", "corrected_label", "reason"),
        TableColumn("adjudicator", "text", lambda final: person(final.adjudicator)),
        *columns("time", "created"),
        *columns("flag", "stands"),
    ],
    lambda rows: rows.select_related("item__queue", "item__run", "adjudicator"),
    path("item.run"),
)
AGREEMENT = Table(
    "agreement",
    [
        *columns("whole", "queue=queue.pk"),
        *columns("text", "queue_name=queue.name", "line", "measure", "one", "other"),
        *columns("whole", "n=figure.n"),
        *columns("figure", "value=figure.value", "low=figure.low", "high=figure.high"),
        *columns("text", "why=figure.why"),
    ],
    lambda rows: rows,
)
QUEUES = Table(
    "review queues",
    [
        *columns("whole", "queue=pk"),
        *columns("text", "name", "note"),
        TableColumn("owner", "text", lambda queue: person(queue.owner)),
        *columns("time", "created", "closed"),
        *columns("flag", "blind"),
        *columns("whole", "reviewers_per_item", "items=total", "complete"),
    ],
    lambda rows: rows,
)
TRIALS = Table(
    "pairwise trials",
    [
        *columns("whole", "trial=pk"),
        *columns("text", "name"),
        TableColumn("sources", "texts", name_sources),
        TableColumn("owner", "text", lambda trial: person(trial.owner)),
        *columns("time", "created", "closed"),
        *columns("whole", "pairs=size", "judges_wanted", "votes", "evaluation=evaluation_id"),
    ],
    lambda rows: rows,
)
SWEEPS = Table(
    "sweeps",
    [
        *columns("whole", "sweep=pk"),
        *columns("text", "name", "question", "task", "status"),
        TableColumn("model", "text", lambda sweep: sweep.selection.get("model", "")),
        TableColumn("agents", "whole", lambda sweep: len(sweep.variants)),
        TableColumn("owner", "text", lambda sweep: person(sweep.owner)),
        *columns("time", "created"),
        *columns("whole", "runs=planned", "done=done_runs", "failed=failed_runs", "stopped=stopped_runs"),
        *columns("whole", "checked=checked_runs", "tokens"),
        *columns("figure", "seconds", "cost"),
    ],
    lambda rows: rows,
)
TABLES = {
    ExportSubject.QUEUES: QUEUES,
    ExportSubject.TRIALS: TRIALS,
    ExportSubject.SWEEPS: SWEEPS,
    ExportSubject.REVIEWS: REVIEWS,
    ExportSubject.VERDICTS: VERDICTS,
    ExportSubject.AGREEMENT: AGREEMENT,
    ExportSubject.RUNS: RUNS,
    ExportSubject.EXPERIMENTS: EXPERIMENTS,
    ExportSubject.OBSERVATIONS: OBSERVATIONS,
    ExportSubject.LABELS: LABELS,
    ExportSubject.CHECKS: CHECKS,
    ExportSubject.EVALUATIONS: EVALUATIONS,
}


def write(
    table: Table, form: Format, rows: QuerySet[Any], target: IO[bytes], progress: Progress, viewer: User | None = None
) -> int:
    """Write the rows as JSON Lines or CSV, as this person may see them. Returns their number."""
    count = 0
    if form == Format.CSV:
        target.write(csv_header([column.name for column in table.columns]))
    for batch in table.batches(rows, progress, viewer):
        for row in batch:
            target.write(csv_line([cell(value) for value in row.values()]) if form == Format.CSV else json_line(row))
        count += len(batch)
    return count
