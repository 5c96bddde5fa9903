"""Tags on runs, experiments and images: one name stands for the same on all of them, and goes with its last use."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest

from experiments.core import audit
from experiments.core.audit import Verb
from experiments.core.params import clean_line
from experiments.models import Experiment, Observation, Run, Tag
from experiments.models.tag import TAG_CHARS

Tagged = Run | Experiment | Observation


class Unfit(ValueError):
    """Raised for words that cannot be a tag; the message says why."""


def fit(words: str) -> str:
    """The words as a tag is kept. Raises Unfit."""
    name = clean_line(words)
    if not name:
        raise Unfit("Write the tag first.")
    if len(name) > TAG_CHARS:
        raise Unfit(f"A tag has at most {TAG_CHARS} characters; this one has {len(name)}.")
    return name


@transaction.atomic
def put(row: Tagged, words: str) -> str:
    """Tag it; the tag as it is kept. Raises Unfit."""
    name = fit(words)
    row.tags.add(Tag.objects.get_or_create(name=name)[0])
    return name


@transaction.atomic
def take(row: Tagged, name: str) -> bool:
    """Take a tag off; False if it has no such tag. A tag that nothing has any more is gone."""
    found = row.tags.filter(name=name).first()
    if found is None:
        return False
    row.tags.remove(found)
    if not (found.runs.exists() or found.experiments.exists() or found.observations.exists()):
        found.delete()
    return True


def images(name: str) -> Q:
    """Observations with this tag, or whose experiment or run has it."""
    found = Tag.objects.filter(name=name).order_by()
    return (
        Q(pk__in=found.values("observations"))
        | Q(experiment__in=found.values("experiments"))
        | Q(run__in=found.values("runs"))
    )


def programs(name: str) -> Q:
    """Experiments with this tag, or whose run has it, or that logged an image with it."""
    found = Tag.objects.filter(name=name).order_by()
    logged = Observation.objects.filter(tags__name=name).order_by().values("experiment")
    return Q(pk__in=found.values("experiments")) | Q(run__in=found.values("runs")) | Q(pk__in=logged)


@transaction.atomic
def change(request: HttpRequest, row: Tagged, words: str, remove: bool) -> None:
    """Raises Unfit."""
    noun = row._meta.verbose_name
    if not remove:
        name = put(row, words)
        audit.record(request, Verb(f"{noun}.tagged"), row, tag=name)
    elif take(row, words):
        audit.record(request, Verb(f"{noun}.untagged"), row, tag=words)
