"""A run under its link, for anybody who has that: read-only, and with no way into the application.

The link is a secret in the address: no answer is stored or listed, and no other site is told of it. A link that is
revoked, has expired or never was gets one and the same answer, after one and the same query.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.contrib.auth.decorators import login_not_required
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from experiments.core.visibility import visible_to
from experiments.gallery.images import serve_image, serve_thumbnail
from experiments.models import Run, Share
from experiments.sharing import shared_run
from workers.record.events import ExperimentEnded

POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Cache-Control": "private, no-store",
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex, nofollow, noarchive",
}
P = ParamSpec("P")


def _serve_share(view: Callable[Concatenate[HttpRequest, Share, P], HttpResponse]) -> Callable[..., HttpResponse]:
    """A view of what a good token shares. Whatever is not there looks the same."""

    @login_not_required
    @require_safe
    @wraps(view)
    def answer(request: HttpRequest, token: str, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        share = _find_share(token)
        try:
            response = view(request, share, *args, **kwargs) if share else _answer_gone(request)
        except Http404:
            response = _answer_gone(request)
        for name, value in HEADERS.items():
            response.headers[name] = value
        return response

    return answer


def _find_share(token: str) -> Share | None:
    """The share of a good token; of a run that is hidden while people write labels, none."""
    share = Share.find(token)
    return share if share and visible_to(Run.objects.filter(pk=share.run_id)).exists() else None


def _answer_gone(request: HttpRequest) -> HttpResponse:
    return render(request, "sharing/shared/gone.html", status=404)


@_serve_share
def page(request: HttpRequest, share: Share) -> HttpResponse:
    """The run as of now. Its first page is counted as a view."""
    assert request.resolver_match
    if request.method == "GET" and "page" not in request.GET:
        share.note_view()
    token = str(request.resolver_match.kwargs["token"])
    return render(request, "sharing/shared/page.html", shared_run.read_shared_run(share, token, request.GET))


@_serve_share
def image(request: HttpRequest, share: Share, key: str) -> HttpResponse:
    """The PNG, if the run logged it. Raises Http404 otherwise."""
    _require_logged(share, key)
    return serve_image(request, key, "no-store")


@_serve_share
def thumbnail(request: HttpRequest, share: Share, key: str, size: int) -> HttpResponse:
    """A small WebP of it; until a worker has made that, the whole image. Raises Http404."""
    _require_logged(share, key)
    return serve_thumbnail(request, key, size, "no-store")


def _require_logged(share: Share, key: str) -> None:
    logged = share.run.observations.filter(Q(image=key) | Q(masked=key) | Q(map=key))
    if not logged.exists() and key not in _list_ordinary(share.run):
        raise Http404


def _list_ordinary(run: Run) -> set[str]:
    """Keys of the ordinary images that came with the run's first result."""
    first = run.events.filter(kind="result").order_by("seq").first()
    images = first.content.ordinary_images if first and isinstance(first.content, ExperimentEnded) else ()
    keys = ((each.image, each.masked, each.map.image if each.map else None) for each in images)
    return {key for some in keys for key in some if key}
