"""Saved views: states of the list of runs under a name; one's own to write, the team's to read too."""

from __future__ import annotations

from typing import Annotated, Any

from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Field, Query, Router, Status
from pydantic import StringConstraints

from experiments.api.cursors import ListPage, Paging, page
from experiments.api.entry import allow
from experiments.api.fields import NO_NUL, Body, Id, RowOut, UserName, find
from experiments.api.once import answer_once
from experiments.api.versions import must_match
from experiments.core.actors import Actor
from experiments.models import Role, SavedView, TokenScope
from experiments.runs.saved_views import actions

router = Router(tags=["Saved views"])

Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=60, pattern=NO_NUL)]
State = Annotated[str, StringConstraints(max_length=actions.QUERY_CHARS, pattern=NO_NUL)]


class ViewIn(Body):
    """Which runs, as in the address of the page Runs, and a name for them."""

    name: Name = Field(examples=["Failed this week"])
    query: State = Field("", examples=["status=failed"])
    shared: bool = Field(False, description="the whole team sees it; takes a researcher")


class ViewOut(RowOut):
    id: int
    name: str
    query: str
    shared: bool
    owner: UserName


@router.get("/views", response=ListPage[ViewOut], summary="List saved views")
def list_views(request: HttpRequest, paging: Query[Paging]) -> ListPage[ViewOut]:
    """Yours and those that others share, by name."""
    user = allow(request)
    return page(request, actions.list_views(user), ["name", "pk"], paging, ViewOut.from_orm)


@router.get("/views/{pk}", response=ViewOut, summary="Read a saved view")
def read_view(request: HttpRequest, pk: Id) -> ViewOut:
    user = allow(request)
    return ViewOut.from_orm(find(actions.list_views(user), pk=pk))


@router.post("/views", response={201: ViewOut}, summary="Save a view")
def create_view(request: HttpRequest, view: ViewIn, response: HttpResponse) -> Status[dict[str, Any]]:
    """Under a name that none of yours has."""
    user = allow(request, Role.VIEWER, TokenScope.WRITE)

    def make() -> tuple[ViewOut, str]:
        by = Actor.behind(request, user)
        row = actions.write_view(by, SavedView(owner=user), view.name, view.query, shared=view.shared)
        return ViewOut.from_orm(row), reverse("api:read_view", args=[row.pk])

    return Status(201, answer_once(request, response, user, make))


@router.put("/views/{pk}", response=ViewOut, summary="Change a saved view")
def edit_view(request: HttpRequest, pk: Id, view: ViewIn) -> ViewOut:
    """One of yours. Needs its ETag in If-Match."""
    actor = Actor.behind(request, allow(request, Role.VIEWER, TokenScope.WRITE))
    with transaction.atomic():
        row = _lock_view(request, actor.person, pk)
        return ViewOut.from_orm(actions.write_view(actor, row, view.name, view.query, shared=view.shared))


@router.delete("/views/{pk}", response={204: None}, summary="Delete a saved view")
def delete_view(request: HttpRequest, pk: Id) -> Status[None]:
    """One of yours; the runs stay. Needs its ETag too."""
    actor = Actor.behind(request, allow(request, Role.VIEWER, TokenScope.WRITE))
    with transaction.atomic():
        actions.delete_view(actor, _lock_view(request, actor.person, pk))
    return Status(204, None)


def _lock_view(request: HttpRequest, user: User, pk: int) -> SavedView:
    """A view of one's own, locked, as its editor knows it. Raises Refusal."""
    row = find(SavedView.objects.select_for_update().filter(owner=user), pk=pk)
    must_match(request, ViewOut.from_orm(row))
    return row
