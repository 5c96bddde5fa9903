"""Add and remove tags of runs, experiments and images. A name is the same tag on all of them, and is deleted with
its last use."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction
from django.db.models import Q

from experiments.core import audit
from experiments.core.actors import Actor
from experiments.core.audit import Verb
from experiments.core.errors import InvalidInput
from experiments.core.params import clean_line
from experiments.models import Experiment, Observation, Run, Tag
from experiments.models.tag import TAG_CHARS

Tagged = Run | Experiment | Observation


def clean_tag(words: str) -> str:
    """Return the words in the form that is stored. Raises InvalidInput."""
    name = clean_line(words)
    if not name:
        raise InvalidInput("Write the tag first.", "tag")
    if len(name) > TAG_CHARS:
        raise InvalidInput(f"A tag has at most {TAG_CHARS} characters; this one has {len(name)}.", "tag")
    return name


@transaction.atomic
def tag(actor: Actor, row: Tagged, words: str) -> str:
    """Add a tag and return it as stored. Raises InvalidInput for words that cannot be a tag."""
    name = clean_tag(words)
    # Adding a tag that the row has changes nothing.
    row.tags.add(Tag.objects.get_or_create(name=name)[0])
    audit.record(actor, Verb(f"{row._meta.verbose_name}.tagged"), row, tag=name)
    return name


@transaction.atomic
def untag(actor: Actor, row: Tagged, name: str) -> bool:
    """Remove a tag; return False if the row has no such tag. A tag without uses is deleted."""
    found = row.tags.filter(name=name).first()
    if found is None:
        return False
    row.tags.remove(found)
    if not (found.runs.exists() or found.experiments.exists() or found.observations.exists()):
        found.delete()
    audit.record(actor, Verb(f"{row._meta.verbose_name}.untagged"), row, tag=name)
    return True


def set_tags(actor: Actor, row: Tagged, wanted: Iterable[str]) -> None:
    """Set the tags of a row to exactly these. The row must be locked. Raises InvalidInput."""
    before, after = set(row.tags.values_list("name", flat=True)), {clean_tag(words) for words in wanted}
    # Sorted, so that the audit has the same order for the same request.
    for name in sorted(before - after):
        untag(actor, row, name)
    for name in sorted(after - before):
        tag(actor, row, name)


def images(name: str) -> Q:
    """Return a filter for observations with this tag, or whose experiment or run has it."""
    found = Tag.objects.filter(name=name).order_by()
    return (
        Q(pk__in=found.values("observations"))
        | Q(experiment__in=found.values("experiments"))
        | Q(run__in=found.values("runs"))
    )


def programs(name: str) -> Q:
    """Return a filter for experiments with this tag, whose run has it, or that logged an image with it."""
    found = Tag.objects.filter(name=name).order_by()
    logged = Observation.objects.filter(tags__name=name).order_by().values("experiment")
    return Q(pk__in=found.values("experiments")) | Q(run__in=found.values("runs")) | Q(pk__in=logged)
