"""Run an evaluation: plan it once, ask the agent in sweeps, score each item after its run, update the figures.

An evaluation that was stopped or killed, or that used up its budget, keeps its results and can be resumed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module

import msgspec
from django.db import transaction
from django.db.models import Count, F

from experiments.core import queue, transcript
from experiments.core.actors import Actor
from experiments.core.display_name import person
from experiments.core.outages import explain_outage
from experiments.evaluations.forecast import PLANNING
from experiments.evaluations.people import add_items, list_waiting
from experiments.models import Evaluation, EvaluationItem, EvaluationKind, ItemStatus, Job
from experiments.sweeps import of_evaluation
from workers.errors import RequestError
from workers.jobs import lease
from workers.jobs.evaluations.agent_runs import ask_agent, execute_one, has_workers, list_runs
from workers.jobs.evaluations.budget import explain_budget
from workers.jobs.evaluations.evaluation_type import EvaluationType
from workers.jobs.evaluations.pairwise_judging import PROBLEM, find_judge
from workers.jobs.evaluations.sources import AGENT
from workers.jobs.evaluations.steps import Steps
from workers.jobs.laboratory import laboratory
from workers.protocols import Progress
from workers.record.evaluations import ResultNote
from workers.record.limits import explain_unpriced
from workers.record.statuses import ACTIVE, SUSPENDED

SUMMARY_EVERY = 10.0
"""Minimum interval between updates of the figures while items are scored, in seconds."""
LOOK_EVERY = 0.5
"""Interval between checks for finished runs and label checks of other workers, in seconds."""


def find_evaluation_type(evaluation: Evaluation) -> EvaluationType:
    """Return the evaluation type in the module named like the evaluation's kind."""
    found: EvaluationType = import_module(f"workers.jobs.evaluations.{EvaluationKind(evaluation.kind)}").EVALUATION_TYPE
    return found


def evaluate(job: Job, progress: Progress) -> str:
    """Do the rest of the job's evaluation. Return its progress in words.

    Raises RequestError if it cannot be done, Cancelled if it was stopped.
    """
    evaluation = Evaluation.objects.select_related("owner").filter(job=job).first()
    if evaluation is None:
        raise RequestError("The evaluation of this job was deleted.")
    evaluation_type = find_evaluation_type(evaluation)
    check_price(evaluation)
    # 1. Plan the items, once
    if not evaluation.planned:
        _plan(evaluation, evaluation_type, progress)
    if evaluation.options.get("people"):
        add_items(Actor(evaluation.owner), evaluation)
    # 2. Create the runs that are missing
    _take_up(evaluation)
    ask_agent(evaluation, evaluation_type, progress)
    # 3. Score items as their runs end, then do the steps that need several items
    try:
        with _let_runs_proceed(evaluation):
            why = _do_all(evaluation, evaluation_type, progress) or _finish(evaluation, evaluation_type, progress)
            if why:
                of_evaluation.hold(evaluation, why)
    finally:
        # Also after an error or a stop: an item that was being scored is due again.
        evaluation.items.filter(status=ItemStatus.RUNNING).update(status=ItemStatus.PLANNED)
        summarise(evaluation)
    counts = dict(evaluation.items.order_by().values_list("status").annotate(Count("pk")))
    done, total = sum(counts.values()) - counts.get(ItemStatus.PLANNED, 0), sum(counts.values())
    failed = f", {counts[ItemStatus.FAILED]} failed" if counts.get(ItemStatus.FAILED) else ""
    waiting = list_waiting(evaluation).count()
    people = f", {waiting} wait{'s' * (waiting == 1)} for people" if waiting else ""
    return f"{why}Done: {done} of {total} items{failed}{people}."


def _take_up(evaluation: Evaluation) -> None:
    """Plan interrupted items again, and items that failed because their run is paused or blocked."""
    evaluation.items.filter(status=ItemStatus.RUNNING).update(status=ItemStatus.PLANNED)
    # The cause may be gone by now.
    for item in evaluation.items.filter(status__in=(ItemStatus.FAILED, ItemStatus.PLANNED), run__status__in=SUSPENDED):
        if item.source == AGENT and item.run_id and transcript.resume(item.run_id, person(evaluation.owner)):
            evaluation.items.filter(pk=item.pk).update(status=ItemStatus.PLANNED, reason="")
    for run in list_runs(evaluation).filter(status__in=ACTIVE, run_queue=None):
        queue.enqueue(run.pk)  # Runs from before evaluations used sweeps


