"""API of share links: create, list and revoke links for readers without an account."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from ninja import Field, Query, Router, Status

from experiments.api.auth import authorize
from experiments.api.cursors import ListPage, Paging, page
from experiments.api.fields import Body, FullName, Id, RowOut, find
from experiments.core.actors import Actor
from experiments.models import Role, Run, Share, Study, TokenScope
from experiments.models.share import MAX_VALIDITY
from experiments.sharing import actions

router = Router(tags=["Share links"])


class ShareIn(Body):
    """When the link expires, and what it shows beside the transcript."""

    days: int = Field(7, ge=1, le=MAX_VALIDITY.days)
    show_names: bool = False
    show_comments: bool = False


class StudyShareIn(Body):
    """When the link expires, and whether it shows names."""

    days: int = Field(7, ge=1, le=MAX_VALIDITY.days)
    show_names: bool = False


class ShareOut(RowOut):
    id: int
    run: int | None = Field(validation_alias="run_id")
    study: int | None = Field(validation_alias="study_id", description="a link leads to a run or to a study")
    created_by: FullName
    created: datetime
    expires: datetime
    revoked: datetime | None
    show_names: bool
    show_comments: bool
    views: int
    last_viewed: datetime | None


class ShareMade(ShareOut):
    address: str = Field(description="the link; it is shown only in this response")


@router.get("/runs/{pk}/shares", response=ListPage[ShareOut], summary="List the share links of a run")
def list_shares(request: HttpRequest, pk: Id, paging: Query[Paging]) -> ListPage[ShareOut]:
    """Newest first, without the links themselves: only a hash of each is stored."""
    authorize(request, Role.RESEARCHER)
    rows = find(Run.objects.all(), pk=pk).shares.select_related("created_by")
    return page(request, rows, ["-pk"], paging, ShareOut.from_orm)


@router.get("/shares", response=ListPage[ShareOut], summary="List all share links")
def list_all_shares(request: HttpRequest, paging: Query[Paging]) -> ListPage[ShareOut]:
    """Lists links to all runs and studies, newest first. Requires an admin."""
    authorize(request, Role.ADMIN)
    return page(request, Share.objects.select_related("created_by"), ["-pk"], paging, ShareOut.from_orm)


@router.post("/runs/{pk}/shares", response={201: ShareMade}, summary="Create a share link")
def create_share(request: HttpRequest, pk: Id, wanted: ShareIn) -> Status[ShareMade]:
    """Anyone with the link can read this run until the link expires or is revoked. Idempotency-Key is ignored,
    because repeating the response would require storing the link."""
    actor = Actor.behind(request, authorize(request, Role.RESEARCHER, TokenScope.WRITE))
    run, expires = find(Run.objects.all(), pk=pk), timezone.now() + timedelta(days=wanted.days)
    made = actions.share(actor, run, expires, names=wanted.show_names, comments=wanted.show_comments)
    return Status(201, _share_made(request, *made))


@router.get("/studies/{pk}/shares", response=ListPage[ShareOut], summary="List the share links of a study")
def list_study_shares(request: HttpRequest, pk: Id, paging: Query[Paging]) -> ListPage[ShareOut]:
    """Newest first, without the links themselves."""
    authorize(request, Role.RESEARCHER)
    rows = find(Study.objects.all(), pk=pk).shares.select_related("created_by")
    return page(request, rows, ["-pk"], paging, ShareOut.from_orm)


@router.post("/studies/{pk}/shares", response={201: ShareMade}, summary="Create a share link to a study")
def create_study_share(request: HttpRequest, pk: Id, wanted: StudyShareIn) -> Status[ShareMade]:
    """Anyone with the link can read this study and the transcripts of its runs, until the link expires or is
    revoked. Idempotency-Key is ignored."""
    actor = Actor.behind(request, authorize(request, Role.RESEARCHER, TokenScope.WRITE))
    study, expires = find(Study.objects.all(), pk=pk), timezone.now() + timedelta(days=wanted.days)
    made = actions.share(actor, study, expires, names=wanted.show_names, comments=False)
    return Status(201, _share_made(request, *made))


def _share_made(request: HttpRequest, share: Share, token: str) -> ShareMade:
    address = request.build_absolute_uri(reverse("shared", args=[token]))
    return ShareMade(address=address, **ShareOut.from_orm(share).dict())


@router.delete("/shares/{pk}", response={204: None}, summary="Revoke a share link")
def revoke_share(request: HttpRequest, pk: Id) -> Status[None]:
    """The link stops working. Revoking it again changes nothing. Allowed for the person who made it, the owner of
    what it shows, and admins."""
    actor = Actor.behind(request, authorize(request, Role.RESEARCHER, TokenScope.WRITE))
    actions.revoke(actor, find(Share.objects.select_related("run", "study"), pk=pk))
    return Status(204, None)
