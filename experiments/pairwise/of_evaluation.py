"""Trials between the labels of an evaluation, and their results.

The paper's Table 1 is such a trial of synthetic neurons with ten judges per pair.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from django.db.models import QuerySet

from experiments.core.errors import InvalidInput, StateConflict
from experiments.models import Evaluation, ItemStatus, Pair, PairwiseTrial, Unit
from experiments.pairwise import sources
from experiments.pairwise.form import MAX_PAIRS, draw_pairs
from experiments.pairwise.results import JudgeScore, PreferenceCell, Preferences, trial_results
from experiments.pairwise.sources import LabelsBySource, SourceLabel
from workers.record.evaluations import Cell, Figure, ResultTable

JUDGES, MAX_JUDGES = 10, 1_000
"""Default number of judges per pair, as in the paper, and maximum."""
SHUFFLED = "shuffled"
"""Labels of other units. They are a baseline of label checks; preferences over them say nothing about a source."""
NOTE = (
    "Share of the votes that decide, with 95 % intervals over units: Wilson's, for as many independent votes as vary "
    "as much. People and each model apart. The intervals of the paper's Table 1 are narrower than its votes allow."
)


def name_source(key: str) -> str:
    """Return the display name of a source of an evaluation, which has one agent."""
    return "Agent" if key == sources.AGENT else sources.words(key)


def name_sources(trial: PairwiseTrial) -> list[str]:
    """Return the display names of a trial's sources."""
    return [name_source(key) if trial.evaluation_id else sources.words(key) for key in trial.sources]


def list_comparable(evaluation: Evaluation) -> list[str]:
    """Return the keys of sources with labels, in the order of the items; empty for a kind of evaluation without
    labels to compare."""
    if not evaluation.row_of_kind.compares_labels:
        return []
    said = evaluation.items.filter(status=ItemStatus.DONE).exclude(label="").order_by("position")
    return list(dict.fromkeys(said.values_list("source", flat=True)))


def draft_trial_of(
    evaluation: Evaluation, chosen: Sequence[str], most: int, judges_wanted: int, seed: int
) -> tuple[PairwiseTrial, list[Pair]]:
    """Return the trial with its pairs, not saved. Raises InvalidInput, and StateConflict if the evaluation has no
    labels to compare."""
    if not evaluation.row_of_kind.compares_labels:
        raise StateConflict("Only labels of units, of synthetic neurons or of files are compared two by two.")
    there = list_comparable(evaluation)
    if unknown := [key for key in chosen if key not in there]:
        names = ", ".join(there) or "none yet"
        raise InvalidInput(f"This evaluation has no labels of “{unknown[0][:60]}”. Choose of: {names}.", "sources")
    if len(set(chosen)) < 2:
        raise InvalidInput("Choose two sources or more.", "sources")
    if not 1 <= most <= MAX_PAIRS:
        raise InvalidInput(f"Choose 1 to {MAX_PAIRS:,} pairs of two sources, not {most}.", "most")
    if not 0 <= judges_wanted <= MAX_JUDGES:
        raise InvalidInput(f"Choose 1 to {MAX_JUDGES:,} judges a pair, not {judges_wanted}.", "judges_wanted")
    trial = PairwiseTrial(
        name=f"Two by two: {evaluation.name}"[:80],
        # In the order of the evaluation, whatever the order of the request.
        sources=[key for key in there if key in chosen],
        seed=seed,
        evaluation=evaluation,
        judges_wanted=judges_wanted,
    )
    known = _read_labels(evaluation, trial.sources)
    several: QuerySet[Unit] = Unit.objects.filter(pk__in=[unit for unit, labels in known.items() if len(labels) > 1])
    return trial, draw_pairs(trial, most, known, several)


def _read_labels(evaluation: Evaluation, keys: Sequence[str]) -> LabelsBySource:
    """Return the labels of these sources in the evaluation. Newer labels of the same sources do not count."""
    said: dict[int, dict[str, SourceLabel]] = defaultdict(dict)
    items = evaluation.items.filter(status=ItemStatus.DONE, source__in=keys, unit__isnull=False).exclude(label="")
    for pk, unit, source, label, run in items.order_by("position").values_list(
        "pk", "unit_id", "source", "label", "run_id"
    ):
        said[unit or 0][source] = SourceLabel(label, None, pk, run)
    return said


# --- results ---


