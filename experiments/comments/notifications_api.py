"""What the person who asks was told of."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.http import HttpRequest
from ninja import Field, Query, Router, Schema

from experiments.api.cursors import Page, Paging, page
from experiments.api.entry import allow
from experiments.api.fields import Body, RowNumber
from experiments.api.problems import FieldError, Refusal
from experiments.core import notifications
from experiments.models import Notification
from experiments.models.api_token import Scope
from experiments.models.member import Role

router = Router(tags=["You"])


class NotificationOut(Schema):
    """A few words, and the page that they lead to."""

    id: int
    kind: str
    words: str
    url: str
    created: datetime
    read: datetime | None


class NotificationFilters(Schema):
    unread: bool = Field(False, description="only those that were not read yet")


class Which(Body):
    """Some by number, or all."""

    ids: list[RowNumber] = Field([], max_length=200)
    all: bool = False


class Unread(Schema):
    unread: int


def notification_out(row: Notification) -> NotificationOut:
    return NotificationOut(id=row.pk, kind=row.kind, words=row.words, url=row.url, created=row.created, read=row.read)


@router.get("/notifications", response=Page[NotificationOut], summary="List what you were told of")
def list_notifications(
    request: HttpRequest, filters: Query[NotificationFilters], paging: Query[Paging]
) -> Page[NotificationOut]:
    """The newest first."""
    user = allow(request)
    rows = notifications.unread(user) if filters.unread else notifications.of(user)
    return page(request, rows, ["-pk"], paging, notification_out)


@router.post("/notifications/read", response=Unread, summary="Mark what you were told of as read")
def mark_notifications_read(request: HttpRequest, which: Which) -> Unread:
    """How many are unread then. Numbers that are not yours are left out."""
    user = allow(request, Role.VIEWER, Scope.WRITE)
    if which.all == bool(which.ids):
        error = FieldError(field="ids", message="Name some, or say all: one of the two.")
        raise Refusal("invalid", "Which ones is not clear.", [error])
    rows = notifications.of(user)
    with transaction.atomic():
        notifications.read(rows if which.all else rows.filter(pk__in=which.ids), user)
    return Unread(unread=notifications.unread(user).count())
