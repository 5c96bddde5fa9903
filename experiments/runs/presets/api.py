"""Presets: settings of a new run under a name; one's own to write, the team's to read too."""

from __future__ import annotations

from typing import Annotated, Any

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Field, Query, Router, Status
from pydantic import StringConstraints

from experiments.api.auth import authorize
from experiments.api.cursors import ListPage, Paging, page
from experiments.api.fields import NO_NUL, Body, Id, OwnName, RowOut, UserName, find
from experiments.api.idempotency import answer_once
from experiments.api.versions import lock_as_read
from experiments.core.actors import Actor
from experiments.models import Preset, Role, TokenScope
from experiments.runs.presets import actions

router = Router(tags=["Presets"])

Setting = Annotated[str, StringConstraints(max_length=500, pattern=NO_NUL)]


class PresetIn(Body):
    """Settings as the form New run sends them, and a name for them."""

    name: OwnName = Field(examples=["Layer 4, scripted"])
    settings: dict[str, Setting] = Field(
        max_length=len(actions.FIELDS),
        description=f"of {', '.join(actions.FIELDS)}; an empty limit is none",
        examples=[{"task": "describe", "model": "toybox", "layer": "layer4", "backbone": "scripted", "rounds": "12"}],
    )
    shared: bool = Field(False, description="the whole team sees it")


class PresetOut(RowOut):
    id: int
    name: str
    settings: dict[str, str]
    shared: bool
    owner: UserName


@router.get("/presets", response=ListPage[PresetOut], summary="List presets")
def list_presets(request: HttpRequest, paging: Query[Paging]) -> ListPage[PresetOut]:
    """Yours and those that others share, by name."""
    user = authorize(request)
    return page(request, actions.list_presets(user), ["name", "pk"], paging, PresetOut.from_orm)


@router.get("/presets/{pk}", response=PresetOut, summary="Read a preset")
def read_preset(request: HttpRequest, pk: Id) -> PresetOut:
    user = authorize(request)
    return PresetOut.from_orm(find(actions.list_presets(user), pk=pk))


@router.post("/presets", response={201: PresetOut}, summary="Save a preset")
def create_preset(request: HttpRequest, preset: PresetIn, response: HttpResponse) -> Status[dict[str, Any]]:
    """Under a name that none of yours has; the settings are checked as for a run."""
    user = authorize(request, Role.RESEARCHER, TokenScope.WRITE)

    def make() -> tuple[PresetOut, str]:
        by = Actor.behind(request, user)
        row = actions.write_preset(by, Preset(owner=user), preset.name, preset.settings, shared=preset.shared)
        return PresetOut.from_orm(row), reverse("api:read_preset", args=[row.pk])

    return Status(201, answer_once(request, response, user, make))


@router.put("/presets/{pk}", response=PresetOut, summary="Change a preset")
def edit_preset(request: HttpRequest, pk: Id, preset: PresetIn) -> PresetOut:
    """One of yours. Needs its ETag in If-Match."""
    actor = Actor.behind(request, authorize(request, Role.RESEARCHER, TokenScope.WRITE))
    with transaction.atomic():
        row = lock_as_read(request, Preset.objects.filter(owner=actor.person), pk, PresetOut)
        return PresetOut.from_orm(actions.write_preset(actor, row, preset.name, preset.settings, shared=preset.shared))


@router.delete("/presets/{pk}", response={204: None}, summary="Delete a preset")
def delete_preset(request: HttpRequest, pk: Id) -> Status[None]:
    """One of yours; runs stay. Needs its ETag too."""
    actor = Actor.behind(request, authorize(request, Role.RESEARCHER, TokenScope.WRITE))
    with transaction.atomic():
        actions.delete_preset(actor, lock_as_read(request, Preset.objects.filter(owner=actor.person), pk, PresetOut))
    return Status(204, None)
