"""Actions on evaluations: start, stop, resume, score again, repair, delete."""

from __future__ import annotations

import math
from typing import Any

from django.db import transaction
from django.http import QueryDict

from experiments.core import audit, outbox, queue
from experiments.core.actors import Actor
from experiments.core.audit import Verb
from experiments.core.errors import InvalidInput, StateConflict
from experiments.evaluations import lists, people
from experiments.evaluations.form import NewEvaluation
from experiments.models import (
    Evaluation,
    EvaluationItem,
    EvaluationKind,
    ItemStatus,
    Job,
    JobKind,
    JobStatus,
    Role,
)
from experiments.models.job import MOVING
from experiments.pairwise import sources
from experiments.sweeps import of_evaluation

STARTS = Role.RESEARCHER
"""Minimum role to start evaluations, which may cost money."""
HEAVIEST = 1.0
"""Exclusive maximum of a repaired unit's weight: repair only reduces weights."""


def start(actor: Actor, form: NewEvaluation) -> Evaluation:
    """Start the evaluation described by a form. Raises InvalidInput for a form with problems."""
    actor.require(STARTS)
    if not form.is_valid():
        raise InvalidInput(form.problems[0], next(iter(form.errors)))
    return begin(actor, form.draft())


@transaction.atomic
def begin(actor: Actor, evaluation: Evaluation, *, enqueue: bool = True) -> Evaluation:
    """Save a drafted evaluation and enqueue its job. Without `enqueue`, the caller claims the job."""
    evaluation.owner = actor.person
    # Before the evaluation is saved, since its row refers to the job.
    evaluation.job = _make_job(actor, evaluation)
    evaluation.save()
    audit.record(actor, Verb.EVALUATION_STARTED, evaluation, kind=evaluation.kind)
    if enqueue:
        queue.ask_for_work(evaluation.job.pk)
    else:
        # A stopped job is not picked up by workers, and the command can claim it
        Job.objects.filter(pk=evaluation.job.pk).update(status=JobStatus.STOPPED)
    return evaluation


def _make_job(actor: Actor, evaluation: Evaluation) -> Job:
    return Job.objects.create(kind=JobKind.EVALUATION, subject=evaluation.name[:500], asked_by=actor.person)


@transaction.atomic
def stop(actor: Actor, evaluation: Evaluation) -> None:
    """Stop it after its current step, and stop rounds of its runs from starting. Measurements are kept; `resume`
    continues."""
    _require_own(actor, evaluation)
    # Locked: a worker may change the job at the same moment
    job = _lock_job(evaluation)
    if job is None or job.status not in MOVING:
        raise StateConflict("This evaluation is not running, so there is nothing to stop.")
    # No worker has it yet, so there is none to tell.
    if job.status == JobStatus.QUEUED:
        job.status, job.result = JobStatus.STOPPED, "Stopped before it began."
    else:
        job.stop_requested = True
    job.save(update_fields=["status", "result", "stop_requested"])
    # A running one is announced by its worker, once it has stopped
    if job.status == JobStatus.STOPPED:
        outbox.announce_evaluation(evaluation, job.status)
    of_evaluation.hold(evaluation, f"Its evaluation was stopped by {actor.name}.")
    audit.record(actor, Verb.EVALUATION_STOPPED, evaluation)


@transaction.atomic
def resume(actor: Actor, evaluation: Evaluation, cost: float | None = None, seconds: float | None = None) -> Evaluation:
    """Continue where it stopped or failed; nothing is measured twice. `cost` in US dollars and `seconds` replace its
    limits. Both are totals, so a limit that was reached must be raised."""
    _require_own(actor, evaluation)
    for name, value in (("cost", cost), ("seconds", seconds)):
        if value is not None and not (math.isfinite(value) and value > 0):
            raise InvalidInput(f"The limit of the {name} is {value:g}: write a number above 0, or none.", name)
    job = _lock_job(evaluation)
    if job is not None and job.status in MOVING:
        raise StateConflict("This evaluation is already running.")
    # Failed items whose run is paused or blocked count as left, because their run may continue
    if not lists.state_of(lists.with_progress(Evaluation.objects.all()).get(pk=evaluation.pk)).left:
        raise StateConflict("Every item of this evaluation is done. Start a new evaluation to measure again.")
    # None keeps a limit; it cannot be removed here
    evaluation.cost_limit = evaluation.cost_limit if cost is None else cost
    evaluation.seconds_limit = evaluation.seconds_limit if seconds is None else seconds
    evaluation.save(update_fields=["cost_limit", "seconds_limit"])
    _work_again(actor, evaluation, job)
    audit.record(actor, Verb.EVALUATION_RESUMED, evaluation, cost=cost, seconds=seconds)
    return evaluation


def _lock_job(evaluation: Evaluation) -> Job | None:
    """Return the job, locked against changes; None if it never had one or it was deleted."""
    return Job.objects.select_for_update().filter(evaluation=evaluation).first()


