"""Saved views: states of lists under a name; one's own to write, the team's to read too."""

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
from experiments.models import Role, SavedView, TokenScope, ViewedList
from experiments.runs.saved_views import actions

router = Router(tags=["Saved views"])

State = Annotated[str, StringConstraints(max_length=actions.QUERY_CHARS, pattern=NO_NUL)]


class ViewIn(Body):
    """Which rows of a list, as in the address of its page, and a name for them."""

    name: OwnName = Field(examples=["Failed this week"])
    query: State = Field("", examples=["status=failed"])
    list: ViewedList = Field(ViewedList.RUNS, description="the list that it is a state of; it stays that")
    shared: bool = Field(False, description="the whole team sees it; takes a researcher")


class ViewOut(RowOut):
    id: int
    name: str
    list: ViewedList
    query: str
    shared: bool
    owner: UserName


@router.get("/views", response=ListPage[ViewOut], summary="List saved views")
def list_views(request: HttpRequest, paging: Query[Paging]) -> ListPage[ViewOut]:
    """Yours and those that others share, by name."""
    user = authorize(request)
    return page(request, actions.list_views(user), ["name", "pk"], paging, ViewOut.from_orm)


@router.get("/views/{pk}", response=ViewOut, summary="Read a saved view")
def read_view(request: HttpRequest, pk: Id) -> ViewOut:
    user = authorize(request)
    return ViewOut.from_orm(find(actions.list_views(user), pk=pk))


@router.post("/views", response={201: ViewOut}, summary="Save a view")
def create_view(request: HttpRequest, view: ViewIn, response: HttpResponse) -> Status[dict[str, Any]]:
    """Under a name that none of yours has."""
    user = authorize(request, Role.VIEWER, TokenScope.WRITE)

    def make() -> tuple[ViewOut, str]:
        by = Actor.behind(request, user)
        row = actions.write_view(by, SavedView(owner=user, list=view.list), view.name, view.query, shared=view.shared)
        return ViewOut.from_orm(row), reverse("api:read_view", args=[row.pk])

    return Status(201, answer_once(request, response, user, make))


@router.put("/views/{pk}", response=ViewOut, summary="Change a saved view")
def edit_view(request: HttpRequest, pk: Id, view: ViewIn) -> ViewOut:
    """One of yours. Needs its ETag in If-Match."""
    actor = Actor.behind(request, authorize(request, Role.VIEWER, TokenScope.WRITE))
    with transaction.atomic():
        row = lock_as_read(request, SavedView.objects.filter(owner=actor.person), pk, ViewOut)
        return ViewOut.from_orm(actions.write_view(actor, row, view.name, view.query, shared=view.shared))


@router.delete("/views/{pk}", response={204: None}, summary="Delete a saved view")
def delete_view(request: HttpRequest, pk: Id) -> Status[None]:
    """One of yours; what it lists stays. Needs its ETag too."""
    actor = Actor.behind(request, authorize(request, Role.VIEWER, TokenScope.WRITE))
    with transaction.atomic():
        actions.delete_view(actor, lock_as_read(request, SavedView.objects.filter(owner=actor.person), pk, ViewOut))
    return Status(204, None)
