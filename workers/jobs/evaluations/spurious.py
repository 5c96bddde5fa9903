"""Spurious features (paper, section 5.1, Table 2): the agent judges units of a classifier from unbalanced data alone.

For each seed a classifier is trained, l1 selects the units, and each unit is judged in a run. The option `latents` uses
latents of a sparse autoencoder of each classifier instead of its units (AIM).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import asdict
from statistics import fmean

from experiments.core.params import clean_line
from experiments.models import Evaluation, EvaluationItem, ItemStatus
from workers.errors import RequestError
from workers.jobs import catalogue, sparse
from workers.jobs.evaluations.evaluation_type import EvaluationType, find_layers, make_item
from workers.jobs.evaluations.sources import AGENT, read_run
from workers.jobs.laboratory import laboratory
from workers.metrics.intervals import estimate_mean
from workers.protocols import Progress, no_progress
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
from workers.sparse.storage import SparseCard
from workers.spurious.evaluation import PreparedUnits, SpuriousSpec, prepare, repair, score
from workers.spurious.table import Table2, TableRow, compute_headline

DEFAULT_UNITS = 50
GOAL = 0.8
EASY = 0.05
"""Minimum gap between balanced and unbalanced data. Below it, too little is left to improve."""
REASON = 500
"""Maximum characters of the agent's reasons in a table."""

_preparing = threading.Lock()
_prepared: dict[tuple[str, int, int, int], PreparedUnits] = {}
"""Seeds prepared in this process. Another process reads them from disk, except for rows that do not depend on
verdicts."""


_scored: dict[tuple[str, int], tuple[dict[int, bool], Table2]] = {}
"""Latest verdicts and their table, by model or autoencoder and number of units."""


def _prepare_seed(evaluation: Evaluation, seed: int, progress: Progress) -> PreparedUnits:
    """Return dataset, classifier, features and units of a seed. Earlier results are read from disk."""
    dataset, units = str(evaluation.options.get("dataset") or ""), int(evaluation.options.get("units") or DEFAULT_UNITS)
    latents = int(evaluation.options.get("latents") or 0)
    named = {"dataset": dataset} if dataset else {}
    key = dataset, units, latents, seed
    # One at a time: two threads would train the same classifier
    with _preparing:
        if key not in _prepared:
            spec = SpuriousSpec(**named, units=units, latents=latents)
            _prepared[key] = prepare(laboratory().settings, spec, seed, progress)
        return _prepared[key]


def _list_seeds(evaluation: Evaluation) -> list[int]:
    return list(range(evaluation.seed, evaluation.seed + int(evaluation.options.get("repeats") or 1)))


def _plan(evaluation: Evaluation, progress: Progress) -> list[EvaluationItem]:
    items = []
    for seed in _list_seeds(evaluation):
        ready = _prepare_seed(evaluation, seed, progress)
        catalogue.look_at_dataset(ready.dataset)
        if ready.card:
            # Runs on its latents need the model in the catalogue
            sparse.register(asdict(ready.card), evaluation.owner)
        layers = {layer.name: layer for layer in find_layers(ready.studied)}
        for unit in ready.units:
            system = ready.system(unit)
            options = {"seed": str(seed), "dataset": ready.dataset}
            items.append(make_item(layers[system.layer], unit, f"seed {seed}", AGENT, **options))
    return items


def _ask(evaluation: Evaluation, item: EvaluationItem) -> str:
    """Return the question about all units of the item's seed."""
    return _prepare_seed(evaluation, int(str(item.options["seed"])), no_progress).question("{unit}")


def _score(evaluation: Evaluation, item: EvaluationItem, progress: Progress) -> None:
    del evaluation, progress
    run = read_run(item)
    said = [label.strip().upper() for label in run.labels]
    # Anything else is no verdict, and must not count as one.
    if said not in (["SELECTIVE"], ["SPURIOUS"]):
        raise RequestError(f"Run {run.pk} gave no verdict, SELECTIVE or SPURIOUS: {run.reason or ', '.join(said)}.")
    item.label = said[0]
    reason = clean_line(str(run.conclusion.get("reasoning", "")), REASON)
    item.scores = {**item.scores, "selective": said == ["SELECTIVE"], "reason": reason}


