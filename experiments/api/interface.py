"""Assemble the API: its operations, what its responses have in common, and its addresses."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path, re_path
from django.utils.cache import get_conditional_response, patch_vary_headers
from django.views.decorators.csrf import csrf_exempt
from django.views.generic import RedirectView
from ninja import NinjaAPI
from ninja.operation import Operation

from experiments.api import docs, document, parameters, problems, throttling
from experiments.api.auth import SessionAuth, Token, authorize
from experiments.api.versions import tag
from experiments.core import request_limits
from experiments.core.params import ROW_DIGITS, parse_number
from experiments.core.request_limits import UPLOAD

PREFIX = "/api/v1/"
DESCRIPTION = (
    "Everything that the pages do. Lists are read page by page: send `next` back as `cursor`. What is read has an "
    "ETag: send it in If-None-Match to be told that nothing has changed, in If-Match to edit. Errors are "
    "problems (RFC 9457)."
)
OPERATIONS = (
    *("accounts.api", "comments.api"),
    *("runs.api", "runs.asking.api", "runs.steering.api", "runs.forks.api", "runs.human.api"),
    *("sharing.api", "runs.saved_views.api", "runs.presets.api", "runs.comparing.api", "runs.events.api"),
    *(
        "gallery.api",
        "installation.api",
        "installation.activity_api",
        "installation.sparse_api",
        "units.api",
        "units.causal_api",
        "units.sheet_api",
        "units.search_pages",
        "search.api",
    ),
    *("circuits.api", "circuits.study_api", "circuits.graph_api", "circuits.search_api"),
    *("reviews.api", "pairwise.api", "exchange.api", "studies.api", "webhooks.api"),
    *(
        "sweeps.api",
        "label_checks.api",
        "judging.api",
        "evaluations.api",
        "evaluations.score_api",
        "evaluations.claim_api",
    ),
)
"""Modules with operations, by name, since they depend on this folder. Some add theirs to another's router."""

View = Callable[..., HttpResponseBase]


class Interface(NinjaAPI):
    """The API with a complete document."""

    def get_openapi_operation_id(self, operation: Operation) -> str:
        return operation.view_func.__name__

    def get_openapi_schema(self, *, path_prefix: str | None = PREFIX, path_params: Any = None) -> Any:
        return document.complete_document(super().get_openapi_schema(path_prefix=path_prefix, path_params=path_params))


api = Interface(
    title="MAIA Web",
    version="1.0.0",
    description=DESCRIPTION,
    urls_namespace="api",
    auth=[Token(), SessionAuth()],
    throttle=[throttling.Rates()],
    parser=parameters.OnceEach(),
    openapi_url=None,
    servers=[{"url": settings.PREFIX}] if settings.PREFIX else None,
)
problems.handle(api)
api.add_decorator(parameters.refuse_unknown)
# Some modules add operations to another's router: each router counts once
for router in dict.fromkeys([import_module(f"experiments.{module}").router for module in OPERATIONS]):
    api.add_router("", router)


@api.get("/openapi.json", include_in_schema=False, url_name="openapi")
def openapi(request: HttpRequest) -> HttpResponse:
    """Return the OpenAPI document of the API."""
    authorize(request)
    return JsonResponse(api.get_openapi_schema())


def serve(view: View) -> View:
    """Wrap a view of the API: size limits, headers, and JSON for every error."""

    @csrf_exempt
    @login_not_required
    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            request_limits.require_kept(request)
            # Refuse a body that is too large, or of unknown length, before it is read.
            if "chunked" in request.headers.get("Transfer-Encoding", "").lower():
                raise problems.Refusal("length", "Send the body whole, with its Content-Length.")
            length = request.META.get("CONTENT_LENGTH") or "0"
            most = UPLOAD if request.content_type == "multipart/form-data" else settings.DATA_UPLOAD_MAX_MEMORY_SIZE
            announced = parse_number(length, ROW_DIGITS)
            if (
                request_limits.find_refused_size(request)
                or announced is None
                or (most is not None and announced > most)
            ):
                raise problems.Refusal("too-large", f"A body of {length} bytes was sent; at most {most} are taken.")
            response = view(request, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 - whatever it is, a script is told in its language
            response = problems.make_problem(request, error)
        if response.status_code == 405:
            allowed = ", ".join(sorted(response.headers.get("Allow", "").split(", ")))
            detail = f"{request.method} is not known here; {allowed} is."
            response = problems.answer("method", detail, headers={"Allow": allowed})
        return finish(request, response)

    return answer


def finish(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Add the headers of all responses; return a 304 if the client has the same response already."""
    patch_vary_headers(response, ["Authorization", "Cookie"])
    whole = response if isinstance(response, HttpResponse) else None
    kept = "private, no-cache" if whole and whole.status_code < 400 else "no-store"
    response.headers.setdefault("Cache-Control", kept)
    if whole and request.method == "GET" and whole.status_code == 200 and whole["Cache-Control"] != "no-store":
        whole.headers.setdefault("ETag", tag(whole.content))
        request.META.pop("HTTP_IF_MATCH", None)  # it is for edits
        response = get_conditional_response(request, etag=whole["ETag"], response=whole) or whole
    throttling.set_headers(request, response)
    return response


def _answer_missing(request: HttpRequest) -> HttpResponse:
    """Answer addresses that do not exist."""
    detail = f"The API has no address {request.path}. {settings.PREFIX}{PREFIX}openapi.json tells which there are."
    return problems.answer("missing", detail)


def addresses() -> list[URLPattern]:
    """Return the addresses of the API, under its prefix, for the site."""
    patterns = [each for each in api.urls[0] if isinstance(each, URLPattern) and each.name != "api-root"]
    for pattern in patterns:
        assert not iscoroutinefunction(pattern.callback)
        pattern.callback = serve(pattern.callback)
    root = path("", RedirectView.as_view(pattern_name="api:docs"), name="root")
    pages = [path("docs", docs.page, name="docs"), path("docs/notebook", docs.notebook, name="notebook"), root]
    return [*patterns, *pages, re_path(r"", serve(_answer_missing), name="nothing")]
