"""Trials between the labels of an evaluation: what each of its sources said of each unit then, and what came of it.

The paper's Table 1 is one of synthetic neurons with ten judges a pair.
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
"""People for each pair: as in the paper, and at most."""
SHUFFLED = "shuffled"
"""Labels of other units: a floor of checks, which says nothing of a source here."""
NOTE = (
    "Share of the votes that decide, with 95 % intervals over units: Wilson's, for as many independent votes as vary "
    "as much. People and each model apart. The intervals of the paper's Table 1 are narrower than its votes allow."
)


def name_source(key: str) -> str:
    """What people call a source of an evaluation, which has one agent."""
    return "Agent" if key == sources.AGENT else sources.words(key)


def name_sources(trial: PairwiseTrial) -> list[str]:
    """What people call the sources of a trial, of an evaluation or of labels of units."""
    return [name_source(key) if trial.evaluation_id else sources.words(key) for key in trial.sources]


def list_comparable(evaluation: Evaluation) -> list[str]:
    """Keys of the sources that give labels, in the order of the items; none for a kind without several."""
    if not evaluation.row_of_kind.compares_labels:
        return []
    said = evaluation.items.filter(status=ItemStatus.DONE).exclude(label="").order_by("position")
    return list(dict.fromkeys(said.values_list("source", flat=True)))


def draft_trial_of(
    evaluation: Evaluation, chosen: Sequence[str], most: int, judges_wanted: int, seed: int
) -> tuple[PairwiseTrial, list[Pair]]:
    """The trial with its pairs; neither is saved. Raises StateConflict for an evaluation of something else, and
    InvalidInput."""
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
        sources=[key for key in there if key in chosen],
        seed=seed,
        evaluation=evaluation,
        judges_wanted=judges_wanted,
    )
    known = _read_labels(evaluation, trial.sources)
    several: QuerySet[Unit] = Unit.objects.filter(pk__in=[unit for unit, labels in known.items() if len(labels) > 1])
    return trial, draw_pairs(trial, most, known, several)


def _read_labels(evaluation: Evaluation, keys: Sequence[str]) -> LabelsBySource:
    """What these sources said of each unit in the evaluation, whatever they have said of it since."""
    said: dict[int, dict[str, SourceLabel]] = defaultdict(dict)
    items = evaluation.items.filter(status=ItemStatus.DONE, source__in=keys, unit__isnull=False).exclude(label="")
    for pk, unit, source, label, run in items.order_by("position").values_list(
        "pk", "unit_id", "source", "label", "run_id"
    ):
        said[unit or 0][source] = SourceLabel(label, None, pk, run)
    return said


# --- what came of them ---


def tabulate_preferences(evaluation: Evaluation) -> list[ResultTable]:
    """A table for each closed trial: how often the labels of a source were preferred, by people and by each model."""
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
        if not model or any(cell.preferred.n or cell.neither for cell in cells)
    ]
    columns = ("Preferred", *(name for name, _ in found[0][1]))
    return ResultTable(f"two_way.{trial.pk}", trial.name, columns, tuple(rows), NOTE)


def _list_models(trial: PairwiseTrial) -> list[str]:
    """The models that preferences are told apart by: units and latents, where these are compared; else [""]."""
    evaluation = trial.evaluation
    compared = evaluation.options.get("autoencoders") if evaluation else None
    return [str(evaluation.options.get("model") or ""), *compared] if evaluation and compared else [""]


def name_pair(one: str, other: str, model: str) -> str:
    """Such as "Agent over one-shot labeller, on toybox"."""
    return f"{name_source(one)} over {name_source(other).lower()}" + (f", on {model}" if model else "")


@dataclass(frozen=True)
class ToldPreference:
    """How often the label of one source was preferred to that of another, by people or a model that judges."""

    by: str
    own: bool
    """Whether the evaluation itself asked whoever judges."""
    model: str
    """Whose units it is about, where that is told apart; else ""."""
    one: str
    other: str
    cell: PreferenceCell

    @property
    def key(self) -> str:
        """A dot would nest in the last line of `--json`."""
        path = ("two_way", *([] if self.own else [self.by.casefold()]), self.model, f"{self.one}-{self.other}")
        return ".".join(each.replace(".", "_") for each in path if each)


def read_preferences(evaluation: Evaluation) -> Iterator[ToldPreference]:
    """Of all closed trials; of units of a model only those that somebody judged."""
    for trial in _list_closed(evaluation):
        pairs = list(combinations(trial.sources, 2))
        for model in _list_models(trial):
            for name, table in _group_preferences(trial, model):
                for (one, other), cell in zip(pairs, _list_cells(table), strict=True):
                    if not model or cell.preferred.n or cell.neither:
                        yield ToldPreference(name, trial.judges_wanted == 0, model, one, other, cell)


def list_preferences(evaluation: Evaluation) -> list[Figure]:
    """The same as figures: `two_way.agent-one-shot` for the judge of the evaluation itself, `two_way.people.…` and
    `two_way.gpt-4o.…` for those of other trials; where units and latents are compared, each with its model before the
    last part. Of two of one name, the later stands."""
    return list({told.key: _write_figure(told) for told in read_preferences(evaluation)}.values())


def _write_figure(told: ToldPreference) -> Figure:
    cell, share = told.cell, told.cell.preferred
    note = f"{cell.neither} cannot tell" + (f", {cell.unread} unread" if cell.unread else "")
    label = f"{name_pair(told.one, told.other, told.model)}, by {told.by}"
    return Figure(told.key, label, share.value, share.low, share.high, share.n, None, note)


def _group_preferences(trial: PairwiseTrial, model: str) -> list[tuple[str, Preferences]]:
    """People together, where any judged, then each model that judges; of units of `model`, "" for all."""
    found = trial_results(trial, f"{model} / " if model else "")
    models: Sequence[JudgeScore] = found.backbones
    people = [("People", found.together)] if found.people or not models else []
    return [*people, *((score.name, score.table) for score in models)]


def _list_cells(table: Preferences) -> list[PreferenceCell]:
    """Each two sources once, the one that comes first against the other."""
    return [cell for at, (_, cells) in enumerate(table.rows) for cell in cells[at + 1 :] if cell]


def _show(cell: PreferenceCell) -> Cell:
    share = cell.preferred
    if share.value is None:
        return Cell("no vote decides")
    return Cell(value=share.value, low=share.low, high=share.high, n=share.n)