def _summarise(evaluation: Evaluation, items: Sequence[EvaluationItem]) -> EvaluationResult:
    found: list[tuple[PreparedUnits, dict[int, bool], Table2]] = []
    notes = []
    for seed in _list_seeds(evaluation):
        own = [each for each in items if each.group == f"seed {seed}"]
        judged = {
            each.unit.number: bool(each.scores["selective"])
            for each in own
            if each.status == ItemStatus.DONE and each.unit is not None
        }
        # A part of the units would answer another question, so only complete seeds have figures
        if own and len(judged) == len(own):
            ready = _prepare_seed(evaluation, seed, no_progress)
            found.append((ready, judged, _score_once(ready, judged)))
        elif own:
            noun = "latents" if evaluation.options.get("latents") else "units"
            notes.append(f"Seed {seed} is unfinished: {len(judged)} of {len(own)} {noun} are judged.")
    if not found:
        return EvaluationResult(notes=tuple(map(ResultNote, notes)))
    tables = [table for _, _, table in found]
    figures = [*_list_headlines(tables, notes), *_list_accuracies(tables)]
    seeds = (_write_seeds(tables),) if len(tables) > 1 else ()
    factor, repairs = float(evaluation.options.get("repair") or 0.0), []
    for ready, judged, _ in found:
        if ready.card:
            notes.append(_describe_latents(ready.card))
        else:
            repairs.append(_write_repair(ready, judged, factor))
    return EvaluationResult(
        tuple(figures),
        (_write_table(tables), *seeds, *repairs),
        (_plot_curves(tables[0]),),
        tuple(map(ResultNote, notes)),
    )


def _describe_latents(card: SparseCard) -> str:
    quality = card.quality
    return (
        f"{card.latents:,} latents (k {card.k}) of {card.model}, sae:{card.name}: {quality.unexplained:.1%} of "
        f"variance unexplained, {quality.dead:.1%} of latents dead. The original classifier answers by its own units. "
        "Nothing is repaired: its head weighs units, not latents."
    )


def _score_once(ready: PreparedUnits, judged: dict[int, bool]) -> Table2:
    key = ready.studied, len(ready.units)
    # The fits take seconds, and figures are updated often.
    verdicts, table = _scored.get(key, (None, None))
    if table is None or verdicts != judged:
        table = score(ready, judged)
        _scored[key] = judged, table
    return table


def _list_headlines(tables: Sequence[Table2], notes: list[str]) -> list[Figure]:
    figures, noun = [], tables[0].noun
    for key, regularised, words in (
        ("headline", False, "refits of as many {noun}, without penalty as its own"),
        ("headline_penalised", True, "l1 fits, as in the paper"),
    ):
        found = compute_headline(tables, regularised=regularised)
        if found is None:
            notes.append(f"No seed has selective {tables[0].noun}, so there is no headline.")
            return []
        label = f"Share of the gap that the agent's {noun} close, against {words.format(noun=noun)}"
        goal = None if regularised else GOAL
        share = found.share
        figures.append(Figure(key, label, share.value, share.low, share.high, share.n, goal, share.why))
        if not regularised:
            figures.append(Figure("gap", "The gap: balanced less unbalanced data", found.gap, n=share.n))
            if found.gap < EASY:
                notes.append(f"The gap of {found.gap:.3f} is below {EASY}: these data are too easy for the question.")
    return figures


def _list_accuracies(tables: Sequence[Table2]) -> list[Figure]:
    """Return the accuracy of each row over the seeds, with Student's interval."""
    figures = []
    for row in _list_rows(tables):
        found = _find_rows(tables, row)
        measured = estimate_mean([each.accuracy for each in found])
        key = f"accuracy.{row.key}{'' if row.regularised else '_refit'}"
        words = f"{row.title}{' (l1)' if row.regularised else ''}: accuracy"
        figures.append(Figure(key, words, measured.value, measured.low, measured.high, len(found)))
    return figures


