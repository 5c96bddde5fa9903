"""A pair as one judge sees it: which label stands first, and what there is to see of the unit. Nothing here tells which
label is whose.

Which label of a pair stands first is drawn for each judge; a repeated pair stands the other way round.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from experiments.core.thumbnails import ImageUrls
from experiments.core.visibility import visible_to
from experiments.models import Answer, Exemplar, Pair, PairwiseTrial, Vote

FIRST, SECOND, NEITHER = "first", "second", "neither"
SHOWN = 10
"""Exemplars of a unit that a judge sees, the strongest."""


@dataclass(frozen=True)
class PairView:
    """A pair as one judge sees it; of each exemplar the addresses of the masked and the whole image."""

    pk: int
    first: str
    second: str
    truth: str
    exemplars: Sequence[tuple[ImageUrls, ImageUrls]]


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


def pending(trial: PairwiseTrial, user: User) -> QuerySet[Pair]:
    """What is offered to this person, in order: of a trial that wants so many votes of each pair, first what has the
    fewest."""
    rows = offer(visible_to(trial.pairs.all()), user)
    return rows.order_by("position") if trial.judges_wanted is None else rows.order_by("given", "position")


def count_own(trial: PairwiseTrial, user: User) -> int:
    """How many pairs this person has judged."""
    return Vote.objects.filter(judge__trial=trial, judge__user=user).count()


def count_full(trial: PairwiseTrial) -> int:
    """How many pairs have the people's votes that the trial wants; 0 where it wants no number."""
    wanted = trial.judges_wanted
    return count_votes(trial.pairs.all()).filter(given__gte=wanted).count() if wanted else 0


def next_pairs(trial: PairwiseTrial, user: User, count: int, held: Collection[int] = ()) -> list[PairView]:
    """The next pairs as this person sees them, but for those that their page holds already."""
    pairs = list(pending(trial, user).exclude(pk__in=held)[:count])
    images = exemplars_of(pair.profile_id for pair in pairs if pair.profile_id and not pair.truth)
    views = []
    for pair in pairs:
        swapped = is_swapped(trial, pair, key_of(user))
        texts = (pair.text_b, pair.text_a) if swapped else (pair.text_a, pair.text_b)
        shown = images.get(pair.profile_id or 0, [])
        pictures = [(ImageUrls.of(each.masked_id), ImageUrls.of(each.image_id)) for each in shown]
        views.append(PairView(pair.pk, *texts, truth=pair.truth, exemplars=pictures))
    return views


def exemplars_of(profiles: Iterable[int]) -> Mapping[int, list[Exemplar]]:
    """The exemplars of these profiles, in one query."""
    found: dict[int, list[Exemplar]] = {}
    for each in Exemplar.objects.filter(profile__in=set(profiles), rank__lte=SHOWN).order_by("profile", "rank"):
        found.setdefault(each.profile_id, []).append(each)
    return found