def _lock_at_rest(evaluation: Evaluation, remedy: str) -> Job | None:
    """Return the locked job. Raises StateConflict if it is queued or running."""
    job = _lock_job(evaluation)
    if job is not None and job.status in MOVING:
        raise StateConflict(f"The evaluation is running: {remedy}.")
    return job


def _work_again(actor: Actor, evaluation: Evaluation, job: Job | None) -> None:
    if job is None:
        job = _make_job(actor, evaluation)
        evaluation.job = job
        evaluation.save(update_fields=["job"])
    else:
        job.status, job.result, job.stop_requested = JobStatus.QUEUED, "", False
        job.save(update_fields=["status", "result", "stop_requested"])
    queue.ask_for_work(job.pk)


@transaction.atomic
def score_again(actor: Actor, evaluation: Evaluation) -> Evaluation:
    """Score every label again, for example after an update that reads labels differently. Uses recorded data: no run is
    played and no source asked. Failed items are tried again, and earlier cost is kept."""
    _require_own(actor, evaluation)
    job = _lock_at_rest(evaluation, "score it again when it is done")
    items = list(evaluation.items.filter(status__in=(ItemStatus.DONE, ItemStatus.FAILED)))
    if not items:
        raise StateConflict("No item of this evaluation has a label yet: there is nothing to score again.")
    for item in items:
        item.status, item.reason = ItemStatus.PLANNED, ""
        # Money that was spent stays part of the budget
        item.scores = {name: value for name, value in item.scores.items() if name == "cost"}
    EvaluationItem.objects.bulk_update(items, ["status", "reason", "scores"], batch_size=500)
    _work_again(actor, evaluation, job)
    audit.record(actor, Verb.EVALUATION_RESUMED, evaluation, scored_again=len(items))
    return evaluation


@transaction.atomic
def repair(actor: Actor, evaluation: Evaluation, factor: float) -> Evaluation:
    """Multiply the head's weights of units judged spurious by `factor`, 0 to 1, and measure accuracy by group before
    and after. Stored as `options["repair"]`."""
    _require_own(actor, evaluation)
    if not evaluation.row_of_kind.repairs:
        raise StateConflict("Only an evaluation of spurious features has units to repair.")
    if evaluation.options.get("latents"):
        raise StateConflict("The classifier's head weighs units, not latents: repair one whose units were judged.")
    if not 0 <= factor < HEAVIEST:
        raise InvalidInput(
            f"A factor of {factor:g} repairs nothing: 0 leaves the units out, 0.5 halves them.", "factor"
        )
    job = _lock_at_rest(evaluation, "repair its classifier when it is done")
    # A copy: the stored dictionary is typed, and may be shared with the caller's row.
    options: Any = {**evaluation.options, "repair": factor}
    evaluation.options = options
    evaluation.save(update_fields=["options"])
    _work_again(actor, evaluation, job)
    audit.record(actor, Verb.EVALUATION_RESUMED, evaluation, repair=factor)
    return evaluation


@transaction.atomic
def ask_people(actor: Actor, evaluation: Evaluation) -> list[EvaluationItem]:
    """Ask people to label a quarter of the units: an item and a run each, which any researcher may write. Their
    conclusions are checked when the evaluation resumes. Raises StateConflict."""
    _require_own(actor, evaluation)
    if not evaluation.row_of_kind.people_label:
        raise StateConflict("People label units and synthetic neurons; this evaluation is of something else.")
    if not evaluation.planned:
        raise StateConflict("Its units are not drawn yet: ask people once a worker has planned it.")
    _lock_job(evaluation)  # Of two simultaneous requests, one must wait
    added = people.add_items(actor, evaluation)
    if not added:
        raise StateConflict("People have labels in this evaluation already, or it has no units.")
    return added  # Each of their runs is audited on its own


@transaction.atomic
def delete(actor: Actor, evaluation: Evaluation) -> None:
    """Delete an evaluation with its items, and stop its runs. Runs, labels and checks remain. Raises StateConflict
    while it is queued or running."""
    _require_own(actor, evaluation)
    job = _lock_at_rest(evaluation, "stop it before it is deleted")
    audit.record(actor, Verb.EVALUATION_DELETED, evaluation)
    # Otherwise workers would play on runs that nothing uses
    of_evaluation.end(actor, evaluation)
    evaluation.delete()
    if job is not None:
        job.delete()


def _require_own(actor: Actor, evaluation: Evaluation) -> None:
    """Refuse all but its owner and admins, if they may start evaluations."""
    actor.require(STARTS)
    actor.require_own("started this evaluation", evaluation.owner_id)


def check_source(actor: Actor, source: str, most: int = 1_000) -> Evaluation:
    """Start an evaluation of kind `labels` for every label of a source."""
    actor.require(STARTS)
    sent = QueryDict(mutable=True)
    sent.update(
        {"kind": EvaluationKind.LABELS.value, "units": str(most), "name": f"Labels: {sources.words(source)}"[:120]}
    )
    sent.setlist("source", [source])
    return start(actor, NewEvaluation(sent, sources.list_sources()))
