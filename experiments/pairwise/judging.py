"""Judging: the next pairs, an answer, taking the last one back, closing. Nothing here tells which label is whose.

Which label of a pair stands first is drawn for each judge; a repeated pair stands the other way round.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, F, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from experiments.core import notify
from experiments.core.thumbnails import Addresses
from experiments.models import Exemplar, Judge, Pair, PairwiseTrial, Vote
from experiments.models.pairwise import Answer
from experiments.pairwise import evidence

FIRST, SECOND, NEITHER = "first", "second", "neither"
SAID = (FIRST, SECOND, NEITHER)
SHOWN = 5
"""Pairwise trials on the Overview."""
LONGEST_SECONDS = 3600.0
"""Above this somebody was away; nothing is kept."""


class Refused(Exception):
    """Raised when an answer cannot be taken; the message says why, and what became of it."""


@dataclass(frozen=True)
class Shown:
    """A pair as one judge sees it; of each exemplar the addresses of the masked and the whole image."""

    pk: int
    first: str
    second: str
    truth: str
    exemplars: Sequence[tuple[Addresses, Addresses]]


def key_of(user: User) -> str:
    """What the order of a person's pairs is drawn by."""
    return f"user {user.pk}"


def is_swapped(trial: PairwiseTrial, pair: Pair, key: str) -> bool:
    """Whether this judge sees `b` first. Of a repeated pair, the opposite of what its original showed."""
    drawn = hashlib.sha256(f"{trial.seed} {key} {pair.original_id or pair.pk}".encode()).digest()[0] % 2 == 1
    return drawn != bool(pair.original_id)


def pending(trial: PairwiseTrial, user: User) -> QuerySet[Pair]:
    """What this person has not judged yet, in order."""
    done = Vote.objects.filter(judge__trial=trial, judge__user=user).values("pair")
    return trial.pairs.exclude(pk__in=done).order_by("position")


def counted(trials: QuerySet[PairwiseTrial], user: User) -> QuerySet[Any]:
    """With `size`, the pairs of each, and `mine`, those that this person has judged."""
    last = Pair.objects.filter(trial=OuterRef("pk")).order_by("-position").values("position")[:1]
    own = Vote.objects.filter(judge__trial=OuterRef("pk"), judge__user=user).order_by()
    mine = own.values("judge").annotate(count=Count("pk")).values("count")
    return trials.annotate(size=Coalesce(Subquery(last), 0), mine=Coalesce(Subquery(mine), 0))


def unfinished(user: User) -> list[Any]:
    """The newest open trials in which this person, who may judge, has something `left`."""
    rows = counted(PairwiseTrial.objects.filter(closed=None), user).annotate(left=F("size") - F("mine"))
    return list(rows.filter(left__gt=0)[:SHOWN])


def next_shown(trial: PairwiseTrial, user: User, count: int, held: Collection[int] = ()) -> list[Shown]:
    """The next pairs as this person sees them, but for those that their page holds already."""
    pairs = list(pending(trial, user).exclude(pk__in=held)[:count])
    images = evidence.exemplars(pair.profile_id for pair in pairs if pair.profile_id and not pair.truth)
    return [shown(trial, pair, key_of(user), images.get(pair.profile_id or 0, [])) for pair in pairs]


def shown(trial: PairwiseTrial, pair: Pair, key: str, exemplars: Sequence[Exemplar]) -> Shown:
    texts = (pair.text_b, pair.text_a) if is_swapped(trial, pair, key) else (pair.text_a, pair.text_b)
    pictures = [(Addresses.of(each.masked_id), Addresses.of(each.image_id)) for each in exemplars]
    return Shown(pair.pk, *texts, truth=pair.truth, exemplars=pictures)


@transaction.atomic
def answer(user: User, trial_id: int, pair_id: int, said: str, seconds: float | None) -> tuple[Vote, bool]:
    """Keep what a person says of a pair; True with it if it is new. The same answer twice is one. Raises Refused."""
    if said not in SAID:
        raise Refused(f"“{said[:40]}” is no answer: choose the first label, the second, or that you cannot tell.")
    trial = open_trial(trial_id)
    pair = trial.pairs.filter(pk=pair_id).first()
    if pair is None:
        raise Refused("This pair is not of this trial.")
    judge, _ = Judge.objects.get_or_create(trial=trial, user=user)
    swapped = is_swapped(trial, pair, key_of(user))
    chosen = in_the_pair(said, swapped)
    known = {"answer": chosen, "swapped": swapped, "seconds": kept_seconds(seconds)}
    choice, new = Vote.objects.get_or_create(judge=judge, pair=pair, defaults=known)
    if choice.answer != chosen:
        raise Refused("You have judged this pair before, and that answer stands. Undo takes the last one back.")
    tell(trial.pk)
    return choice, new


def in_the_pair(said: str, swapped: bool) -> Answer:
    """Which of the pair the first or the second label on the screen is."""
    if said == NEITHER:
        return Answer.NEITHER
    return Answer.A if (said == FIRST) != swapped else Answer.B


def kept_seconds(seconds: float | None) -> float | None:
    plausible = seconds is not None and math.isfinite(seconds) and 0 <= seconds <= LONGEST_SECONDS
    return seconds if plausible else None


@transaction.atomic
def undo(user: User, trial_id: int) -> Vote | None:
    """Take the person's last answer back; None if there is none. Raises Refused."""
    trial = open_trial(trial_id)
    last = Vote.objects.filter(judge__trial=trial, judge__user=user).select_related("pair").last()
    if last is not None:
        Vote.objects.filter(pk=last.pk).delete()
        tell(trial.pk)
    return last


def open_trial(pk: int) -> PairwiseTrial:
    """The trial, locked, so that nobody closes it meanwhile. Raises Refused if somebody has."""
    trial = PairwiseTrial.objects.select_for_update().get(pk=pk)
    if trial.closed:
        raise Refused("This trial is closed: what is whose is known, so no answer can be taken any more.")
    return trial


@transaction.atomic
def close(trial_id: int) -> PairwiseTrial:
    """Say for good which label is whose. Raises Refused if it is closed already."""
    trial = open_trial(trial_id)
    trial.closed = timezone.now()
    trial.save(update_fields=["closed"])
    tell(trial.pk)
    return trial


def tell(trial_id: int) -> None:
    """Have the pages that show a trial look again, once the transaction is committed."""
    notify.tell(f"trial.{trial_id}")
