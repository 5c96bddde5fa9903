"""Lists of trials with their progress, of judges, and of backbones that may judge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.urls import reverse

from experiments.core.system_names import SystemNameMasker
from experiments.core.visibility import visible_to
from experiments.display.narrowing import (
    Condition,
    Narrowed,
    index_filters,
    narrow_down,
    offer_values,
    require_known,
    sort_rows,
)
from experiments.display.run_pictures import THUMBNAIL
from experiments.models import Backbone, Judge, Pair, PairwiseTrial, Vote
from experiments.pairwise import judging
from experiments.reviews import queue_lists
from experiments.reviews.queue_lists import NEWEST, OPEN, STATUSES, WAITING

SORTS: Mapping[str, Any] = {
    "created": F("created"),
    "name": F("name"),
    "size": F("size"),
    "votes": F("votes"),
    "owner": F("owner__username"),
    "closed": F("closed"),
}
"""Name in the query -> expression to sort by."""
_PLACE = ("unit__layer__model__name", "unit__layer__name", "unit__number")


def _list_pairs(names: SystemNameMasker) -> QuerySet[Pair]:
    """Return the pairs whose unit the viewer may know."""
    return Pair.objects.filter(unit__isnull=False).exclude(names.are_hidden_at(*_PLACE))


_OF_QUEUES = queue_lists.FILTERS
FILTERS = index_filters(
    _OF_QUEUES["q"],
    replace(_OF_QUEUES["status"], description="`waiting`: a pair is there for you"),
    replace(_OF_QUEUES["model"], choices=offer_values(_list_pairs, _PLACE[0])),
    replace(_OF_QUEUES["layer"], choices=offer_values(_list_pairs, _PLACE[1], _PLACE[0])),
    replace(_OF_QUEUES["owner"], choices=offer_values(lambda _: PairwiseTrial.objects.all(), "owner__username")),
)
"""By name in the address, as of review queues. Systems are those of the units whose labels are compared."""
PICTURES = 3
"""Pictures of a trial: the strongest exemplars of its first units."""
BLIND = {
    "scripted": "The scripted scientist has no eyes for pictures: of exemplars it would guess. "
    "Ask a vision-language model.",
    "person": "A person judges on the page, signed in.",
}
"""Backbones that cannot judge, and why."""


def trials(user: User) -> QuerySet[Any]:
    """Return trials with counts.

    `size` is the number of pairs, `mine` those that this person has judged, `left` those offered to them, `votes`
    the votes of people.
    """
    # Positions have no gaps: the last one is the number of pairs
    last = Pair.objects.filter(trial=OuterRef("pk")).order_by("-position").values("position")[:1]
    own = Vote.objects.filter(judge__trial=OuterRef("pk"), judge__user=user).order_by()
    mine = own.values("judge").annotate(count=Count("pk")).values("count")
    offered = judging.offer(visible_to(Pair.objects.filter(trial=OuterRef("pk"))), user).order_by().values("trial")
    left = offered.annotate(count=Count("pk")).values("count")
    people = Vote.objects.filter(judge__trial=OuterRef("pk"), judge__user__isnull=False).order_by()
    votes = people.values("judge__trial").annotate(count=Count("pk")).values("count")
    counts = {"size": last, "mine": mine, "left": left, "votes": votes}
    rows = PairwiseTrial.objects.select_related("owner", "evaluation")
    return rows.annotate(**{name: Coalesce(Subquery(query), 0) for name, query in counts.items()})


def trials_from(params: Mapping[str, str], user: User) -> Narrowed:
    """Return the trials that a query selects, counted as by `trials`.

    A filter by system does not match systems that are hidden from this person.
    """
    told = ~SystemNameMasker(user).are_hidden_at(*_PLACE)
    instead: dict[str, Condition] = {
        "status": _by_status,
        "model": lambda text: _holds(Q(unit__layer__model__name=text) & told),
        "layer": lambda text: _holds(Q(unit__layer__name=text) & told),
    }
    found = narrow_down(trials(user), params, FILTERS, instead)
    return sort_rows(found, params.get("sort", ""), SORTS, NEWEST)


def _by_status(text: str) -> Q:
    status = require_known("status", text, STATUSES)
    return Q(closed=None, left__gt=0) if status == WAITING else Q(closed__isnull=status == OPEN)


def _holds(condition: Q) -> Q:
    return Q(Exists(Pair.objects.filter(condition, trial=OuterRef("pk")).order_by()))


@dataclass
class TrialContents:
    """Pictures of a trial's first units, and the layers of its units, as far as the viewer may know them."""

    pictures: list[UnitPicture] = field(default_factory=list)
    places: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class UnitPicture:
    """The strongest exemplar of a unit: URL of its thumbnail, and its description."""

    url: str
    words: str = "an exemplar"


def read_contents(rows: Iterable[PairwiseTrial], user: User) -> Mapping[int, TrialContents]:
    """Return the contents by key of the trial. The number of queries is constant."""
    found = {row.pk: TrialContents() for row in rows}
    pairs = Pair.objects.filter(trial__in=list(found)).order_by("trial", "position")
    first = pairs.filter(position__lte=PICTURES, profile__isnull=False, truth="").values_list("trial", "profile")
    known = list(first)
    images = judging.exemplars_of(profile for _, profile in known)
    for trial, profile in known:
        # A slice, since a profile may have lost its exemplars.
        for each in images.get(profile, [])[:1]:
            found[trial].pictures.append(UnitPicture(reverse("thumbnail", args=[each.image_id, THUMBNAIL])))
    told = _list_pairs(SystemNameMasker(user)).filter(trial__in=list(found)).order_by("trial")
    for trial, model, layer in told.values_list("trial", *_PLACE[:2]).distinct():
        found[trial].places.append(f"{model} / {layer}")
    return found


def judges(trial: PairwiseTrial) -> QuerySet[Any]:
    """Return the judges of a trial, each with its number of votes (`done`)."""
    rows: QuerySet[Judge] = trial.judges.select_related("user", "job")
    return rows.annotate(done=Count("votes")).order_by("pk")


@dataclass(frozen=True)
class JudgeBackbone:
    """A backbone with a model that may judge. `value` is what a form sends."""

    value: str
    label: str
    lacks: str
    unpriced: bool
    """True if its price is unknown."""


def judge_backbones() -> list[JudgeBackbone]:
    """Return every backbone that accepts images, with each of its models."""
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
