"""Trials with how far they are, their judges, and which backbones may judge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from experiments.models import Backbone, Judge, Pair, PairwiseTrial, Vote
from experiments.pairwise import judging

SHOWN = 5
"""Pairwise trials on the Overview."""
BLIND = {
    "scripted": "The scripted scientist has no eyes for pictures: of exemplars it would guess. "
    "Ask a vision-language model.",
    "person": "A person judges on the page, signed in.",
}
"""Backbones that cannot judge, and why."""


def trials(user: User) -> QuerySet[Any]:
    """With `size`, the pairs of each; `mine`, those that this person has judged; `left`, those that they are offered;
    `votes`, of people."""
    last = Pair.objects.filter(trial=OuterRef("pk")).order_by("-position").values("position")[:1]
    own = Vote.objects.filter(judge__trial=OuterRef("pk"), judge__user=user).order_by()
    mine = own.values("judge").annotate(count=Count("pk")).values("count")
    offered = judging.offer(Pair.objects.filter(trial=OuterRef("pk")), user).order_by().values("trial")
    left = offered.annotate(count=Count("pk")).values("count")
    people = Vote.objects.filter(judge__trial=OuterRef("pk"), judge__user__isnull=False).order_by()
    votes = people.values("judge__trial").annotate(count=Count("pk")).values("count")
    counts = {"size": last, "mine": mine, "left": left, "votes": votes}
    rows = PairwiseTrial.objects.select_related("owner", "evaluation")
    return rows.annotate(**{name: Coalesce(Subquery(query), 0) for name, query in counts.items()})


def list_unfinished(user: User) -> list[Any]:
    """The newest open trials in which this person, who may judge, has something `left`."""
    return list(trials(user).filter(closed=None, left__gt=0)[:SHOWN])


def judges(trial: PairwiseTrial) -> QuerySet[Any]:
    """Each with how many pairs it has `done`."""
    rows: QuerySet[Judge] = trial.judges.select_related("user", "job")
    return rows.annotate(done=Count("votes")).order_by("pk")


@dataclass(frozen=True)
class JudgeBackbone:
    """A backbone with a model that may judge; `value` is what a form sends."""

    value: str
    label: str
    lacks: str
    unpriced: bool
    """Whether its price is not known."""


def judge_backbones() -> list[JudgeBackbone]:
    """Every backbone that sees, with each of its models."""
    rows = [row for row in Backbone.objects.all() if row.key not in BLIND]
    return [
        JudgeBackbone(
            f"{row.key}:{model}" if model else row.key,
            model or row.label,
            "" if row.available else row.remedy,
            model in row.unpriced,
        )
        for row in rows
        for model in (row.model_names or [""])
    ]
