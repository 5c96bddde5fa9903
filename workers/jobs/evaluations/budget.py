"""The budget of an evaluation: what it has cost, and whether an item or a round more is still within it."""

from __future__ import annotations

from django.db.models import F, Max, Sum

from experiments.models import Evaluation, Judge, Run
from experiments.runs.spread import read_recorded
from workers.errors import Cancelled

GROWTH = 2.0
"""A reply may cost so many times the mean of its run: each sends the conversation before it again."""


class BudgetReached(Cancelled):
    """Raised before a reply that may exceed the budget. The run is paused; its item is done later."""


def find_cost(evaluation: Evaluation) -> float:
    """US dollars, of its runs, its checks, its judge and what was asked beside them, as far as prices are known."""
    runs = evaluation.items.aggregate(spent=Sum("run__cost"))["spent"] or 0.0
    checks = evaluation.items.aggregate(spent=Sum("label_check__cost"))["spent"] or 0.0
    judges = Judge.objects.filter(trial__evaluation=evaluation, trial__judges_wanted=0)
    judged = judges.aggregate(spent=Sum("cost"))["spent"] or 0.0
    beside = sum(float(scores.get("cost") or 0) for scores in evaluation.items.values_list("scores", flat=True))
    return float(runs + checks + judged) + beside


def explain_budget(evaluation: Evaluation) -> str:
    """Why no further item is begun; "" while the budget lasts."""
    evaluation.refresh_from_db(fields=["seconds", "cost_limit", "seconds_limit"])
    spent = find_cost(evaluation)
    if evaluation.cost_limit is not None and spent >= evaluation.cost_limit > 0:
        return f"Its budget of ${evaluation.cost_limit:.2f} is used up: it has cost ${spent:.2f}. Unfinished. "
    if evaluation.seconds_limit is not None and evaluation.seconds >= evaluation.seconds_limit:
        return f"Its {evaluation.seconds_limit:.0f} s of work are used up. Unfinished. "
    return ""


def require_round(evaluation: Evaluation) -> None:
    """Raise BudgetReached if the next reply of a run may cost more than what is left.

    What it will cost is known only afterwards: it is taken to cost twice what replies of its dearest run do.
    """
    if not evaluation.cost_limit:
        return
    left, following = evaluation.cost_limit - find_cost(evaluation), GROWTH * _find_reply_cost(evaluation)
    if following > left:
        raise BudgetReached(
            f"Its budget of ${evaluation.cost_limit:.2f} leaves ${left:.2f}, and the next reply may cost "
            f"${following:.2f}. Unfinished. "
        )


def _find_reply_cost(evaluation: Evaluation) -> float:
    """What a reply costs in the evaluation's dearest run, on average; before the first, in all recorded runs."""
    runs = Run.objects.filter(evaluation_items__evaluation=evaluation, rounds__gt=0)
    dearest = runs.aggregate(most=Max(F("cost") / F("rounds")))["most"]
    if dearest is not None:
        return float(dearest)
    recorded = read_recorded(evaluation.backbone, evaluation.backbone_model)
    return sum(run.cost for run in recorded) / max(1, sum(run.rounds for run in recorded))
