"""Answer errors as application/problem+json (RFC 9457): type, title, status, detail, and the fields."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse, UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from ninja import NinjaAPI, Schema
from ninja.errors import AuthenticationError, HttpError, Throttled, ValidationError

from experiments.core.errors import ActionRefused, InvalidFields, InvalidInput
from experiments.core.outages import RETRY_AFTER, explain_to_visitor

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
DOCS = "/api/v1/docs"

KINDS: dict[str, tuple[int, str]] = {
    "unreadable": (400, "The request cannot be read"),
    "cursor": (400, "This cursor leads nowhere"),
    "unauthenticated": (401, "Who asks is not known"),
    "forbidden": (403, "This is not allowed"),
    "missing": (404, "There is nothing here"),
    "method": (405, "The address does not know this method"),
    "conflict": (409, "The state does not allow it"),
    "length": (411, "The length of the body is not told"),
    "changed": (412, "It has changed since it was read"),
    "too-large": (413, "The body is too large"),
    "invalid": (422, "A value is not right"),
    "key-reused": (422, "The Idempotency-Key belongs to another request"),
    "if-match": (428, "An If-Match header is missing"),
    "too-many": (429, "Too many requests"),
    "broken": (500, "Something broke here"),
    "unavailable": (503, "This is not possible at the moment"),
}
"""Kind of problem -> status and title. The docs page explains each under #problem-KIND."""
# Reversed, so that of kinds with the same status the first one wins
OF_STATUS = {status: kind for kind, (status, _) in reversed(KINDS.items())}
NOTHING = "There is nothing under this address, or nothing that you may see."
CHALLENGE = 'Bearer realm="MAIA Web"'


class FieldError(Schema):
    """The problem with one value."""

    field: str
    message: str


class Problem(Schema):
    """A problem, as in RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[FieldError] = []


class Refusal(ActionRefused):
    """The request is refused with a problem of this kind."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


def answer(kind: str, detail: str, errors: Sequence[FieldError] = (), headers: Mapping[str, str] = {}) -> HttpResponse:
    """Return the response for a problem."""
    status, title = KINDS[kind]
    problem = Problem(
        type=f"{settings.PREFIX}{DOCS}#problem-{kind}", title=title, status=status, detail=detail, errors=list(errors)
    )
    response = HttpResponse(
        json.dumps(problem.model_dump()), status=status, content_type=MEDIA_TYPE, headers=dict(headers)
    )
    # RFC 9110 asks for it: the header says how to authenticate.
    if status == 401:
        response["WWW-Authenticate"] = CHALLENGE
    return response


def make_problem(request: HttpRequest, error: Exception | type[Exception]) -> HttpResponse:
    """Return the response for an exception. An unexpected one is logged, and answered without its details."""
    if isinstance(error, ActionRefused):
        return answer(error.kind, str(error), _refused_fields(error))
    if isinstance(error, ValidationError):
        return answer(
            "invalid", "Some values are not right: see errors.", [_field_error(each) for each in error.errors]
        )
    if isinstance(error, Throttled):
        rate = request.rate  # type: ignore[attr-defined]
        detail = f"{rate.limit} requests a minute are answered. Go on in {rate.reset} s."
        return answer("too-many", detail, headers={"Retry-After": str(rate.reset)})
    if isinstance(error, AuthenticationError):
        return answer("unauthenticated", "Send a token in the header “Authorization: Bearer …”; Settings makes one.")
    if isinstance(error, HttpError):
        return answer(OF_STATUS.get(error.status_code, "unreadable"), str(error))
    if isinstance(error, Http404):
        return answer("missing", NOTHING)
    if isinstance(error, PermissionDenied):
        return answer("forbidden", str(error) or "You may not do this.")
    if isinstance(error, SuspiciousOperation | MultiPartParserError | UnreadablePostError):
        return answer("too-large" if isinstance(error, RequestDataTooBig) else "unreadable", str(error))
    if isinstance(error, Exception) and (words := explain_to_visitor(error)):
        log.error("%s %s met an outage", request.method, request.path, exc_info=error)
        return answer("unavailable", words, headers={"Retry-After": str(RETRY_AFTER)})
    log.error("%s %s broke", request.method, request.path, exc_info=error if isinstance(error, Exception) else None)
    return answer("broken", "This is our fault; it was noted. Try again, and tell an admin if it stays.")


def _refused_fields(error: ActionRefused) -> list[FieldError]:
    if isinstance(error, InvalidFields):
        return [FieldError(field=name, message=words) for name, messages in error.fields.items() for words in messages]
    field = error.field if isinstance(error, InvalidInput) else ""
    return [FieldError(field=field, message=str(error))] if field else []


def _field_error(found: Mapping[str, Any]) -> FieldError:
    """Convert an error of pydantic, with the field named as the client wrote it."""
    source, *place = found["loc"]
    parts = [str(part) for part in place]
    if source in {"query", "body"} and len(parts) > 1:
        parts = parts[1:]  # the name of our own argument
    # The rest of the place names types within a union, which the client did not write.
    if source == "query":
        parts = parts[:1]
    return FieldError(field=".".join(parts) or str(source), message=str(found["msg"]))


def handle(api: NinjaAPI) -> None:
    """Make the API answer its exceptions with problems."""
    for kind in (ValidationError, HttpError, Http404, Exception):  # all for which Ninja has its own answers
        api.add_exception_handler(kind, make_problem)
