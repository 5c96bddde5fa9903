"""Call the API's operations within this process, with the same checks, roles, limits and audit as over HTTP."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.urls import resolve
from mcp.server.mcpserver.exceptions import ToolError
from ninja.errors import AuthenticationError

from experiments.api import problems
from experiments.mcp import entry
from experiments.mcp.entry import Asker
from experiments.models import Role, TokenScope


@dataclass(frozen=True)
class OperationAnswer:
    """An operation's answer, and the version that an edit must name."""

    data: Any
    etag: str


@dataclass(frozen=True)
class Operations:
    """The operations as one token may call them."""

    asker: Asker

    async def get(self, path: str, **query: Any) -> Any:
        """Read `path` below /api/v1. Raises ToolError with the problem."""
        return (await self.send("GET", path, query=query)).data

    async def send(
        self, method: str, path: str, body: Any = None, query: dict[str, Any] | None = None, if_match: str = ""
    ) -> OperationAnswer:
        """Call an operation. Raises ToolError with the problem."""
        # Tools pass every argument; empty ones mean no filter
        given = {name: value for name, value in (query or {}).items() if value not in (None, "")}
        return await entry.run_in_thread(self._call, method, f"/api/v1{path}", given, body, if_match)

    async def require_allowed(self, scope: TokenScope = TokenScope.READ, role: Role = Role.VIEWER) -> None:
        """Raise ToolError if the token or its owner has lost access."""
        await entry.run_in_thread(_identify, self.asker, role, scope)

    def _call(self, method: str, path: str, query: dict[str, Any], body: Any, if_match: str) -> OperationAnswer:
        raw = b"" if body is None else json.dumps(body).encode()
        match = resolve(path)
        request = self.asker.request(method, path, query, raw, **({"if_match": if_match} if if_match else {}))
        # As Django's middleware would; the API itself reads the token
        request.user, request.resolver_match = AnonymousUser(), match
        # The view itself, below the middleware: cookies, sessions and CSRF play no part here.
        response = match.func(request, *match.args, **match.kwargs)
        # Some answers, such as 204, have no body.
        content = json.loads(response.content or b"null")
        if response.status_code >= 400:
            # Models read the message, so it has the details of all fields
            raise ToolError(_format_problem(content))
        return OperationAnswer(content, response.headers.get("ETag", ""))


async def admit(scope: TokenScope = TokenScope.READ, role: Role = Role.VIEWER) -> Operations:
    """Return what the request's token may call. The first line of every tool. Raises ToolError."""
    operations = Operations(entry.asker.get(Asker("")))
    await operations.require_allowed(scope, role)
    return operations


def _identify(asker: Asker, role: Role, scope: TokenScope) -> None:
    try:
        entry.identify(asker, role, scope)
    except AuthenticationError:
        raise ToolError(
            "The token is unknown, revoked or expired. Make another on the page Settings, Tokens."
        ) from None
    except Http404:
        raise ToolError("The person behind this token is no member of the team. Ask an admin for a role.") from None
    # Every other error becomes a message too: a tool that raises would end the client's session.
    except Exception as error:
        raise ToolError(_format_problem(_problem_of(error))) from error


def _problem_of(error: Exception) -> Any:
    response: HttpResponseBase = problems.make_problem(HttpRequest(), error)
    return json.loads(getattr(response, "content", b"null"))


def _format_problem(problem: Any) -> str:
    """Return a problem of the API as text, with the errors of fields."""
    errors = "; ".join(f"{each['field']}: {each['message']}" for each in problem.get("errors", ()))
    return " ".join(each for each in (problem.get("detail", ""), errors) if each)
