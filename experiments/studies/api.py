"""Studies: chosen units and runs with a title, a text and captions; list, read, create, change, delete."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Field, Query, Router, Schema, Status

from experiments.api.auth import authorize
from experiments.api.cursors import ListPage, Paging, page
from experiments.api.fields import NO_NUL, Body, Id, Name, RowNumber, UnitNumber, UserName, find
from experiments.api.filters import read_filters, with_filters
from experiments.api.idempotency import answer_once
from experiments.api.versions import must_match
from experiments.core.actors import Actor
from experiments.core.errors import InvalidInput
from experiments.core.system_names import SystemNameMasker
from experiments.core.visibility import visible_to
from experiments.models import Layer, Run, Study, StudyItem, TokenScope
from experiments.studies import actions, lists
from experiments.studies.drafts import ItemDraft

router = Router(tags=["Studies"])
Typed = Annotated[str, Field(max_length=100_000, pattern=NO_NUL)]
"""A text whose length the action checks, with a message that names the maximum."""


class StudyItemIn(Body):
    """A run, or a unit by model, layer and number."""

    run: RowNumber | None = None
    model: Name | None = None
    layer: Name | None = None
    unit: UnitNumber | None = None
    caption: Typed = Field("", description="Markdown without HTML, links or images")


class StudyIn(Body):
    title: Typed
    text: Typed = Field("", description="Markdown without HTML, links or images")
    items: list[StudyItemIn] = Field(default_factory=list)


class StudyChange(Body):
    """Fields that are left out stay unchanged."""

    title: Typed | None = None
    text: Typed | None = None
    items: list[StudyItemIn] | None = Field(None, description="in place of all items")


class StudyItemsIn(Body):
    items: list[StudyItemIn]


class StudyItemOut(Schema):
    """A run, or a unit, which keeps its name when it is deleted."""

    id: int
    run: int | None
    model: str
    layer: str
    unit: int | None
    caption: str
    is_here: bool = Field(description="false if the unit, layer or model was deleted")


class StudyOut(Schema):
    """A study in a list; read it for its items."""

    id: int
    title: str
    text: str
    owner: UserName
    created: datetime
    updated: datetime
    size: int = Field(description="items")


class StudyDetail(StudyOut):
    items: list[StudyItemOut] = Field(description="in their order; without those that are hidden from you")


@with_filters(lists.FILTERS)
class StudyFilters(Schema):
    """The filters of the page Studies."""


def _study_out(row: Study) -> StudyOut:
    return StudyOut(**_describe_row(row))


def _describe_row(row: Study) -> dict[str, Any]:
    names = ("title", "text", "owner", "created", "updated")
    # Not the annotated size, which rows from the actions lack.
    return {"id": row.pk, "size": row.items.count()} | {name: getattr(row, name) for name in names}


def _study_detail(row: Study, names: SystemNameMasker) -> StudyDetail:
    return StudyDetail(**_describe_row(row), items=[_item_out(each) for each in lists.list_items(row, names)])


def _item_out(item: StudyItem) -> StudyItemOut:
    return StudyItemOut(
        id=item.pk,
        run=item.run_id,
        model=item.model,
        layer=item.layer,
        unit=item.number,
        caption=item.caption,
        is_here=bool(item.run_id or item.place),
    )


def _draft(items: Sequence[StudyItemIn]) -> list[ItemDraft]:
    """Return the items as drafts, in a constant number of queries. Raises InvalidInput for missing ones."""
    # A hidden run is answered like a missing one.
    runs = visible_to(Run.objects.filter(pk__in=[each.run for each in items if each.run])).in_bulk()
    models, layers = {each.model for each in items}, {each.layer for each in items}
    rows = Layer.objects.select_related("model").filter(model__name__in=models, name__in=layers)
    known = {(row.model.name, row.name): row for row in rows}
    return [_draft_item(each, runs, known) for each in items]


def _draft_item(item: StudyItemIn, runs: dict[int, Run], layers: dict[tuple[str, str], Layer]) -> ItemDraft:
    place = (item.model, item.layer, item.unit)
    # A run, and nothing else.
    if item.run is not None and place == (None, None, None):
        if item.run not in runs:
            raise InvalidInput(f"There is no run {item.run}.", "items")
        return ItemDraft(run=runs[item.run], caption=item.caption)
    # Both a run and a unit, or only half of a unit's place.
    if item.run is not None or item.model is None or item.layer is None or item.unit is None:
        raise InvalidInput("An item is a run, or a unit by model, layer and unit.", "items")
    layer = layers.get((item.model, item.layer))
    if layer is None:
        raise InvalidInput(f"There is no layer {item.layer} of {item.model} here. List the models.", "items")
    if item.unit >= layer.units:
        words = f"{layer.name} of {layer.model.name} has no unit {item.unit:,}: its units are 0 to {layer.units - 1:,}."
        raise InvalidInput(words, "items")
    return ItemDraft(place=(layer, item.unit), caption=item.caption)


@router.get("/studies", response=ListPage[StudyOut], summary="List studies")
def list_studies(request: HttpRequest, filters: Query[StudyFilters], paging: Query[Paging]) -> ListPage[StudyOut]:
    """Newest first. `POST /exports` with `study` writes one as a folder."""
    authorize(request)
    rows = lists.studies_from(read_filters(filters)).require_sense()
    return page(request, rows, ["-pk"], paging, _study_out)


@router.get("/studies/{pk}", response=StudyDetail, summary="Read a study")
def read_study(request: HttpRequest, pk: Id) -> StudyDetail:
    """Read a study with its items in order."""
    names = SystemNameMasker(authorize(request))
    return _study_detail(find(lists.list_studies(), pk=pk), names)


@router.post("/studies", response={201: StudyDetail}, summary="Create a study")
def create_study(request: HttpRequest, study: StudyIn, response: HttpResponse) -> Status[dict[str, Any]]:
    """Create a study of at most 200 units and runs."""
    user = authorize(request, actions.CHANGES, TokenScope.WRITE)

    def make() -> tuple[StudyDetail, str]:
        actor = Actor.behind(request, user)
        row = actions.create_study(actor, study.title, _draft(study.items), study.text)
        return _study_detail(row, SystemNameMasker(user)), reverse("api:read_study", args=[row.pk])

    return Status(201, answer_once(request, response, user, make))


@router.patch("/studies/{pk}", response=StudyDetail, summary="Change a study")
def change_study(request: HttpRequest, pk: Id, changed: StudyChange) -> StudyDetail:
    """Change your own study; admins may change any. Needs its ETag in If-Match, so that no other change is lost."""
    actor = Actor.behind(request, authorize(request, actions.CHANGES, TokenScope.WRITE))
    names = SystemNameMasker(actor.user)
    with transaction.atomic():
        _lock_as_read(request, actor, pk, names)
        drafts = None if changed.items is None else _draft(changed.items)
        row = actions.change_study(actor, pk, changed.title, changed.text, drafts)
    return _study_detail(row, names)


@router.post("/studies/{pk}/items", response=StudyDetail, summary="Add items to a study")
def add_study_items(request: HttpRequest, pk: Id, added: StudyItemsIn) -> StudyDetail:
    """Add items at the end; those that it already has stay as they are."""
    actor = Actor.behind(request, authorize(request, actions.CHANGES, TokenScope.WRITE))
    row = find(lists.list_studies(), pk=pk)
    actions.add_items(actor, pk, _draft(added.items))
    # The action changed its own copy of the row.
    row.refresh_from_db()
    return _study_detail(row, SystemNameMasker(actor.user))


@router.delete("/studies/{pk}/items/{number}", response={204: None}, summary="Remove an item of a study")
def remove_study_item(request: HttpRequest, pk: Id, number: Id) -> Status[None]:
    """Remove an item by its `id`. Its unit or run stays."""
    actor = Actor.behind(request, authorize(request, actions.CHANGES, TokenScope.WRITE))
    row = find(Study.objects.all(), pk=pk)
    find(row.items.all(), pk=number)
    actions.remove_items(actor, pk, [number])
    return Status(204, None)


@router.delete("/studies/{pk}", response={204: None}, summary="Delete a study")
def delete_study(request: HttpRequest, pk: Id) -> Status[None]:
    """Delete your own study; admins may delete any. Its units and runs stay. Needs its ETag too."""
    actor = Actor.behind(request, authorize(request, actions.CHANGES, TokenScope.WRITE))
    with transaction.atomic():
        _lock_as_read(request, actor, pk, SystemNameMasker(actor.user))
        actions.delete_study(actor, pk)
    return Status(204, None)


def _lock_as_read(request: HttpRequest, actor: Actor, pk: int, names: SystemNameMasker) -> None:
    """Raise Refusal if the study has changed since the client read it, PermissionDenied for another person's."""
    find(Study.objects.all(), pk=pk)
    # The ETag is that of the whole answer, which is built again under the lock.
    must_match(request, _study_detail(actions.lock_study(actor, pk), names))