@contextmanager
def _let_runs_proceed(evaluation: Evaluation) -> Iterator[None]:
    """Let its runs proceed while the block runs."""
    of_evaluation.resume_runs(evaluation, by_workers=has_workers())
    try:
        yield
    except Exception as error:
        # After a shutdown or an outage the evaluation is resumed, so its runs may proceed meanwhile.
        if not lease.stopping.is_set() and not explain_outage(error):
            of_evaluation.hold(evaluation, f"Its evaluation failed: {error}")
        raise


def check_price(evaluation: Evaluation) -> None:
    """Raise RequestError if a required price is unknown, MissingPart if a backbone is not ready."""
    find_judge(evaluation)  # Raises before any money is spent
    if not evaluation.backbone or evaluation.unpriced:
        return
    backbone = laboratory().backbone(evaluation.backbone, evaluation.backbone_model)
    if not backbone.price_known:
        remedy = "Start one with “Allow models without a known price” (--unpriced)"
        raise RequestError(explain_unpriced(backbone.label, "a budget", remedy))


@transaction.atomic
def _save_plan(evaluation: Evaluation, items: list[EvaluationItem]) -> None:
    for position, item in enumerate(items, 1):
        item.evaluation, item.position = evaluation, position
    # In one transaction: a plan saved by halves would be taken for the whole.
    EvaluationItem.objects.bulk_create(items)
    evaluation.planned = True
    evaluation.save(update_fields=["planned", "prepared"])


def _plan(evaluation: Evaluation, evaluation_type: EvaluationType, progress: Progress) -> None:
    began = time.monotonic()
    items = evaluation_type.plan(evaluation, progress)
    if not items:
        raise RequestError("There is nothing to measure: no unit matches the choice. Choose other units.")
    evaluation.prepared = {**evaluation.prepared, PLANNING: time.monotonic() - began}
    _save_plan(evaluation, items)


def _do_all(evaluation: Evaluation, evaluation_type: EvaluationType, progress: Progress) -> str:
    """Label, check and score items as runs end. Return why it stopped early, "" if only items that wait for people are
    left."""
    total, looked = evaluation.items.count(), time.monotonic()
    steps = Steps(evaluation, evaluation_type)
    told = total  # Items left at the latest update of the figures
    while left := steps.count_left(progress):
        report = partial(_report, progress, total - left, total)
        if why := explain_budget(evaluation, by_workers=has_workers()):
            return why
        # In a terminal there are no other threads, so this one also plays the runs
        if not steps.take_one(report) and (has_workers() or not execute_one(evaluation, report)):
            # The other threads do the work, so this one only looks now and then.
            report("Waiting for runs and checks in progress", 0, 1)
            time.sleep(LOOK_EVERY)
        if left < told and time.monotonic() - looked > SUMMARY_EVERY:
            summarise(evaluation)
            told, looked = left, time.monotonic()
    progress("Done", total, total)
    return ""


def _report(progress: Progress, done: int, total: int, what: str, _: int = 0, __: int = 0) -> None:
    """Report how many items are done, whatever the step's own progress is."""
    progress(what, done, total)


def _finish(evaluation: Evaluation, evaluation_type: EvaluationType, progress: Progress) -> str:
    """Do the steps that need several items. Return why it stopped early, "" if nothing is left."""
    began = time.monotonic()
    for _ in evaluation_type.finish(evaluation, progress) if evaluation_type.finish else ():
        # The generator does a step, then yields.
        began, before = time.monotonic(), began
        # Saved after each step, so that a stop loses no time of work.
        Evaluation.objects.filter(pk=evaluation.pk).update(seconds=F("seconds") + began - before)
        if why := explain_budget(evaluation):
            return why
    Evaluation.objects.filter(pk=evaluation.pk).update(seconds=F("seconds") + time.monotonic() - began)
    return ""


def summarise(evaluation: Evaluation) -> None:
    """Save the figures of the items scored so far."""
    items = list(evaluation.items.select_related("label_check", "run", "unit__layer").order_by("position"))
    result = find_evaluation_type(evaluation).summarise(evaluation, items)
    # Why the judge compared nothing, which is known only after the items
    if problem := evaluation.prepared.get(PROBLEM):
        result = replace(result, notes=(*result.notes, ResultNote(str(problem))))
    Evaluation.objects.filter(pk=evaluation.pk).update(result=msgspec.to_builtins(result))
