"""The budget of an evaluation: what it has taken, and whether more of it is still within the limits."""

from __future__ import annotations

from django.db.models import F, Max, Sum

from experiments.evaluations.lists import IS_UNSCORED
from experiments.models import Evaluation, ItemStatus, Judge, Run
from experiments.pairwise.sources import AGENT
from experiments.runs.spread import read_recorded
from experiments.sweeps import of_evaluation
from workers.record.statuses import ACTIVE

GROWTH = 2.0
"""A reply may cost so many times the mean of its run: each sends the conversation before it again."""


def find_cost(evaluation: Evaluation) -> float:
    """US dollars, of its runs, its checks, its judge and what was asked beside them, as far as prices are known."""
    runs = evaluation.items.aggregate(spent=Sum("run__cost"))["spent"] or 0.0
    checks = evaluation.items.aggregate(spent=Sum("label_check__cost"))["spent"] or 0.0
    judges = Judge.objects.filter(trial__evaluation=evaluation, trial__judges_wanted=0)
    judged = judges.aggregate(spent=Sum("cost"))["spent"] or 0.0
    beside = sum(float(scores.get("cost") or 0) for scores in evaluation.items.values_list("scores", flat=True))
    return float(runs + checks + judged) + beside


def _find_seconds(evaluation: Evaluation) -> float:
    """Seconds of work, those of runs that are not scored yet with them."""
    under_way = evaluation.items.filter(IS_UNSCORED).aggregate(took=Sum("run__seconds"))
    return evaluation.seconds + float(under_way["took"] or 0.0)


def explain_budget(evaluation: Evaluation, *, by_workers: bool = False) -> str:
    """Why nothing further is begun; "" while the budget lasts, which its sweeps then keep within by themselves.

    What the next reply of a run will cost is known only afterwards: it is taken to cost twice what replies of the
    dearest run do.
    """
    evaluation.refresh_from_db(fields=["seconds", "cost_limit", "seconds_limit"])
    cost = seconds = None
    if evaluation.cost_limit:
        spent = find_cost(evaluation)
        if spent >= evaluation.cost_limit:
            return f"Its budget of ${evaluation.cost_limit:.2f} is used up: it has cost ${spent:.2f}. Unfinished. "
        left, following = evaluation.cost_limit - spent, GROWTH * _find_reply_cost(evaluation)
        if following > left and _has_open_runs(evaluation):
            return (
                f"Its budget of ${evaluation.cost_limit:.2f} leaves ${left:.2f}, and the next reply may cost "
                f"${following:.2f}. Unfinished. "
            )
        cost = left - following
    if evaluation.seconds_limit is not None:
        seconds = evaluation.seconds_limit - _find_seconds(evaluation)
        if seconds <= 0:
            return f"Its {evaluation.seconds_limit:.0f} s of work are used up. Unfinished. "
    of_evaluation.keep_within(evaluation, cost, seconds, by_workers=by_workers)
    return ""


def _has_open_runs(evaluation: Evaluation) -> bool:
    return evaluation.items.filter(status=ItemStatus.PLANNED, source=AGENT, run__status__in=ACTIVE).exists()


def _find_reply_cost(evaluation: Evaluation) -> float:
    """What a reply costs in the evaluation's dearest run, on average; before the first, in all recorded runs."""
    runs = Run.objects.filter(evaluation_items__evaluation=evaluation, rounds__gt=0)
    dearest = runs.aggregate(most=Max(F("cost") / F("rounds")))["most"]
    if dearest is not None:
        return float(dearest)
    recorded = read_recorded(evaluation.backbone, evaluation.backbone_model)
    return sum(run.cost for run in recorded) / max(1, sum(run.rounds for run in recorded))
