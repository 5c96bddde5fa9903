"""The budget of an evaluation: what it has spent, and whether the next step fits in."""

from __future__ import annotations

from django.db.models import F, Max, Sum

from experiments.evaluations.lists import IS_UNSCORED
from experiments.models import Evaluation, ItemStatus, Judge, Run
from experiments.pairwise.sources import AGENT
from experiments.runs.prediction_interval import read_recorded
from experiments.sweeps import of_evaluation
from workers.record.statuses import ACTIVE

GROWTH = 2.0
"""Assumed cost of a reply relative to the mean of its run."""


def total_cost(evaluation: Evaluation) -> float:
    """Return the US dollars spent on runs, label checks, the judge and other requests. Unknown prices count 0."""
    runs = evaluation.items.aggregate(spent=Sum("run__cost"))["spent"] or 0.0
    checks = evaluation.items.aggregate(spent=Sum("label_check__cost"))["spent"] or 0.0
    # Pairwise trials of people cost nothing.
    judges = Judge.objects.filter(trial__evaluation=evaluation, trial__judges_wanted=0)
    judged = judges.aggregate(spent=Sum("cost"))["spent"] or 0.0
    # Single requests, such as one-shot labels, store their cost in the item's scores
    beside = sum(float(scores.get("cost") or 0) for scores in evaluation.items.values_list("scores", flat=True))
    return float(runs + checks + judged) + beside


def _find_seconds(evaluation: Evaluation) -> float:
    """Return the seconds of work, with those of runs that are not scored yet."""
    # A run's seconds are added to the evaluation when its item is scored.
    under_way = evaluation.items.filter(IS_UNSCORED).aggregate(took=Sum("run__seconds"))
    return evaluation.seconds + float(under_way["took"] or 0.0)


def explain_budget(evaluation: Evaluation, *, by_workers: bool = False) -> str:
    """Return why nothing more may start, "" while the budget lasts. Also passes the rest of the budget to its
    sweeps."""
    evaluation.refresh_from_db(fields=["seconds", "cost_limit", "seconds_limit"])
    cost = seconds = None
    if evaluation.cost_limit:
        spent = total_cost(evaluation)
        if spent >= evaluation.cost_limit:
            return f"Its budget of ${evaluation.cost_limit:.2f} is used up: it has cost ${spent:.2f}. Unfinished. "
        # Replies get dearer, because each one sends the whole conversation.
        left, following = evaluation.cost_limit - spent, GROWTH * _find_reply_cost(evaluation)
        # Stop before the limit: the cost of a reply is known only after it is paid
        if following > left and _has_open_runs(evaluation):
            return (
                f"Its budget of ${evaluation.cost_limit:.2f} leaves ${left:.2f}, and the next reply may cost "
                f"${following:.2f}. Unfinished. "
            )
        cost = left - following
    if evaluation.seconds_limit is not None:
        # Seconds of work, not of waiting
        seconds = evaluation.seconds_limit - _find_seconds(evaluation)
        if seconds <= 0:
            return f"Its {evaluation.seconds_limit:.0f} s of work are used up. Unfinished. "
    # Runs in progress must end within the rest, too.
    of_evaluation.keep_within(evaluation, cost, seconds, by_workers=by_workers)
    return ""


def _has_open_runs(evaluation: Evaluation) -> bool:
    return evaluation.items.filter(status=ItemStatus.PLANNED, source=AGENT, run__status__in=ACTIVE).exists()


def _find_reply_cost(evaluation: Evaluation) -> float:
    """Return the mean cost of a reply in the evaluation's dearest run; before its first reply, in all recorded runs."""
    runs = Run.objects.filter(evaluation_items__evaluation=evaluation, rounds__gt=0)
    dearest = runs.aggregate(most=Max(F("cost") / F("rounds")))["most"]
    if dearest is not None:
        return float(dearest)
    recorded = read_recorded(evaluation.backbone, evaluation.backbone_model)
    return sum(run.cost for run in recorded) / max(1, sum(run.rounds for run in recorded))
