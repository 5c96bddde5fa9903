"""The address /mcp: checks access before the SDK reads a byte. Accepts only bearer tokens, never cookies.

Each request is its own session (the SDK's stateless mode), so processes keep no state between requests, and a client
that disconnects ends its waiting tool. Runs before Django in the ASGI application.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import HttpResponse

from experiments.api import problems, throttling
from experiments.core.request_limits import REFUSED, UNKEPT
from experiments.mcp import entry
from experiments.mcp.entry import Asker

ADDRESS = "/mcp"
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class McpDoor:
    """Wraps the ASGI application: answers `/mcp` itself and passes on everything else."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # WebSockets and pages go on to Django, in this process.
        if scope["path"].removeprefix(settings.PREFIX).rstrip("/") != ADDRESS:
            await self.app(scope, receive, send)
            return
        asker = Asker.of(scope)
        # In a thread, since it queries the database.
        refusal = await entry.run_in_thread(_refuse, scope, asker)
        if refusal is None:
            await _serve(scope, asker, receive, send)
        else:
            await _answer(refusal, send)


def _refuse(scope: Scope, asker: Asker) -> HttpResponse | None:
    """Return why the request is refused, as a problem of the API; None if it is accepted."""
    # Stateless mode has no stream to open by GET
    if scope["method"] != "POST":
        words = f"{scope['method']} is not allowed, only POST: there are no sessions to open or close."
        return problems.answer("method", words, headers={"Allow": "POST"})
    if most := scope.get(REFUSED):
        return problems.answer("too-large", f"A request may have at most {most:,} bytes.")
    # The limit on the size of a body is checked by its length, which chunked bodies do not state.
    if b"chunked" in dict(scope["headers"]).get(b"transfer-encoding", b"").lower():
        return problems.answer("length", "Send the body whole, with its Content-Length.")
    try:
        _check_place(scope, asker)
        if UNKEPT in scope:
            raise scope[UNKEPT]
        token = entry.identify(asker)
    except DisallowedHost:
        return problems.answer("forbidden", "This host name is not allowed; MAIA_HOSTS lists the allowed ones.")
    except Exception as error:  # noqa: BLE001 - clients get every error as a problem of the API
        return problems.make_problem(asker.request("POST", ADDRESS, {}), error)
    # The limit of the API, counted by token
    rate = throttling.count(f"token:{token.pk}")
    if rate is not None and rate.left < 0:
        words = f"{rate.limit} requests a minute are allowed. Try again in {rate.reset} s."
        return problems.answer("too-many", words, headers={"Retry-After": str(rate.reset)})
    return None


def _check_place(scope: Scope, asker: Asker) -> None:
    """Raise DisallowedHost for a foreign host or origin, against DNS rebinding: another site may point its name at this
    machine."""
    host = asker.request("POST", ADDRESS, {}).get_host()
    origin = dict(scope["headers"]).get(b"origin", b"").decode("latin-1")
    if origin and origin.partition("://")[2] != host and origin not in settings.CSRF_TRUSTED_ORIGINS:
        raise DisallowedHost(origin)


async def _serve(scope: Scope, asker: Asker, receive: Receive, send: Send) -> None:
    """Pass the request to the SDK, which checks host and origin again."""
    manager = await entry.run_in_thread(_make_manager, scope)
    mark = entry.asker.set(asker)
    try:
        async with manager.run():
            await manager.handle_request(scope, receive, send)
    finally:
        entry.asker.reset(mark)


def _make_manager(scope: Scope) -> Any:
    """Return the SDK's manager for one request. Imported here, because the import takes over a second and pages do not
    need it."""
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from mcp.server.transport_security import TransportSecuritySettings

    from experiments.mcp.server import make_server

    # Headers are bytes; HTTP defines them as latin-1.
    given = {name: text.decode("latin-1") for name, text in scope["headers"] if name in {b"host", b"origin"}}
    # `_check_place` has checked both; the SDK's own check needs them as lists.
    passed = TransportSecuritySettings(
        allowed_hosts=[given.get(b"host", "")], allowed_origins=[given.get(b"origin", "")]
    )
    # A manager runs once, so each request has its own.
    return StreamableHTTPSessionManager(make_server()._lowlevel_server, stateless=True, security_settings=passed)


async def _answer(response: HttpResponse, send: Send) -> None:
    headers = [(name.lower().encode(), text.encode()) for name, text in response.items()]
    # Django's own server layer would add it, which this answer bypasses.
    headers.append((b"content-length", str(len(response.content)).encode()))
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": response.content})
