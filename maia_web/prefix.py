"""The site's path prefix, `MAIA_PREFIX`: the application sees the same paths whether or not a proxy removes it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from django.urls import set_script_prefix

Scope = dict[str, Any]
App = Callable[[Scope, Any, Any], Awaitable[None]]


class Prefixed:
    """Wrap an ASGI application so that every path begins with the prefix, as ASGI requires with a `root_path`."""

    def __init__(self, app: App, prefix: str) -> None:
        self.app = app
        self.prefix = prefix

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if self.prefix:
            path = scope["path"]
            if path != self.prefix and not path.startswith(f"{self.prefix}/"):
                path = self.prefix + path
            scope = {**scope, "path": path, "root_path": self.prefix}
            # Django does so only for pages, and sockets send links too.
            set_script_prefix(f"{self.prefix}/")
        await self.app(scope, receive, send)
