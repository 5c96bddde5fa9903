"""The agent's runs of an evaluation: sweeps of its units, played by whichever threads are free.

Each item is given its run once the sweep is laid out, and waits for it to end. In a terminal, where no thread plays,
the evaluation plays its runs itself, one round after the other.
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
from experiments.units.stretches import format_stretches
from workers.errors import RequestError
from workers.jobs import claims, round_threads, rounds, sweeps
from workers.jobs.evaluations.procedure import Procedure
from workers.jobs.evaluations.sources import AGENT, find_toolset, spec_of
from workers.jobs.laboratory import laboratory
from workers.protocols import Progress
from workers.record.limits import DEFAULT_LIMITS


def by_workers() -> bool:
    """Whether threads of workers play the runs: in a terminal nobody else may."""
    return bool(round_threads.players)


def ask_agent(evaluation: Evaluation, procedure: Procedure, progress: Progress) -> None:
    """Give every item of the agent that lacks a run its own. Runs that are there are kept, so it can be done again.

    Raises RequestError if the evaluation's owner may not ask any more, Cancelled.
    """
    try:
        _lay_out(evaluation, progress)
        for sweep in _draft_sweeps(evaluation, procedure):
            actions.add_sweep(Actor(evaluation.owner), sweep)
        _lay_out(evaluation, progress)
    except PermissionDenied as error:
        raise RequestError(f"{error} An admin can give {evaluation.owner} the role back.") from error


def _lay_out(evaluation: Evaluation, progress: Progress) -> None:
    """Make what runs are left to make of its sweeps, and give each to its item."""
    for sweep in evaluation.sweeps.exclude(status=SweepStatus.STOPPED):
        sweeps.make_runs(sweep, progress)
    lacking: dict[tuple[str, str, int, bool, str], EvaluationItem] = {}
    for item in _list_lacking(evaluation):
        spec = spec_of(evaluation, item)
        named = str(item.options.get("toolset") or "")
        lacking[spec.model, spec.layer, spec.unit, _has_hints(item), named] = item
    for run in Run.objects.filter(sweep__evaluation=evaluation, evaluation_items=None).order_by("sweep_place"):
        place = run.model, run.layer, run.unit, bool(run.options.get("hints"))
        if key := next((key for key in ((*place, run.toolset), (*place, "")) if key in lacking), None):
            EvaluationItem.objects.filter(pk=lacking.pop(key).pk).update(run=run)


def _list_lacking(evaluation: Evaluation) -> QuerySet[EvaluationItem]:
    """Items of the agent without a run, in their order; those of units that left the catalogue are left out."""
    rows = evaluation.items.filter(source=AGENT, status=ItemStatus.PLANNED, run=None, unit__isnull=False)
    return rows.select_related("unit__layer__model").order_by("position")


def _draft_sweeps(evaluation: Evaluation, procedure: Procedure) -> Iterator[Sweep]:
    """One for all units of a model that are asked alike, over one dataset with the same toolsets and with hints or
    without; none is saved."""
    toolsets: dict[tuple[int, bool], list[str]] = defaultdict(list)
    first: dict[tuple[int, bool], EvaluationItem] = {}
    for item in _list_lacking(evaluation):
        asked = item.unit_id or 0, _has_hints(item)
        toolsets[asked].append(find_toolset(evaluation, item))
        first.setdefault(asked, item)
    alike: dict[tuple[str, str, bool, tuple[str, ...]], list[EvaluationItem]] = defaultdict(list)
    for asked, item in first.items():
        spec = spec_of(evaluation, item)
        alike[spec.model, str(spec.options.get("dataset") or ""), asked[1], tuple(toolsets[asked])].append(item)
    models = {model for model, *_ in alike}
    for (model, dataset, hints, tools), items in alike.items():
        name = evaluation.name if len(models) == 1 else f"{evaluation.name}: {model}"
        options: Options = {"label_check": False}
        options |= {"dataset": dataset} if dataset else {}
        options |= {"hints": True} if hints else {}
        yield _draft(evaluation, procedure, items, options, tools, f"{name}, with hints" if hints else name)


def _has_hints(item: EvaluationItem) -> bool:
    """Whether its agent is given some inputs with their outputs to begin with."""
    return bool(item.options.get("hints"))


def _draft(
    evaluation: Evaluation,
    procedure: Procedure,
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
        status=SweepStatus.PAUSED,
        task=procedure.task,
        question=procedure.question(evaluation, items[0]) if procedure.question else "",
        selection={
            "kind": SelectionKind.LIST.value,
            "model": specs[0].model,
            "layers": list(units),
            "units": {layer: format_stretches(numbers) for layer, numbers in units.items()},
        },
        variants=[{**agent, "toolset": toolset} for toolset in toolsets],
        options={**options, "reflections": reflections} if reflections else options,
        limits=_find_limits(evaluation),
        seed=evaluation.seed,
        planned=len(items) * len(toolsets),
        unpriced=evaluation.unpriced,
    )


def _find_limits(evaluation: Evaluation) -> dict[str, float | None]:
    """Of each run: the usual ones, but for its cost where no price is known."""
    known = laboratory().backbone(evaluation.backbone, evaluation.backbone_model).price_known
    return {**DEFAULT_LIMITS, "cost": DEFAULT_LIMITS["cost"] if known else None}


def list_runs(evaluation: Evaluation) -> QuerySet[Run]:
    """The agent's runs."""
    return Run.objects.filter(pk__in=evaluation.items.filter(source=AGENT).values("run"))


def play_one(evaluation: Evaluation, progress: Progress) -> bool:
    """Play a round of one of its runs in this thread, that of the run under way; False if there is none to claim."""
    run = claims.claim_first(claims.list_claimable().filter(pk__in=list_runs(evaluation).values("pk")))
    if run is None:
        return False
    progress(f"Run {run.pk}, round {run.rounds + 1}", 0, 1)
    rounds.play_claimed(run, any_model=True)
    return True