def _write_table(tables: Sequence[Table2]) -> ResultTable:
    """Return Table 2: each row over the seeds, with Student's interval."""
    rows = []
    for row in _list_rows(tables):
        found = _find_rows(tables, row)
        accuracy = estimate_mean([each.accuracy for each in found])
        worst = min(found, key=lambda each: each.worst.accuracy).worst
        rows.append(
            (
                Cell(row.title),
                Cell(value=fmean(each.units for each in found)),
                Cell(row.data),
                Cell("l1" if row.regularised else "none"),
                Cell(value=accuracy.value, low=accuracy.low, high=accuracy.high, n=len(found)),
                Cell(value=fmean(each.worst.accuracy for each in found)),
                Cell(f"{worst.accuracy:.2f}: {worst.class_name} on {worst.ground}"),
            )
        )
    noun = tables[0].noun
    columns = (
        _title_chosen(tables),
        noun.capitalize(),
        "Data",
        "Penalty",
        "Accuracy",
        "Worst group",
        "The worst of any seed",
    )
    title = "Table 2: accuracy on other backgrounds"
    return ResultTable("table2", title, columns, tuple(rows), f"n counts the seeds; {noun} and worst group are means.")


def _write_seeds(tables: Sequence[Table2]) -> ResultTable:
    """Return the accuracy of each row by seed."""
    rows = [
        (
            Cell(f"{row.title}{' (l1)' if row.regularised else ''}"),
            *(Cell(value=each.accuracy, n=each.repeats) for each in _find_rows(tables, row)),
        )
        for row in _list_rows(tables)
        if len(_find_rows(tables, row)) == len(tables)
    ]
    columns = (_title_chosen(tables), *(f"Seed {table.seed}" for table in tables))
    return ResultTable("seeds", "Accuracy by seed", columns, tuple(rows), "n counts the fits of a row.")


def _title_chosen(tables: Sequence[Table2]) -> str:
    return f"{tables[0].noun.capitalize()} chosen by"


def _list_rows(tables: Sequence[Table2]) -> list[TableRow]:
    """Return each row once, from the first seed that has it."""
    # Reversed, so that the first seed's row stays.
    rows = {(row.key, row.regularised): row for table in reversed(tables) for row in table.rows}
    # Seeds without selective units have fewer rows.
    longest = max(tables, key=lambda table: len(table.rows))
    return [rows[row.key, row.regularised] for row in longest.rows]


def _find_rows(tables: Sequence[Table2], row: TableRow) -> list[TableRow]:
    """Return this row of each seed that has it. A seed without selective units has none of the agent's rows."""
    return [each for table in tables if (each := table.row(row.key, regularised=row.regularised))]


def _write_repair(ready: PreparedUnits, judged: dict[int, bool], factor: float) -> ResultTable:
    """Return the effect of scaling the head's weights of units judged spurious, worst group first."""
    made = repair(ready, judged, factor)
    rows = tuple(
        (
            Cell(f"{each.class_name} on {each.ground}"),
            Cell(str(each.images)),
            Cell(value=each.before),
            Cell(value=each.after),
        )
        for each in sorted(made.groups, key=lambda group: group.before)
    )
    whole = (
        Cell("All"),
        Cell(str(sum(each.images for each in made.groups))),
        Cell(value=made.before),
        Cell(value=made.after),
    )
    note = f"The weights of {len(made.units)} units that were judged spurious, times {factor:g}."
    return ResultTable(
        f"repair.{ready.seed}",
        f"Repair of the classifier of seed {ready.seed}",
        ("Group", "Images", "Accuracy before", "After"),
        (*rows, whole),
        note,
    )


def _plot_curves(table: Table2) -> ResultPlot:
    """Plot accuracy by the number of units or latents."""
    noun = table.noun
    curves = (("l1", table.l1_curve), (f"The agent's {noun}", table.agent_curve))
    series = tuple(
        Series(name, tuple(Point(float(each.units), each.accuracy) for each in curve))
        for name, curve in curves
        if curve
    )
    return ResultPlot("curves", f"Accuracy by number of {noun}, seed {table.seed}", "line", noun, "accuracy", series)


EVALUATION_TYPE = EvaluationType(_plan, _summarise, _score, task="spurious", question=_ask, checks_labels=False)
