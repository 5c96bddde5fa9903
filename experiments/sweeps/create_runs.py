"""Create, stop and retry a sweep's runs, some at a time: each step is a short transaction that can be repeated if a
worker died during it. Called by a worker's job."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

from django.db import transaction

from experiments.core import sweep_totals
from experiments.core.actors import Actor
from experiments.core.errors import StateConflict
from experiments.models import Layer, Run, Sweep, SweepStatus
from experiments.runs import actions as runs
from experiments.runs.drafts import draft_run
from experiments.runs.steering import actions as steering
from experiments.sweeps.questions import fill_question
from experiments.sweeps.selection import order_units
from workers.record.statuses import ACTIVE, SUSPENDED
from workers.record.systems import SystemSpec

CHUNK = 200
"""Runs created in one transaction."""
Plan = Sequence[tuple[str, int]]


def plan_runs(sweep: Sweep) -> Plan:
    """Return layer and unit of every run, in the order in which they are asked; each occurs once for each variant."""
    return [unit for unit in order_units(sweep) for _ in sweep.variants]


def create_next_batch(pk: int, plan: Plan) -> int:
    """Create the next runs; return how many there are by now. Does nothing for a stopped sweep."""
    with transaction.atomic():
        # `of`: the joined row of the owner stays unlocked
        sweep = Sweep.objects.select_for_update(of=("self",)).select_related("owner").get(pk=pk)
        if sweep.status == SweepStatus.STOPPED:
            # All count as created, so that the caller stops
            return len(plan)
        layers = {layer.name: layer for layer in _list_layers(sweep)}
        places = range(sweep.created_runs, min(sweep.created_runs + CHUNK, len(plan)))
        made = [_draft(sweep, layers.get(plan[place][0]), plan[place], place) for place in places]
        runs.add_runs(Actor(sweep.owner), made)
        # In the same transaction as the runs: a repeated step continues behind them.
        sweep.created_runs += len(made)
        sweep.save(update_fields=["created_runs"])
    return sweep.created_runs


def _list_layers(sweep: Sweep) -> list[Layer]:
    names = list(sweep.selection.get("units", {}))
    return list(Layer.objects.filter(model__name=sweep.selection["model"], name__in=names).select_related("model"))


def _draft(sweep: Sweep, layer: Layer | None, unit: tuple[str, int], place: int) -> Run:
    """Build a run of the sweep. If its layer has left the catalogue since, the worker reports it."""
    name, number = unit
    # `plan_runs` lists each unit once for each variant
    variant = sweep.variants[place % len(sweep.variants)]
    return draft_run(
        layer.spec(number) if layer else SystemSpec("unit", sweep.selection["model"], name, number),
        question=fill_question(sweep.question, sweep.task, layer, number) if layer else sweep.question,
        task=sweep.task,
        options=sweep.options,
        limits=sweep.limits,
        seed=sweep.seed,
        sweep=sweep,
        # Places count from 1, for people.
        sweep_place=place + 1,
        **variant,
    )


def stop_some(actor: Actor, pk: int) -> int:
    """Stop runs of a stopped sweep; return how many are left to stop."""
    sweep = Sweep.objects.get(pk=pk)
    if sweep.status != SweepStatus.STOPPED:
        return 0
    left = sweep.runs.filter(status__in=ACTIVE | SUSPENDED, cancel_requested=False).order_by("pk")
    for run in left.values_list("pk", flat=True)[:CHUNK]:
        steering.stop(actor, run)
    # Stopped runs no longer match, so this is what remains.
    return left.count()


def retry_some(actor: Actor, pk: int, after: int) -> int | None:
    """Resume the next runs after this key that failed, or were stopped, before the retry was requested. Return the key
    of the last one, None if there is none."""
    sweep = Sweep.objects.get(pk=pk)
    if not sweep.retrying or sweep.status == SweepStatus.STOPPED:
        return None
    # By keys rather than pages: a resumed run leaves the list
    left = sweep.runs.filter(status=sweep.retrying, ended__lte=sweep.retry_asked, pk__gt=after).order_by("pk")
    keys = list(left.values_list("pk", flat=True)[:CHUNK])
    for run in keys:
        # A run whose model or unit no longer exists stays as it is
        with suppress(StateConflict):
            steering.resume(actor, run)
    return keys[-1] if keys else None


def end_retry(pk: int, asked: datetime | None) -> None:
    """Mark the retry as done, unless another was requested meanwhile."""
    Sweep.objects.filter(pk=pk, retry_asked=asked).update(retrying="")
    sweep_totals.finish_if_last(pk)