def tabulate_preferences(evaluation: Evaluation) -> list[ResultTable]:
    """Return a table for each closed trial: how often each source was preferred, by people and by each model."""
    return [_tabulate(trial) for trial in _list_closed(evaluation)]


def _list_closed(evaluation: Evaluation) -> QuerySet[PairwiseTrial]:
    return evaluation.trials.exclude(closed=None).order_by("closed", "pk")


def _tabulate(trial: PairwiseTrial) -> ResultTable:
    found = [(model, _group_preferences(trial, model)) for model in _list_models(trial)]
    rows = [
        (Cell(name_pair(one, other, model)), *map(_show, cells))
        for model, groups in found
        for (one, other), *cells in zip(
            combinations(trial.sources, 2), *(_list_cells(table) for _, table in groups), strict=True
        )
        # A model without votes would be a row of gaps.
        if not model or any(cell.preferred.n or cell.neither for cell in cells)
    ]
    columns = ("Preferred", *(name for name, _ in found[0][1]))
    return ResultTable(f"two_way.{trial.pk}", trial.name, columns, tuple(rows), NOTE)


def _list_models(trial: PairwiseTrial) -> list[str]:
    """Return the models to report separately, if the evaluation compares units with latents; else [""]."""
    evaluation = trial.evaluation
    compared = evaluation.options.get("autoencoders") if evaluation else None
    return [str(evaluation.options.get("model") or ""), *compared] if evaluation and compared else [""]


def name_pair(one: str, other: str, model: str) -> str:
    """Return a name such as "Agent over one-shot labeller, on toybox"."""
    return f"{name_source(one)} over {name_source(other).lower()}" + (f", on {model}" if model else "")


@dataclass(frozen=True)
class ToldPreference:
    """How often one source was preferred to another, by people or by one judging model."""

    by: str
    own: bool
    """True if the evaluation itself asked this judge."""
    model: str
    """Model of the units, if models are reported separately; else ""."""
    one: str
    other: str
    cell: PreferenceCell

    @property
    def key(self) -> str:
        """Return the key of the figure, with dots in names replaced: they would nest in the output of `--json`."""
        path = ("two_way", *([] if self.own else [self.by.casefold()]), self.model, f"{self.one}-{self.other}")
        return ".".join(each.replace(".", "_") for each in path if each)


def read_preferences(evaluation: Evaluation) -> Iterator[ToldPreference]:
    """Yield the preferences of all closed trials. Models without any vote are left out."""
    for trial in _list_closed(evaluation):
        pairs = list(combinations(trial.sources, 2))
        for model in _list_models(trial):
            for name, table in _group_preferences(trial, model):
                for (one, other), cell in zip(pairs, _list_cells(table), strict=True):
                    if not model or cell.preferred.n or cell.neither:
                        yield ToldPreference(name, trial.judges_wanted == 0, model, one, other, cell)


def list_preferences(evaluation: Evaluation) -> list[Figure]:
    """Return the preferences as figures.

    Keys: `two_way.agent-one-shot` for the judge of the evaluation itself, `two_way.people.…` and `two_way.gpt-4o.…`
    for judges of other trials. If units and latents are compared, the model precedes the last part. A later figure
    replaces an earlier one with the same key.
    """
    return list({told.key: _write_figure(told) for told in read_preferences(evaluation)}.values())


def _write_figure(told: ToldPreference) -> Figure:
    cell, share = told.cell, told.cell.preferred
    note = f"{cell.neither} cannot tell" + (f", {cell.unread} unread" if cell.unread else "")
    label = f"{name_pair(told.one, told.other, told.model)}, by {told.by}"
    return Figure(told.key, label, share.value, share.low, share.high, share.n, None, note)


def _group_preferences(trial: PairwiseTrial, model: str) -> list[tuple[str, Preferences]]:
    """Return the preferences of people together, then of each judging model. `model` limits the units, "" for all."""
    found = trial_results(trial, f"{model} / " if model else "")
    models: Sequence[JudgeScore] = found.backbones
    people = [("People", found.together)] if found.people or not models else []
    return [*people, *((score.name, score.table) for score in models)]


def _list_cells(table: Preferences) -> list[PreferenceCell]:
    """Return each pair of sources once, the first against the second."""
    return [cell for at, (_, cells) in enumerate(table.rows) for cell in cells[at + 1 :] if cell]


def _show(cell: PreferenceCell) -> Cell:
    share = cell.preferred
    if share.value is None:
        return Cell("no vote decides")
    return Cell(value=share.value, low=share.low, high=share.high, n=share.n)
