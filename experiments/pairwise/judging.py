"""Which label of a pair stands first for a judge, which pairs are offered, and what there is to see of their units.

Which label of a pair stands first is drawn for each judge; a repeated pair stands the other way round.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from experiments.models import Answer, Exemplar, Pair, PairwiseTrial, Vote

FIRST, SECOND, NEITHER = "first", "second", "neither"
MAX_EXEMPLARS = 10
"""Exemplars of a unit that a judge sees, the strongest."""


def key_of(user: User) -> str:
    """What the order of a person's pairs is drawn by."""
    return f"user {user.pk}"


def is_swapped(trial: PairwiseTrial, pair: Pair, key: str) -> bool:
    """Whether this judge sees `b` first. Of a repeated pair, the opposite of what its original showed."""
    drawn = hashlib.sha256(f"{trial.seed} {key} {pair.original_id or pair.pk}".encode()).digest()[0] % 2 == 1
    return drawn != bool(pair.original_id)


def answer_of(said: str, swapped: bool) -> Answer:
    """Which of the pair the first or the second label on the screen is."""
    if said == NEITHER:
        return Answer.NEITHER
    return Answer.A if (said == FIRST) != swapped else Answer.B


def count_votes(pairs: QuerySet[Pair]) -> QuerySet[Any]:
    """Pairs, to be filtered by `given`: how many people have judged each."""
    people = Vote.objects.filter(pair=OuterRef("pk"), judge__user__isnull=False).order_by().values("pair")
    return pairs.alias(given=Coalesce(Subquery(people.annotate(count=Count("pk")).values("count")), 0))


def offer(pairs: QuerySet[Pair], user: User) -> QuerySet[Any]:
    """Those of the pairs that this person has not judged, and that do not have the votes yet that their trial wants."""
    own = Vote.objects.filter(pair=OuterRef("pk"), judge__user=user)
    open_ended, short = Q(trial__judges_wanted=None), Q(given__lt=F("trial__judges_wanted"))
    return count_votes(pairs).filter(~Exists(own), open_ended | short)


def count_full(trial: PairwiseTrial) -> int:
    """How many pairs have the people's votes that the trial wants; 0 where it wants no number."""
    wanted = trial.judges_wanted
    return count_votes(trial.pairs.all()).filter(given__gte=wanted).count() if wanted else 0


def exemplars_of(profiles: Iterable[int]) -> Mapping[int, list[Exemplar]]:
    """The exemplars of these profiles, in one query."""
    found: dict[int, list[Exemplar]] = {}
    for each in Exemplar.objects.filter(profile__in=set(profiles), rank__lte=MAX_EXEMPLARS).order_by("profile", "rank"):
        found.setdefault(each.profile_id, []).append(each)
    return found
