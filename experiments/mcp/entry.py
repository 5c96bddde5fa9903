"""Who asks over MCP: the token that came with the request, found anew by every tool and at every look while one waits.

The door over HTTP and the command over stdio say here which token it is; tools begin with `admit`.
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

from experiments.api.entry import Token, allow
from experiments.models import ApiToken, Role, TokenScope

Found = TypeVar("Found")
KEPT_HEADERS = frozenset({b"host", b"user-agent", b"x-forwarded-for", b"x-forwarded-proto"})
"""What the audit and the log read of a request."""
_THREADS = ThreadPoolExecutor(8, "mcp")


@dataclass(frozen=True)
class Asker:
    """A token, and where it came from. The audit notes both."""

    token: str = field(repr=False)
    headers: tuple[tuple[bytes, bytes], ...] = ((b"host", b"localhost"), (b"user-agent", b"MCP over stdio"))
    client: tuple[str, int] | None = None

    @classmethod
    def of(cls, scope: dict[str, Any]) -> Asker:
        """Who is behind an ASGI scope; the token is empty where none came. Cookies are not looked at."""
        given = dict(scope["headers"])
        kind, _, token = given.get(b"authorization", b"").decode("latin-1").partition(" ")
        kept = tuple(pair for pair in scope["headers"] if pair[0] in KEPT_HEADERS)
        return cls(token.strip() if kind.lower() == "bearer" else "", kept, scope.get("client"))

    def request(self, method: str, path: str, query: dict[str, Any], body: bytes = b"", **headers: str) -> ASGIRequest:
        """A request of theirs to an address of the site, which stands behind no prefix."""
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
"""Of the request under way."""


def identify(who: Asker, role: Role = Role.VIEWER, scope: TokenScope = TokenScope.READ) -> ApiToken:
    """The token, if it is good and its person may. Raises AuthenticationError, Http404, PermissionDenied."""
    request = who.request("POST", "/mcp", {})
    if not who.token:
        raise AuthenticationError
    found = Token().authenticate(request, who.token)
    request.auth = found  # type: ignore[attr-defined]
    allow(request, role, scope)
    return found


async def in_thread(work: Callable[..., Found], *arguments: Any) -> Found:
    """What synchronous work gives; its database connection is closed again where it is too old."""
    found: Found = await database_sync_to_async(work, thread_sensitive=False, executor=_THREADS)(*arguments)
    return found
