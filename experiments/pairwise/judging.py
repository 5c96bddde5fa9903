"""Choose the pairs to offer, the order of the two labels, and the exemplars to show.

The order of the labels is drawn for each judge. A repeated pair has the opposite order.
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
"""Exemplars of a unit that a judge sees, strongest first."""


def key_of(user: User) -> str:
    """Return the key from which the order of a person's labels is drawn."""
    return f"user {user.pk}"


def is_swapped(trial: PairwiseTrial, pair: Pair, key: str) -> bool:
    """True if this judge sees `b` first. A repeated pair is the opposite of its original."""
    # Drawn by a hash, so that the same judge gets the same order again
    drawn = hashlib.sha256(f"{trial.seed} {key} {pair.original_id or pair.pk}".encode()).digest()[0] % 2 == 1
    # A repetition draws by the key of its original, and is then turned round.
    return drawn != bool(pair.original_id)


def answer_of(said: str, swapped: bool) -> Answer:
    """Translate first or second on the screen to label a or b of the pair."""
    if said == NEITHER:
        return Answer.NEITHER
    # Unequal means: first and not swapped, or second and swapped.
    return Answer.A if (said == FIRST) != swapped else Answer.B


def count_votes(pairs: QuerySet[Pair]) -> QuerySet[Any]:
    """Annotate the pairs with `given`, the number of people who have judged each."""
    people = Vote.objects.filter(pair=OuterRef("pk"), judge__user__isnull=False).order_by().values("pair")
    return pairs.alias(given=Coalesce(Subquery(people.annotate(count=Count("pk")).values("count")), 0))


def offer(pairs: QuerySet[Pair], user: User) -> QuerySet[Any]:
    """Return the pairs that this person has not judged and that still need votes."""
    own = Vote.objects.filter(pair=OuterRef("pk"), judge__user=user)
    open_ended, short = Q(trial__judges_wanted=None), Q(given__lt=F("trial__judges_wanted"))
    return count_votes(pairs).filter(~Exists(own), open_ended | short)


def count_full(trial: PairwiseTrial) -> int:
    """Count the pairs that have as many votes of people as the trial wants; 0 if it wants no number."""
    wanted = trial.judges_wanted
    return count_votes(trial.pairs.all()).filter(given__gte=wanted).count() if wanted else 0


def exemplars_of(profiles: Iterable[int]) -> Mapping[int, list[Exemplar]]:
    """Return the exemplars of these profiles. One query."""
    found: dict[int, list[Exemplar]] = {}
    for each in Exemplar.objects.filter(profile__in=set(profiles), rank__lte=MAX_EXEMPLARS).order_by("profile", "rank"):
        found.setdefault(each.profile_id, []).append(each)
    return found
