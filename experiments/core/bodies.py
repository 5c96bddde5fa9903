"""How much a request may bring: asked before a byte of it is kept, around everything else.

Django reads a body to its end, into a file where it is large, before any of our code is asked who sends it. So this
stands in front: a body that is announced as too large, or turns out to be, is not read on. Files may be larger, for
members who may import them, which is asked first. Wraps the ASGI application; its middleware gives the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from io import BytesIO
from typing import Any

from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth import get_user
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from experiments.core import access
from experiments.core.outages import explain_to_visitor
from experiments.core.sessions import SessionStore
from experiments.models import ApiToken, Role, TokenScope

Message = dict[str, Any]
Said = Mapping[str, Any]
Receive = Callable[[], Awaitable[Said]]
Send = Callable[[Said], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

TAKING_FILES = ("/imports/bring/", "/api/v1/imports", "/api/v1/imports/batch")
UPLOAD = 1 << 30
"""Bytes of a file that is brought."""
ROOM = 1 << 20
"""What a form with a file may bring beside the file."""
REFUSED = "maia.refused"
"""Set in the scope of a request whose body was not read: the most bytes that it might have had."""
UNKEPT = "maia.unkept"
"""Set in the scope of a request whose body the disk did not take: the OSError."""


class Bounded:
    """Around the application."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        most = left = await _most_bytes(scope)
        answered = False

        async def count() -> Said:
            """Passes messages on until there are too many bytes in them: to the application the client is then gone."""
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            return {"type": "http.disconnect"} if left < 0 else message

        async def note(message: Said) -> None:
            """Passes an answer on, and notes that there is one: a stream answers before the body is there, and once."""
            nonlocal answered
            answered = True
            await send(message)

        refused: Message = {REFUSED: most}
        unread = refused if _read_length(scope) > most else {}
        if not unread:
            try:
                await self.app(scope, count, note)
                unread = refused if left < 0 else {}
            except OSError as error:  # a large body is spooled to a file before any of our code is called
                if answered or not explain_to_visitor(error):
                    raise
                unread = {UNKEPT: error}
        if unread and not answered:
            await self.app({**scope, **unread}, _nothing_more(), send)


def _nothing_more() -> Receive:
    """An empty body, and then silence."""
    bodies = iter([{"type": "http.request", "body": b""}])

    async def receive() -> Said:
        return next(bodies, None) or await asyncio.get_running_loop().create_future()

    return receive


def _read_length(scope: Message) -> int:
    """The bytes that the client says are coming; 0 if it does not."""
    length = dict(scope["headers"]).get(b"content-length", b"")
    return int(length) if length.isdigit() else 0


async def _most_bytes(scope: Message) -> int:
    """The most bytes that the body of this request may have. Who may not import is not asked for a file at all."""
    plain = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    if (
        scope["path"].removeprefix(settings.PREFIX) not in TAKING_FILES
        or scope["method"] != "POST"
        or 0 < _read_length(scope) <= plain
    ):
        return plain
    return UPLOAD + ROOM if await database_sync_to_async(_may_import)(scope) else 0


def _may_import(scope: Message) -> bool:
    """Whether a token or a session of somebody who may import comes with the request. The views ask again."""
    request = ASGIRequest(scope, BytesIO())
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() == "bearer":
        found = ApiToken.find(token.strip())
        return found is not None and found.scope > TokenScope.READ and _is_researcher(found.user)
    request.session = SessionStore(request.COOKIES.get(settings.SESSION_COOKIE_NAME))
    return _is_researcher(get_user(request))


def _is_researcher(user: Any) -> bool:
    return (access.role_of(user) or 0) >= Role.RESEARCHER


class BodyMiddleware:
    """Middleware that answers for a body which was not read. The API says so in its own language."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        most = find_refused_size(request)
        if request.path_info.startswith("/api/"):
            return self.get_response(request)
        require_kept(request)
        return render(request, "413.html", {"most": most}, status=413) if most else self.get_response(request)


def find_refused_size(request: HttpRequest) -> int:
    """The most bytes the body might have had that was not read; 0 if it was, or if its sender may send none."""
    return int(getattr(request, "scope", {}).get(REFUSED, 0))


def require_kept(request: HttpRequest) -> None:
    """Raise the OSError with which the disk refused the body, if it did."""
    if error := getattr(request, "scope", {}).get(UNKEPT):
        raise error
