"""Which backbones may judge in a trial, and asking one: a `Job` that a worker does, pair by pair."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction

from experiments.core import compatibility, queue
from experiments.models import Backbone, Job, Judge
from experiments.models.job import MOVING, JobKind, JobStatus
from experiments.pairwise.judging import Refused, open_trial

BLIND = {
    "scripted": "The scripted scientist has no eyes for pictures and reads no words: it would guess. "
    "Ask a vision-language model.",
    "person": "A person judges on the page, signed in.",
}
"""Backbones that cannot judge, and why."""
MOST_COST = 1_000.0


@dataclass(frozen=True)
class Offered:
    """A backbone with a model that may judge; `value` is what a form sends."""

    value: str
    label: str
    lacks: str
    unpriced: bool
    """Whether its price is not known."""


def offered() -> list[Offered]:
    """Every backbone that sees, with each of its models."""
    rows = [row for row in Backbone.objects.all() if row.key not in BLIND]
    return [
        Offered(
            f"{row.key}:{model}" if model else row.key,
            model or row.label,
            "" if row.available else row.remedy,
            model in row.unpriced,
        )
        for row in rows
        for model in (row.model_names or [""])
    ]


@transaction.atomic
def ask(trial_id: int, value: str, cost_limit: float, by: User, *, unpriced: bool = False) -> Judge:
    """Have a backbone judge what it has not judged yet; `unpriced`: though its price is not known. Raises Refused."""
    backbone, _, model = value.partition(":")
    if backbone in BLIND:
        raise Refused(BLIND[backbone])
    if value not in {each.value for each in offered()}:
        raise Refused(f"There is no backbone “{value[:60]}” that could judge. Choose one of the list.")
    if not 0 < cost_limit <= MOST_COST:
        raise Refused(f"The limit of the cost is an amount above $0, and at most ${MOST_COST:,.0f}.")
    if (without := compatibility.price_unknown(backbone, model)) and not unpriced:
        raise Refused(
            f"No price is known for {model}, so its allowance cannot hold. Tick “Without a known price”, or have an "
            "admin add the price (Settings, Models says where)."
        )
    trial = open_trial(trial_id)
    judge, _ = Judge.objects.get_or_create(trial=trial, backbone=backbone, backbone_model=model, user=None)
    if judge.job and judge.job.is_moving:
        raise Refused(f"{model or backbone} is judging already.")
    judge.cost_limit, judge.unpriced = cost_limit, without
    judge.job = Job.objects.create(kind=JobKind.JUDGE, subject=str(judge)[:500], asked_by=by)
    judge.save(update_fields=["cost_limit", "unpriced", "job"])
    queue.ask_for_work(judge.job.pk)
    return judge


@transaction.atomic
def stop(judge: Judge) -> None:
    """Have it stop after the pair it looks at. What it judged is kept; asking again goes on."""
    if judge.job is None:
        return
    waiting = Job.objects.filter(pk=judge.job.pk, status=JobStatus.QUEUED)
    if not waiting.update(status=JobStatus.STOPPED, result="Stopped before it began."):
        Job.objects.filter(pk=judge.job.pk, status__in=MOVING).update(stop_requested=True)
