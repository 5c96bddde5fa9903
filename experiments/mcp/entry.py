"""Authentication over MCP: the token of a request, checked again by every tool and repeatedly while one waits.

The HTTP address and the stdio command set the token here; tools start with `admit`.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, TypeVar
from urllib.parse import urlencode

from channels.db import database_sync_to_async
from django.conf import settings
from django.core.handlers.asgi import ASGIRequest
from ninja.errors import AuthenticationError

from experiments.api.auth import Token, authorize
from experiments.models import ApiToken, Role, TokenScope

Found = TypeVar("Found")
KEPT_HEADERS = frozenset({b"host", b"user-agent", b"x-forwarded-for", b"x-forwarded-proto"})
"""Headers used by audit and log."""
_THREADS = ThreadPoolExecutor(8, "mcp")


@dataclass(frozen=True)
class Asker:
    """A token and its origin, both for the audit."""

    token: str = field(repr=False)
    headers: tuple[tuple[bytes, bytes], ...] = ((b"host", b"localhost"), (b"user-agent", b"MCP over stdio"))
    client: tuple[str, int] | None = None

    @classmethod
    def of(cls, scope: dict[str, Any]) -> Asker:
        """Return the token of an ASGI scope, empty if there is none. Cookies are ignored."""
        given = dict(scope["headers"])
        kind, _, token = given.get(b"authorization", b"").decode("latin-1").partition(" ")
        # Other headers, cookies above all, must not reach the API
        kept = tuple(pair for pair in scope["headers"] if pair[0] in KEPT_HEADERS)
        return cls(token.strip() if kind.lower() == "bearer" else "", kept, scope.get("client"))

    def request(self, method: str, path: str, query: dict[str, Any], body: bytes = b"", **headers: str) -> ASGIRequest:
        """Return a request with this token to an address of the site, without prefix."""
        own = [(b"authorization", f"Bearer {self.token}".encode("latin-1", "replace"))]
        own += [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())] if body else []
        own += [(name.replace("_", "-").lower().encode(), text.encode()) for name, text in headers.items()]
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": settings.PREFIX + path,
            "root_path": settings.PREFIX,
            "query_string": urlencode(query, doseq=True).encode(),
            "headers": [*self.headers, *own],
            "client": self.client,
        }
        return ASGIRequest(scope, BytesIO(body))


asker: ContextVar[Asker] = ContextVar("asker")
"""The token of the current request."""


def identify(who: Asker, role: Role = Role.VIEWER, scope: TokenScope = TokenScope.READ) -> ApiToken:
    """Return the token if it is valid and its owner has the role. Raises AuthenticationError, Http404,
    PermissionDenied."""
    request = who.request("POST", "/mcp", {})
    if not who.token:
        raise AuthenticationError
    found = Token().authenticate(request, who.token)
    # The API sets this attribute, and its checks of roles and scopes read it.
    request.auth = found  # type: ignore[attr-defined]
    authorize(request, role, scope)
    return found


async def run_in_thread(work: Callable[..., Found], *arguments: Any) -> Found:
    """Run synchronous work in a thread. Closes its database connection if that is too old."""
    # Own threads: a slow tool must not block pages
    found: Found = await database_sync_to_async(work, thread_sensitive=False, executor=_THREADS)(*arguments)
    return found
