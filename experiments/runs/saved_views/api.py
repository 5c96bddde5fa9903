"""Saved views: states of the list of runs under a name; one's own to write, the team's to read too."""

from __future__ import annotations

from typing import Annotated, Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Field, Query, Router, Status
from pydantic import StringConstraints

from experiments.api.cursors import ListPage, Paging, page
from experiments.api.entry import allow
from experiments.api.fields import NO_NUL, Body, Id, RowOut, UserName, find
from experiments.api.once import answer_once
from experiments.api.problems import Refusal
from experiments.api.versions import must_match
from experiments.core import audit
from experiments.core.audit import Verb
from experiments.models import SavedView
from experiments.models.api_token import TokenScope
from experiments.models.member import Role
from experiments.runs.saved_views import pages

router = Router(tags=["Saved views"])

Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=60, pattern=NO_NUL)]
State = Annotated[str, StringConstraints(max_length=pages.QUERY_CHARS, pattern=NO_NUL)]


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


def seen_by(user: User) -> QuerySet[SavedView]:
    return SavedView.objects.filter(Q(owner=user) | Q(shared=True)).select_related("owner")


@router.get("/views", response=ListPage[ViewOut], summary="List saved views")
def list_views(request: HttpRequest, paging: Query[Paging]) -> ListPage[ViewOut]:
    """Yours and those that others share, by name."""
    user = allow(request)
    return page(request, seen_by(user), ["name", "pk"], paging, ViewOut.from_orm)


@router.get("/views/{pk}", response=ViewOut, summary="Read a saved view")
def read_view(request: HttpRequest, pk: Id) -> ViewOut:
    user = allow(request)
    return ViewOut.from_orm(find(seen_by(user), pk=pk))


@router.post("/views", response={201: ViewOut}, summary="Save a view")
def create_view(request: HttpRequest, view: ViewIn, response: HttpResponse) -> Status[dict[str, Any]]:
    """Under a name that none of yours has."""
    user = allow(request, pages.to_write(shared=view.shared), TokenScope.WRITE)

    def make() -> tuple[ViewOut, str]:
        refuse_taken(user, view.name)
        row = SavedView.objects.create(owner=user, **read_fields(view))
        audit.record(request, Verb.VIEW_SAVED, row, shared=row.shared)
        return ViewOut.from_orm(row), reverse("api:read_view", args=[row.pk])

    return Status(201, answer_once(request, response, user, make))


@router.put("/views/{pk}", response=ViewOut, summary="Change a saved view")
def edit_view(request: HttpRequest, pk: Id, view: ViewIn) -> ViewOut:
    """One of yours. Needs its ETag in If-Match."""
    user = allow(request, pages.to_write(shared=view.shared), TokenScope.WRITE)
    with transaction.atomic():
        row = lock_view(request, user, pk)
        refuse_taken(user, view.name, but=pk)
        for name, value in read_fields(view).items():
            setattr(row, name, value)
        row.save()
        audit.record(request, Verb.VIEW_RENAMED, row, shared=row.shared)
    return ViewOut.from_orm(row)


@router.delete("/views/{pk}", response={204: None}, summary="Delete a saved view")
def delete_view(request: HttpRequest, pk: Id) -> Status[None]:
    """One of yours; the runs stay. Needs its ETag too."""
    user = allow(request, Role.VIEWER, TokenScope.WRITE)
    with transaction.atomic():
        row = lock_view(request, user, pk)
        audit.record(request, Verb.VIEW_DELETED, row)
        row.delete()
    return Status(204, None)


def lock_view(request: HttpRequest, user: User, pk: int) -> SavedView:
    """A view of one's own, locked, as its editor knows it. Raises Refusal."""
    row = find(SavedView.objects.select_for_update().filter(owner=user), pk=pk)
    must_match(request, ViewOut.from_orm(row))
    return row


def read_fields(view: ViewIn) -> dict[str, Any]:
    return {"name": view.name, "query": pages.state(view.query), "shared": view.shared}


def refuse_taken(user: User, name: str, but: int = 0) -> None:
    """Raises Refusal if another of one's views than `but` has the name."""
    if SavedView.objects.filter(owner=user, name=name).exclude(pk=but).exists():
        raise Refusal("conflict", f"You have a view “{name}” already. Change that one, or take another name.")
