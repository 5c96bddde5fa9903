"""Limit the size of request bodies before a byte of them is kept. Wraps the ASGI application.

Django reads a whole body, into a file if it is large, before any of our code can check the sender. This wrapper
stops reading a body that is announced as too large, or turns out to be. Members who may import files get a larger
limit; their access is checked first. `BodyMiddleware` gives the answer.
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
"""Maximum bytes of an uploaded file."""
ROOM = 1 << 20
"""Maximum bytes of a form beside its file."""
REFUSED = "maia.refused"
"""Set in the scope of a request whose body was not read: the maximum bytes it could have had."""
UNKEPT = "maia.unkept"
"""Set in the scope of a request whose body the disk could not store: the OSError."""


class Bounded:
    """Wrapper of the application."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        # 1. The limit for this sender.
        most = left = await _get_max_bytes(scope)
        answered = False

        async def count() -> Said:
            """Pass messages on until they exceed the limit; after that the application is told that the client is
            gone."""
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            return {"type": "http.disconnect"} if left < 0 else message

        async def note(message: Said) -> None:
            """Pass an answer on, and record that it began: a stream may answer once, before the body has arrived."""
            nonlocal answered
            answered = True
            await send(message)

        # 2. Refuse what is announced as too large; count what is not announced.
        refused: Message = {REFUSED: most}
        unread = refused if _read_length(scope) > most else {}
        if not unread:
            try:
                await self.app(scope, count, note)
                unread = refused if left < 0 else {}
            except OSError as error:  # Django spools a large body to a file before it calls any of our code.
                if answered or not explain_to_visitor(error):
                    raise
                unread = {UNKEPT: error}
        # Call the application once more, with an empty body, so that `BodyMiddleware` draws the answer.
        if unread and not answered:
            await self.app({**scope, **unread}, _nothing_more(), send)


def _nothing_more() -> Receive:
    """Return an empty body, then wait forever."""
    bodies = iter([{"type": "http.request", "body": b""}])

    async def receive() -> Said:
        # A future that is never set: the application must not take it for a disconnect.
        return next(bodies, None) or await asyncio.get_running_loop().create_future()

    return receive


def _read_length(scope: Message) -> int:
    """Return the body length that the client announces; 0 if it announces none."""
    length = dict(scope["headers"]).get(b"content-length", b"")
    return int(length) if length.isdigit() else 0


async def _get_max_bytes(scope: Message) -> int:
    """Return the maximum bytes of this request's body; 0 for a file from a person who may not import."""
    plain = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    if (
        scope["path"].removeprefix(settings.PREFIX) not in TAKING_FILES
        or scope["method"] != "POST"
        # A small body needs no check of the sender, which costs queries.
        or 0 < _read_length(scope) <= plain
    ):
        return plain
    return UPLOAD + ROOM if await database_sync_to_async(_may_import)(scope) else 0


def _may_import(scope: Message) -> bool:
    """True if the request carries a token or a session of a person who may import. The views check again."""
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
    """Middleware that answers requests whose body was not read; for the API, in the API's format."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        most = find_refused_size(request)
        if request.path_info.startswith("/api/"):
            return self.get_response(request)
        require_kept(request)
        return render(request, "413.html", {"most": most}, status=413) if most else self.get_response(request)


def find_refused_size(request: HttpRequest) -> int:
    """Return the size limit that a refused body exceeded; 0 if the body was read or its sender may send none."""
    return int(getattr(request, "scope", {}).get(REFUSED, 0))


def require_kept(request: HttpRequest) -> None:
    """Raise the OSError with which the disk refused the body, if it did."""
    if error := getattr(request, "scope", {}).get(UNKEPT):
        raise error
