"""API of comments: threads on runs, imported comments, and the user's notifications."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Field, Query, Router, Schema, Status
from pydantic import AfterValidator, StringConstraints

from experiments.api.auth import authorize
from experiments.api.cursors import ListPage, Paging, page
from experiments.api.fields import KEY, NO_NUL, Body, Id, RowNumber, RowOut, UnitNumber, UserName, find
from experiments.api.idempotency import answer_once
from experiments.api.versions import must_match
from experiments.comments import actions, anchors, lists
from experiments.core import notifications
from experiments.core.actors import Actor
from experiments.core.errors import InvalidInput
from experiments.core.visibility import visible_to
from experiments.models import Comment, ImportedOpinions, Notification, Role, Run, Thread, TokenScope
from experiments.models.comment import NEARBY_CHARS, QUOTE_CHARS, TEXT_CHARS, On

router = Router(tags=["Comments"])


class ImportedReviewsOut(Schema):
    """Comments and reviews that came with an imported run. Their authors have no accounts here."""

    threads: list[dict[str, Any]]
    reviews: list[dict[str, Any]]
    finals: list[dict[str, Any]]


@router.get("/runs/{pk}/imported-reviews", response=ImportedReviewsOut, summary="Read what came with an imported run")
def read_imported_reviews(request: HttpRequest, pk: Id) -> ImportedReviewsOut:
    """Comments and reviews as they are in the bundle; empty lists for a run that was made here."""
    user = authorize(request)
    run = find(Run.objects.all(), pk=pk)
    actions.require_sight(user, run)
    found = ImportedOpinions.objects.filter(run=run).first() or ImportedOpinions()
    return ImportedReviewsOut(threads=found.threads, reviews=found.reviews, finals=found.finals)


Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=TEXT_CHARS, pattern=NO_NUL)]
Around = Annotated[str, Field(max_length=NEARBY_CHARS, pattern=NO_NUL)]


class CommentText(Body):
    """Plain text. Only links, `code` and @names are formatted."""

    text: Text


class ThreadIn(CommentText):
    """A first comment and its anchor. Events and quotes need `seq`; images also need `experiment`."""

    on: Annotated[str, Field(pattern=f"^({'|'.join(On.values)})$")] = On.RUN
    seq: RowNumber | None = None
    experiment: UnitNumber | None = None
    image: Annotated[str, Field(pattern=KEY)] | None = None
    quote: Annotated[str, Field(max_length=QUOTE_CHARS, pattern=NO_NUL)] = ""
    before: Around = ""
    after: Around = ""
    place: UnitNumber = 0


class Resolution(Body):
    resolved: bool


class WordingOut(RowOut):
    """An earlier text of a comment."""

    text: str
    until: datetime = Field(validation_alias="replaced")


class CommentOut(RowOut):
    """One comment; the text of a deleted one is empty."""

    id: int
    thread: int = Field(validation_alias="thread_id")
    author: UserName
    text: str
    mentions: Annotated[list[UserName], AfterValidator(sorted)]
    created: datetime
    edited: datetime | None
    deleted: datetime | None
    earlier: list[WordingOut] = Field(validation_alias="wordings")


class ThreadOut(RowOut):
    """A thread of comments on one part of a run."""

    id: int
    run: int = Field(validation_alias="run_id")
    on: str
    seq: int | None
    experiment: int | None = Field(validation_alias="experiment.number")
    image: str | None = Field(None, validation_alias="observation.image_id")
    quote: str
    created: datetime
    resolved: datetime | None
    resolved_by: UserName | None
    comments: list[CommentOut]


class WrittenOut(Schema):
    """The comment. `notice` names people who were not notified; "" if there are none."""

    comment: CommentOut
    notice: str


# --- threads -----------------------------------------------------------------------------------------


@router.get("/runs/{pk}/threads", response=ListPage[ThreadOut], summary="List the comments on a run")
def list_threads(request: HttpRequest, pk: Id, paging: Query[Paging]) -> ListPage[ThreadOut]:
    """The threads of the run, newest first, each with all its comments."""
    user = authorize(request)
    run = find(Run.objects.all(), pk=pk)
    actions.require_sight(user, run)
    return page(request, lists.threads(run), ["-pk"], paging, ThreadOut.from_orm)


@router.post("/runs/{pk}/threads", response={201: WrittenOut}, summary="Comment on a run, or on something in it")
def start_thread(request: HttpRequest, pk: Id, said: ThreadIn, response: HttpResponse) -> Status[dict[str, Any]]:
    """Starts a thread. Its anchor must exist."""
    user = authorize(request, Role.RESEARCHER, TokenScope.WRITE)
    run = find(Run.objects.all(), pk=pk)
    params = {name: str(value) for name, value in said.model_dump(exclude_none=True).items()}
    by = Actor.behind(request, user)

    def make() -> tuple[WrittenOut, str]:
        return _describe_written(actions.start_thread(by, anchors.read_anchor(run, params), said.text))

    return Status(201, answer_once(request, response, user, make))


@router.get("/threads/{pk}", response=ThreadOut, summary="Read a thread")
def read_thread(request: HttpRequest, pk: Id) -> ThreadOut:
    user = authorize(request)
    row = find(visible_to(Thread.objects.select_related("run")), pk=pk)
    actions.require_sight(user, row.run)
    return ThreadOut.from_orm(find(lists.threads(row.run), pk=pk))


@router.patch("/threads/{pk}", response=ThreadOut, summary="Resolve a thread, or open it again")
def resolve_thread(request: HttpRequest, pk: Id, wanted: Resolution) -> ThreadOut:
    """Requires the ETag of the thread in If-Match, because someone may have replied since."""
    user = authorize(request, Role.RESEARCHER, TokenScope.WRITE)
    with transaction.atomic():
        row = find(Thread.objects.select_for_update(), pk=pk)
        must_match(request, ThreadOut.from_orm(find(lists.threads(row.run), pk=pk)))
        actions.resolve(Actor.behind(request, user), row, wanted.resolved)
    return ThreadOut.from_orm(find(lists.threads(row.run), pk=pk))


@router.post("/threads/{pk}/comments", response={201: WrittenOut}, summary="Reply in a thread")
def reply_in_thread(request: HttpRequest, pk: Id, said: CommentText, response: HttpResponse) -> Status[dict[str, Any]]:
    """A reply reopens a resolved thread."""
    user = authorize(request, Role.RESEARCHER, TokenScope.WRITE)
    row = find(visible_to(Thread.objects.select_related("run")), pk=pk)
    by = Actor.behind(request, user)

    def make() -> tuple[WrittenOut, str]:
        return _describe_written(actions.reply(by, row, said.text))

    return Status(201, answer_once(request, response, user, make))


# --- comments ----------------------------------------------------------------------------------------

COMMENTS = Comment.objects.select_related("author", "thread__run").prefetch_related("mentions", "wordings")


@router.get("/comments/{pk}", response=CommentOut, summary="Read a comment")
def read_comment(request: HttpRequest, pk: Id) -> CommentOut:
    user = authorize(request)
    row = find(COMMENTS.all(), pk=pk)
    actions.require_sight(user, row.thread.run)
    return CommentOut.from_orm(row)


@router.patch("/comments/{pk}", response=WrittenOut, summary="Edit a comment of yours")
def edit_comment(request: HttpRequest, pk: Id, said: CommentText) -> WrittenOut:
    """Requires the ETag of the comment in If-Match. Earlier texts stay readable."""
    user = authorize(request, Role.RESEARCHER, TokenScope.WRITE)
    with transaction.atomic():
        return _describe_written(actions.edit(Actor.behind(request, user), _lock_comment(request, pk), said.text))[0]


@router.delete("/comments/{pk}", response=CommentOut, summary="Delete a comment of yours")
def delete_comment(request: HttpRequest, pk: Id) -> CommentOut:
    """Requires the ETag of the comment in If-Match. Deletes its text; the deleted comment stays listed."""
    user = authorize(request, Role.RESEARCHER, TokenScope.WRITE)
    with transaction.atomic():
        actions.delete(Actor.behind(request, user), _lock_comment(request, pk))
    return CommentOut.from_orm(find(COMMENTS.all(), pk=pk))


def _lock_comment(request: HttpRequest, pk: int) -> Comment:
    """Return the comment, locked, if the ETag matches. Raises Refusal."""
    find(Comment.objects.select_for_update(), pk=pk)
    row = find(COMMENTS.all(), pk=pk)
    must_match(request, CommentOut.from_orm(row))
    return row


def _describe_written(done: actions.WrittenComment) -> tuple[WrittenOut, str]:
    row = find(COMMENTS.all(), pk=done.comment.pk)
    return WrittenOut(comment=CommentOut.from_orm(row), notice=done.notice), reverse("api:read_comment", args=[row.pk])


# --- notifications -----------------------------------------------------------------------------------


class NotificationOut(Schema):
    """A short text and the page that it leads to."""

    id: int
    kind: str
    words: str
    url: str
    created: datetime
    read: datetime | None


class NotificationFilters(Schema):
    unread: bool = Field(False, description="only those that were not read yet")


class ReadIn(Body):
    """Some notifications by number, or all."""

    ids: list[RowNumber] = Field([], max_length=200)
    all: bool = False


class UnreadOut(Schema):
    unread: int


@router.get("/notifications", response=ListPage[NotificationOut], tags=["Account"], summary="List notifications")
def list_notifications(
    request: HttpRequest, filters: Query[NotificationFilters], paging: Query[Paging]
) -> ListPage[NotificationOut]:
    """Newest first."""
    user = authorize(request)
    rows = notifications.list_unread(user) if filters.unread else notifications.list_notifications(user)
    return page(request, rows, ["-pk"], paging, _describe_notification)


def _describe_notification(row: Notification) -> NotificationOut:
    return NotificationOut(
        id=row.pk, kind=row.kind, words=row.words, url=row.address, created=row.created, read=row.read
    )


@router.post("/notifications/read", response=UnreadOut, tags=["Account"], summary="Mark notifications as read")
def mark_notifications_read(request: HttpRequest, which: ReadIn) -> UnreadOut:
    """Returns the number of unread notifications. Numbers that are not yours are ignored."""
    user = authorize(request, Role.VIEWER, TokenScope.WRITE)
    if which.all == bool(which.ids):
        raise InvalidInput("Give either ids or all.", "ids")
    rows = notifications.list_notifications(user)
    with transaction.atomic():
        notifications.mark_read(rows if which.all else rows.filter(pk__in=which.ids), user)
    return UnreadOut(unread=notifications.list_unread(user).count())
