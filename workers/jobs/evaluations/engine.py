"""An evaluation, item by item: planned once, each item kept when it is done, figures written as they grow.

Stopped, killed or at the end of its budget it keeps what it has, and goes on there when it is asked again. Called by
`long` for a job of kind "evaluation", and by `manage.py evaluate`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import replace

import msgspec
from django.db import transaction
from django.db.models import Count, F

from experiments.core import transcript
from experiments.core.actors import Actor
from experiments.core.display_name import person
from experiments.evaluations.forecast import PLANNING
from experiments.evaluations.people import add_items, list_waiting
from experiments.models import Evaluation, EvaluationItem, EvaluationKind, ItemStatus, Job
from workers.errors import Cancelled, MachineryError, MaiaError, RequestError
from workers.jobs.evaluations import ablation, bias, labels, spurious, synthetic, units
from workers.jobs.evaluations.budget import BudgetReached, explain_budget
from workers.jobs.evaluations.procedure import Procedure
from workers.jobs.evaluations.two_by_two import PROBLEM, find_judge
from workers.jobs.laboratory import laboratory
from workers.protocols import Progress
from workers.record.evaluations import ResultNote
from workers.record.limits import explain_unpriced
from workers.record.statuses import Status

log = logging.getLogger(__name__)

SUMMARY_EVERY = 10.0
"""Seconds between two looks at the figures while items are done."""

PROCEDURES: Mapping[EvaluationKind, Procedure] = {
    EvaluationKind.LABELS: labels.PROCEDURE,
    EvaluationKind.SYNTHETIC: synthetic.PROCEDURE,
    EvaluationKind.UNITS: units.PROCEDURE,
    EvaluationKind.ABLATION: ablation.PROCEDURE,
    EvaluationKind.SPURIOUS: spurious.PROCEDURE,
    EvaluationKind.BIAS: bias.PROCEDURE,
}


def evaluate(job: Job, progress: Progress) -> str:
    """Do what is left of the job's evaluation. Returns how far it is, in words.

    Raises RequestError if it cannot be done, Cancelled if it was stopped.
    """
    evaluation = Evaluation.objects.select_related("owner").filter(job=job).first()
    if evaluation is None:
        raise RequestError("The evaluation of this job was deleted.")
    procedure = PROCEDURES[EvaluationKind(evaluation.kind)]
    check_price(evaluation)
    if not evaluation.planned:
        _plan(evaluation, procedure, progress)
    if evaluation.options.get("people"):
        add_items(Actor(evaluation.owner), evaluation)
    _take_up(evaluation)
    try:
        why = _do_all(evaluation, procedure, progress) or _finish(evaluation, procedure, progress)
    finally:
        summarise(evaluation)
    counts = dict(evaluation.items.order_by().values_list("status").annotate(Count("pk")))
    done, total = sum(counts.values()) - counts.get(ItemStatus.PLANNED, 0), sum(counts.values())
    failed = f", {counts[ItemStatus.FAILED]} failed" if counts.get(ItemStatus.FAILED) else ""
    waiting = list_waiting(evaluation).count()
    people = f", {waiting} wait{'s' * (waiting == 1)} for people" if waiting else ""
    return f"{why}Done: {done} of {total} items{failed}{people}."


def _take_up(evaluation: Evaluation) -> None:
    """Plan again what was broken off, and what failed because its run waits: by now that may be put right."""
    evaluation.items.filter(status=ItemStatus.RUNNING).update(status=ItemStatus.PLANNED)
    for item in evaluation.items.filter(status=ItemStatus.FAILED, run__status=Status.WAITING):
        if item.run_id and transcript.resume(item.run_id, person(evaluation.owner)):
            evaluation.items.filter(pk=item.pk).update(status=ItemStatus.PLANNED, reason="")


def check_price(evaluation: Evaluation) -> None:
    """Raises RequestError where the price of a backbone has to be known and is not, MissingPart where it lacks one."""
    find_judge(evaluation)  # raises before anything is spent
    if not evaluation.backbone or evaluation.unpriced:
        return
    backbone = laboratory().backbone(evaluation.backbone, evaluation.backbone_model)
    if not backbone.price_known:
        remedy = "Start one with “Unpriced is fine” (--unpriced)"
        raise RequestError(explain_unpriced(backbone.label, "a budget", remedy))


@transaction.atomic
def _save_plan(evaluation: Evaluation, items: list[EvaluationItem]) -> None:
    for position, item in enumerate(items, 1):
        item.evaluation, item.position = evaluation, position
    EvaluationItem.objects.bulk_create(items)
    evaluation.planned = True
    evaluation.save(update_fields=["planned", "prepared"])


def _plan(evaluation: Evaluation, procedure: Procedure, progress: Progress) -> None:
    began = time.monotonic()
    items = procedure.plan(evaluation, progress)
    if not items:
        raise RequestError("There is nothing to measure: no unit is left after what was asked for. Ask for others.")
    evaluation.prepared = {**evaluation.prepared, PLANNING: time.monotonic() - began}
    _save_plan(evaluation, items)


def _do_all(evaluation: Evaluation, procedure: Procedure, progress: Progress) -> str:
    """Do item after item, but for those that wait for people. Returns why it ends early, "" if all were done."""
    total = evaluation.items.count()
    looked = time.monotonic()
    left = evaluation.items.filter(status=ItemStatus.PLANNED).exclude(pk__in=list_waiting(evaluation).values("pk"))
    while item := left.select_related("unit__layer__model", "run").first():
        if why := explain_budget(evaluation):
            return why
        done = total - evaluation.items.filter(status=ItemStatus.PLANNED).count()

        def report(what: str, _: int, __: int, done: int = done, item: EvaluationItem = item) -> None:
            progress(f"{item.unit_name}, {item.source}: {what}", done, total)

        report("begins", 0, 0)
        try:
            _do(evaluation, procedure, item, report)
        except BudgetReached as reached:
            return str(reached)
        if time.monotonic() - looked > SUMMARY_EVERY:
            summarise(evaluation)
            looked = time.monotonic()
    progress("Done", total, total)
    return ""


def _do(evaluation: Evaluation, procedure: Procedure, item: EvaluationItem, progress: Progress) -> None:
    """One item. What its own label or run does wrong ends the item; what ends all others too is passed on."""
    began = time.monotonic()
    EvaluationItem.objects.filter(pk=item.pk).update(status=ItemStatus.RUNNING)
    try:
        procedure.do(evaluation, item, progress)
        item.status = ItemStatus.DONE if item.label or item.scores else ItemStatus.LACKING
    except (Cancelled, MachineryError):
        EvaluationItem.objects.filter(pk=item.pk).update(status=ItemStatus.PLANNED)
        raise
    except MaiaError as error:
        item.status, item.reason = ItemStatus.FAILED, str(error)
    except Exception as error:
        log.exception("%s failed.", item)
        item.status, item.reason = ItemStatus.FAILED, f"{type(error).__name__}: {error}. The worker's output says more."
    took = time.monotonic() - began
    item.seconds += took
    item.save()
    Evaluation.objects.filter(pk=evaluation.pk).update(seconds=F("seconds") + took)


def _finish(evaluation: Evaluation, procedure: Procedure, progress: Progress) -> str:
    """What takes several items. Returns why it ends early, "" if nothing is left."""
    began = time.monotonic()
    for _ in procedure.finish(evaluation, progress) if procedure.finish else ():
        began, before = time.monotonic(), began
        Evaluation.objects.filter(pk=evaluation.pk).update(seconds=F("seconds") + began - before)
        if why := explain_budget(evaluation):
            return why
    Evaluation.objects.filter(pk=evaluation.pk).update(seconds=F("seconds") + time.monotonic() - began)
    return ""


def summarise(evaluation: Evaluation) -> None:
    """Write the figures of what is there so far."""
    items = list(evaluation.items.select_related("label_check", "run", "unit__layer").order_by("position"))
    result = PROCEDURES[EvaluationKind(evaluation.kind)].summarise(evaluation, items)
    if problem := evaluation.prepared.get(PROBLEM):
        result = replace(result, notes=(*result.notes, ResultNote(str(problem))))
    Evaluation.objects.filter(pk=evaluation.pk).update(result=msgspec.to_builtins(result))
