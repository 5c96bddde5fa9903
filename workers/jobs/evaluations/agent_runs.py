"""The agent's runs of an evaluation: sweeps over its units, played by free worker threads.

Each item gets its run when the sweep is created, and waits until it ends.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet

from experiments.core.actors import Actor
from experiments.models import Evaluation, EvaluationItem, ItemStatus, Run, Sweep, SweepStatus
from experiments.models.stored import Options
from experiments.sweeps import actions
from experiments.sweeps.selection import SelectionKind
from experiments.units.unit_ranges import format_ranges
from workers.errors import RequestError
from workers.jobs import claims, round_threads, rounds, sweeps
from workers.jobs.evaluations.evaluation_type import EvaluationType
from workers.jobs.evaluations.sources import AGENT, find_toolset, spec_of
from workers.jobs.laboratory import laboratory
from workers.protocols import Progress
from workers.record.limits import DEFAULT_LIMITS


def has_workers() -> bool:
    """True if worker threads play the runs, as everywhere except in a terminal."""
    return bool(round_threads.players)


def ask_agent(evaluation: Evaluation, evaluation_type: EvaluationType, progress: Progress) -> None:
    """Create a run for each item of the agent that has none. Existing runs are kept, so it can be repeated.

    Raises RequestError if the evaluation's owner may no longer start runs, and Cancelled.
    """
    try:
        # A previous attempt may have created sweeps and died before their runs
        _create_runs(evaluation, progress)
        for sweep in _draft_sweeps(evaluation, evaluation_type):
            actions.add_sweep(Actor(evaluation.owner), sweep)
        _create_runs(evaluation, progress)
    except PermissionDenied as error:
        raise RequestError(f"{error} An admin can give {evaluation.owner} the role back.") from error


def _create_runs(evaluation: Evaluation, progress: Progress) -> None:
    """Create the missing runs of its sweeps, and assign each to its item."""
    # A person stopped these: their runs are not created again.
    for sweep in evaluation.sweeps.exclude(status=SweepStatus.STOPPED):
        sweeps.make_runs(sweep, progress)
    lacking: dict[tuple[str, str, int, bool, str], EvaluationItem] = {}
    for item in _list_lacking(evaluation):
        spec = spec_of(evaluation, item)
        named = str(item.options.get("toolset") or "")
        lacking[spec.model, spec.layer, spec.unit, _has_hints(item), named] = item
    # In the order of creation, so that runs and items are matched alike each time.
    for run in Run.objects.filter(sweep__evaluation=evaluation, evaluation_items=None).order_by("sweep_place"):
        place = run.model, run.layer, run.unit, bool(run.options.get("hints"))
        # A run's toolset may be the item's own choice or the evaluation's
        if key := next((key for key in ((*place, run.toolset), (*place, "")) if key in lacking), None):
            EvaluationItem.objects.filter(pk=lacking.pop(key).pk).update(run=run)


def _list_lacking(evaluation: Evaluation) -> QuerySet[EvaluationItem]:
    """Return the agent's items without a run, in order. Items whose unit left the catalogue are omitted."""
    rows = evaluation.items.filter(source=AGENT, status=ItemStatus.PLANNED, run=None, unit__isnull=False)
    return rows.select_related("unit__layer__model").order_by("position")


def _draft_sweeps(evaluation: Evaluation, evaluation_type: EvaluationType) -> Iterator[Sweep]:
    """Yield unsaved sweeps: one for all units with the same model, dataset, toolsets and use of hints."""
    # 1. Collect the toolsets of each unit
    toolsets: dict[tuple[int, bool], list[str]] = defaultdict(list)
    first: dict[tuple[int, bool], EvaluationItem] = {}
    for item in _list_lacking(evaluation):
        asked = item.unit_id or 0, _has_hints(item)
        toolsets[asked].append(find_toolset(evaluation, item))
        # The first item stands for all of one unit: they differ in their toolset alone.
        first.setdefault(asked, item)
    # 2. Group units that can share a sweep
    alike: dict[tuple[str, str, bool, tuple[str, ...]], list[EvaluationItem]] = defaultdict(list)
    for asked, item in first.items():
        spec = spec_of(evaluation, item)
        alike[spec.model, str(spec.options.get("dataset") or ""), asked[1], tuple(toolsets[asked])].append(item)
    models = {model for model, *_ in alike}
    for (model, dataset, hints, tools), items in alike.items():
        name = evaluation.name if len(models) == 1 else f"{evaluation.name}: {model}"
        # The evaluation checks labels itself.
        options: Options = {"label_check": False}
        options |= {"dataset": dataset} if dataset else {}
        options |= {"hints": True} if hints else {}
        yield _draft(evaluation, evaluation_type, items, options, tools, f"{name}, with hints" if hints else name)


def _has_hints(item: EvaluationItem) -> bool:
    """True if the agent starts with some inputs and their outputs."""
    return bool(item.options.get("hints"))


def _draft(
    evaluation: Evaluation,
    evaluation_type: EvaluationType,
    items: Sequence[EvaluationItem],
    options: Options,
    toolsets: Sequence[str],
    name: str,
) -> Sweep:
    specs = [spec_of(evaluation, item) for item in items]
    units: dict[str, list[int]] = defaultdict(list)
    for spec in specs:
        units[spec.layer].append(spec.unit)
    agent = {"backbone": evaluation.backbone, "backbone_model": evaluation.backbone_model}
    reflections = int(evaluation.options.get("reflections") or 0)
    return Sweep(
        name=name[:120],
        evaluation=evaluation,
        # The engine starts it when it is ready to score runs
        status=SweepStatus.PAUSED,
        task=evaluation_type.task,
        question=evaluation_type.question(evaluation, items[0]) if evaluation_type.question else "",
        selection={
            "kind": SelectionKind.LIST.value,
            "model": specs[0].model,
            "layers": list(units),
            "units": {layer: format_ranges(numbers) for layer, numbers in units.items()},
        },
        variants=[{**agent, "toolset": toolset} for toolset in toolsets],
        options={**options, "reflections": reflections} if reflections else options,
        limits=_find_limits(evaluation),
        seed=evaluation.seed,
        planned=len(items) * len(toolsets),
        unpriced=evaluation.unpriced,
    )


def _find_limits(evaluation: Evaluation) -> dict[str, float | None]:
    """Return the limits of each run: the defaults, without a cost limit if the price is unknown."""
    # Without a price, no cost limit could ever be reached
    known = laboratory().backbone(evaluation.backbone, evaluation.backbone_model).price_known
    return {**DEFAULT_LIMITS, "cost": DEFAULT_LIMITS["cost"] if known else None}


def list_runs(evaluation: Evaluation) -> QuerySet[Run]:
    """Return the agent's runs."""
    return Run.objects.filter(pk__in=evaluation.items.filter(source=AGENT).values("run"))


def execute_one(evaluation: Evaluation, progress: Progress) -> bool:
    """Play a round of one run in this thread, preferring the run in progress. False if no run can be claimed."""
    run = claims.claim_first(claims.list_claimable().filter(pk__in=list_runs(evaluation).values("pk")))
    if run is None:
        return False
    progress(f"Run {run.pk}, round {run.rounds + 1}", 0, 1)
    rounds.execute_claimed(run, any_model=True)
    return True
