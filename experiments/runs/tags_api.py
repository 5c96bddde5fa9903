"""Tags of runs and of experiments."""

from __future__ import annotations

from typing import Annotated

from django.db import transaction
from django.http import HttpRequest
from ninja import Field
from pydantic import StringConstraints

from experiments.api.entry import allow
from experiments.api.fields import NO_NUL, Body, Id, Number, find
from experiments.api.versions import must_match
from experiments.core import tagging
from experiments.models import Experiment, Run
from experiments.models.api_token import Scope
from experiments.models.member import Role
from experiments.models.tag import TAG_CHARS
from experiments.runs import bulk
from experiments.runs.api import router

Tag = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=TAG_CHARS, pattern=NO_NUL)]


class Tags(Body):
    """Short words by which a team finds something again."""

    tags: list[Tag] = Field(max_length=50)


def tags_of(row: Run | Experiment) -> Tags:
    return Tags(tags=sorted(tag.name for tag in row.tags.all()))


@router.get("/runs/{pk}/tags", response=Tags, summary="Read the tags of a run")
def read_tags(request: HttpRequest, pk: Id) -> Tags:
    allow(request)
    return tags_of(find(Run.objects.all(), pk=pk))


@router.put("/runs/{pk}/tags", response=Tags, summary="Set the tags of a run")
def set_tags(request: HttpRequest, pk: Id, wanted: Tags) -> Tags:
    """All of them. Needs the ETag of the tags in If-Match, so that no edit of somebody else is lost."""
    allow(request, Role.RESEARCHER, Scope.WRITE)
    with transaction.atomic():
        run = find(Run.objects.select_for_update(), pk=pk)
        before = tags_of(run)
        must_match(request, before)
        for name in set(before.tags) - set(wanted.tags):
            bulk.untag(request, run, name)
        for name in set(wanted.tags) - set(before.tags):
            bulk.tag(request, run, name)
    return tags_of(run)


@router.get("/runs/{pk}/experiments/{number}/tags", response=Tags, summary="Read the tags of an experiment")
def read_experiment_tags(request: HttpRequest, pk: Id, number: Number) -> Tags:
    allow(request)
    return tags_of(find(Experiment.objects.all(), run=pk, number=number))


@router.put("/runs/{pk}/experiments/{number}/tags", response=Tags, summary="Set the tags of an experiment")
def set_experiment_tags(request: HttpRequest, pk: Id, number: Number, wanted: Tags) -> Tags:
    """All of them. Needs the ETag of the tags in If-Match."""
    allow(request, Role.RESEARCHER, Scope.WRITE)
    with transaction.atomic():
        row = find(Experiment.objects.select_for_update(), run=pk, number=number)
        before = tags_of(row)
        must_match(request, before)
        for name in set(before.tags) ^ set(wanted.tags):
            tagging.change(request, row, name, remove=name in before.tags)
    return tags_of(row)
