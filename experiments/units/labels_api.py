"""Labels of units: those of runs, imports and baselines to read; those of people to write."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Field, Query, Router, Schema, Status
from pydantic import StringConstraints

from experiments.api.cursors import Page, Paging, page
from experiments.api.entry import allow
from experiments.api.fields import NO_NUL, Body, Id, RowNumber, UnitNumber, Words, find
from experiments.api.once import once
from experiments.api.problems import Refusal
from experiments.api.versions import must_match
from experiments.core import audit
from experiments.core.audit import Verb
from experiments.core.search_index import texts
from experiments.core.system_names import Names
from experiments.models import Label, SearchText, Unit
from experiments.models.api_token import Scope
from experiments.models.member import Role
from experiments.models.search_text import Kind
from experiments.units.api import within

router = Router(tags=["Labels"])

LONGEST = 500
PERSON = "person"
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST, pattern=NO_NUL)]


class UnitPlace(Body):
    """A unit, by its layer and number."""

    layer_id: RowNumber
    number: UnitNumber


class LabelText(Body):
    text: Text


class LabelIn(LabelText):
    """What a person says of one or several units."""

    units: list[UnitPlace] = Field(min_length=1, max_length=100)


class LabelOut(Schema):
    """A short text that says what units respond to, and who says so."""

    id: int
    text: str
    source: str
    run: int | None
    scores: dict[str, Any]
    units: list[UnitPlace] = Field(description="none while you are to judge a run on them unseen")


class LabelFilters(Schema):
    model: Words | None = None
    layer: Words | None = None
    unit: UnitNumber | None = None
    source: Words | None = None
    run: RowNumber | None = None
    q: Words | None = Field(None, description="words of the label")


LABELS = Label.objects.select_related("run").prefetch_related("units")


def label_out(row: Label, names: Names | None = None) -> LabelOut:
    is_hidden = bool(names and row.run and names.hides(row.run))
    places = [] if is_hidden else sorted((unit.layer_id, unit.number) for unit in row.units.all())
    return LabelOut(
        id=row.pk,
        text=row.text,
        source=row.source,
        run=row.run_id,
        scores=row.scores,
        units=[UnitPlace(layer_id=layer, number=number) for layer, number in places],
    )


@router.get("/labels", response=Page[LabelOut], summary="List labels")
def list_labels(request: HttpRequest, filters: Query[LabelFilters], paging: Query[Paging]) -> Page[LabelOut]:
    """The newest first."""
    names = Names(allow(request))
    return page(request, matching(filters, names), ["-pk"], paging, partial(label_out, names=names))


def matching(filters: LabelFilters, names: Names) -> QuerySet[Label]:
    rows = LABELS.all()
    of_units = {"model": "layer__model__name", "layer": "layer__name", "unit": "number"}
    given = filters.model_dump(exclude_none=True)
    units = {field: given[name] for name, field in of_units.items() if name in given}
    if units:
        rows = rows.filter(pk__in=Unit.objects.filter(**units).values("labels")).exclude(names.are_hidden("run__"))
    rows = rows.filter(**{name: given[name] for name in ("source", "run") if name in given})
    return rows.filter(text__icontains=filters.q) if filters.q else rows


@router.get("/labels/{pk}", response=LabelOut, summary="Read a label")
def read_label(request: HttpRequest, pk: Id) -> LabelOut:
    names = Names(allow(request))
    return label_out(find(LABELS.all(), pk=pk), names)


@router.post("/labels", response={201: LabelOut}, summary="Create a label")
def create_label(request: HttpRequest, label: LabelIn, response: HttpResponse) -> Status[dict[str, Any]]:
    """A person's label stands beside those of runs and imports."""
    user = allow(request, Role.RESEARCHER, Scope.WRITE)
    return Status(201, once(request, response, user, lambda: created(request, label)))


@transaction.atomic
def created(request: HttpRequest, label: LabelIn) -> tuple[LabelOut, str]:
    row = Label.objects.create(text=label.text, source=PERSON)
    units = [unit_at(place) for place in label.units]
    row.units.set(units)
    texts.keep_label(row, units)
    audit.record(request, Verb.LABEL_CREATED, row)
    return label_out(find(LABELS.all(), pk=row.pk)), reverse("api:read_label", args=[row.pk])


def unit_at(place: UnitPlace) -> Unit:
    unit, _ = Unit.objects.get_or_create(layer=within(place.layer_id, place.number), number=place.number)
    return unit


@router.patch("/labels/{pk}", response=LabelOut, summary="Edit a label")
def edit_label(request: HttpRequest, pk: Id, changed: LabelText) -> LabelOut:
    """Needs the ETag of the label in If-Match, so that no edit of somebody else is lost."""
    allow(request, Role.RESEARCHER, Scope.WRITE)
    with transaction.atomic():
        row = held(request, pk)
        audit.record(request, Verb.LABEL_EDITED, row, text=changed.text)
        row.text = changed.text
        row.save(update_fields=["text"])
        forget(row)
        texts.keep_label(row, row.units.select_related("layer__model"))
    return label_out(find(LABELS.all(), pk=pk))


@router.delete("/labels/{pk}", response={204: None}, summary="Delete a label")
def delete_label(request: HttpRequest, pk: Id) -> Status[None]:
    """Needs its ETag too."""
    allow(request, Role.RESEARCHER, Scope.WRITE)
    with transaction.atomic():
        row = held(request, pk)
        forget(row)
        audit.record(request, Verb.LABEL_DELETED, row)
        row.delete()
    return Status(204, None)


def held(request: HttpRequest, pk: int) -> Label:
    """A person's label, locked, as its editor knows it. Raises Refusal."""
    row = find(Label.objects.select_for_update(), pk=pk)
    if row.source != PERSON:
        raise Refusal("conflict", f"Label {pk} comes from a {row.source}: only labels of people are edited.")
    must_match(request, label_out(row))
    return row


def forget(row: Label) -> None:
    """Its words are not found any more."""
    SearchText.objects.filter(kind=Kind.LABEL, run=None, anchor=row.pk).delete()
