"""Tags of runs, of experiments and of the images that they logged."""

from __future__ import annotations

from typing import Annotated, Any

from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Field
from pydantic import StringConstraints

from experiments.api.entry import allow
from experiments.api.fields import NO_NUL, Body, Id, Number, find
from experiments.api.versions import must_match
from experiments.core import tagging
from experiments.core.actors import Actor
from experiments.models import Experiment, Observation, Run
from experiments.models.api_token import TokenScope
from experiments.models.member import Role
from experiments.models.tag import TAG_CHARS
from experiments.runs.api import router

Tag = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=TAG_CHARS, pattern=NO_NUL)]


class Tags(Body):
    """Short words by which a team finds something again."""

    tags: list[Tag] = Field(max_length=50)


def tags_of(row: tagging.Tagged) -> Tags:
    return Tags(tags=sorted(tag.name for tag in row.tags.all()))


def replace(request: HttpRequest, rows: QuerySet[Any], wanted: Tags, **which: Any) -> Tags:
    """Have the row that there is these tags, if its editor knows those it has."""
    with transaction.atomic():
        row = find(rows.select_for_update(), **which)
        must_match(request, tags_of(row))
        tagging.set_tags(Actor.of(request, Role.RESEARCHER), row, wanted.tags)
    return tags_of(row)


@router.get("/runs/{pk}/tags", response=Tags, summary="Read the tags of a run")
def read_tags(request: HttpRequest, pk: Id) -> Tags:
    allow(request)
    return tags_of(find(Run.objects.all(), pk=pk))


@router.put("/runs/{pk}/tags", response=Tags, summary="Set the tags of a run")
def set_tags(request: HttpRequest, pk: Id, wanted: Tags) -> Tags:
    """All of them. Needs the ETag of the tags in If-Match, so that no edit of somebody else is lost."""
    allow(request, Role.RESEARCHER, TokenScope.WRITE)
    return replace(request, Run.objects.all(), wanted, pk=pk)


@router.get("/runs/{pk}/experiments/{number}/tags", response=Tags, summary="Read the tags of an experiment")
def read_experiment_tags(request: HttpRequest, pk: Id, number: Number) -> Tags:
    allow(request)
    return tags_of(find(Experiment.objects.all(), run=pk, number=number))


@router.put("/runs/{pk}/experiments/{number}/tags", response=Tags, summary="Set the tags of an experiment")
def set_experiment_tags(request: HttpRequest, pk: Id, number: Number, wanted: Tags) -> Tags:
    """All of them. Needs the ETag of the tags in If-Match."""
    allow(request, Role.RESEARCHER, TokenScope.WRITE)
    return replace(request, Experiment.objects.all(), wanted, run=pk, number=number)


@router.get("/observations/{pk}/tags", response=Tags, summary="Read the tags of an image that a run logged")
def read_observation_tags(request: HttpRequest, pk: Id) -> Tags:
    allow(request)
    return tags_of(find(Observation.objects.all(), pk=pk))


@router.put("/observations/{pk}/tags", response=Tags, summary="Set the tags of an image that a run logged")
def set_observation_tags(request: HttpRequest, pk: Id, wanted: Tags) -> Tags:
    """All of them. Needs the ETag of the tags in If-Match."""
    allow(request, Role.RESEARCHER, TokenScope.WRITE)
    return replace(request, Observation.objects.all(), wanted, pk=pk)
