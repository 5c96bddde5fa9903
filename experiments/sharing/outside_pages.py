"""Pages under a share link: a run or a study, read-only, with no way into the application.

The token in the URL is a secret: responses are not cached or indexed, and no referrer is sent. Revoked, expired and
unknown links get the same response after the same query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.contrib.auth.decorators import login_not_required
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from experiments.core.display_name import person
from experiments.core.paging import Page
from experiments.core.system_names import SystemNameMasker
from experiments.core.visibility import visible_to
from experiments.gallery.images import serve_image, serve_thumbnail
from experiments.models import Event, Observation, Run, Share
from experiments.sharing import shared_run
from experiments.sharing.shared_run import SharedImages
from experiments.studies import parts
from experiments.studies.lists import find_run, has_exemplar, list_items, list_runs
from workers.record.events import Audience, ExperimentEnded

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
    """Wrap a view of what a valid token shares. Anything that is missing gets the same response."""

    @login_not_required
    @require_safe
    @wraps(view)
    def answer(request: HttpRequest, token: str, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        # The same page for every failure: a reader cannot learn whether a token ever was valid.
        share = _find_share(token)
        try:
            response = view(request, share, *args, **kwargs) if share else _answer_gone(request)
        except Http404:
            response = _answer_gone(request)
        # Also on images and on the page of failures.
        for name, value in HEADERS.items():
            response.headers[name] = value
        return response

    return answer


def _find_share(token: str) -> Share | None:
    """Return the share of a valid token. None if its run is hidden while people write labels."""
    share = Share.find(token)
    if share and share.run and not visible_to(Run.objects.filter(pk=share.run.pk)).exists():
        return None
    return share


def _answer_gone(request: HttpRequest) -> HttpResponse:
    return render(request, "sharing/shared/gone.html", status=404)


@_serve_share
def page(request: HttpRequest, share: Share) -> HttpResponse:
    """Show the run or the study as it is now. Only the first page counts as a view."""
    token = _token_of(request)
    # Chat programs send HEAD to preview links: those are no readers.
    if request.method == "GET" and "page" not in request.GET:
        share.note_view()
    if share.run:
        context = shared_run.read_shared_run(share, share.run, token, request.GET)
        return render(request, "sharing/shared/page.html", context)
    return render(request, "sharing/shared/study.html", _read_shared_study(share, token, request.GET))


@_serve_share
def run_page(request: HttpRequest, share: Share, number: int) -> HttpResponse:
    """Show a run of the study. Raises Http404 if the study does not contain it."""
    token = _token_of(request)
    run = find_run(share.study, number) if share.study else None
    if run is None:
        raise Http404
    back = {"study": share.study, "back": reverse("shared", args=[token])}
    context = shared_run.read_shared_run(share, run, token, request.GET)
    return render(request, "sharing/shared/page.html", context | back)


def _token_of(request: HttpRequest) -> str:
    # For the type checker: a request in a view has been resolved.
    assert request.resolver_match
    return str(request.resolver_match.kwargs["token"])


@_serve_share
def image(request: HttpRequest, share: Share, key: str) -> HttpResponse:
    """Return the PNG if it belongs to what is shared. Raises Http404 otherwise."""
    _require_shown(share, key)
    # Not cached, so that a revoked link shows nothing any more.
    return serve_image(request, key, "no-store")


@_serve_share
def thumbnail(request: HttpRequest, share: Share, key: str, size: int) -> HttpResponse:
    """Return a small WebP of the image, or the full image if no worker has made one yet. Raises Http404."""
    _require_shown(share, key)
    return serve_thumbnail(request, key, size, "no-store")


def _require_shown(share: Share, key: str) -> None:
    if share.study is None:
        runs = Run.objects.filter(pk=share.shared.pk)
    elif has_exemplar(share.study, key, SystemNameMasker(None)):
        return
    else:
        runs = list_runs(share.study)
    # Keys are hashes of pixels: an image is served only if it occurs in what is shared.
    logged = Observation.objects.filter(Q(image=key) | Q(masked=key) | Q(map=key), run__in=runs)
    if not logged.exists() and not _is_ordinary(runs, key):
        raise Http404


def _is_ordinary(runs: QuerySet[Run], key: str) -> bool:
    """True if the key is one of the ordinary images that came with the first result of a run."""
    results = Event.objects.filter(run__in=runs, kind="result")
    # Only the first result of a run lists ordinary images.
    earlier = Event.objects.filter(run=OuterRef("run"), kind="result", seq__lt=OuterRef("seq"))
    for event in results.exclude(Exists(earlier)).iterator():
        # They are part of the event, not rows of their own, so they are searched here.
        images = event.content.ordinary_images if isinstance(event.content, ExperimentEnded) else ()
        if any(key in (each.image, each.masked, each.map.image if each.map else None) for each in images):
            return True
    return False


def _read_shared_study(share: Share, token: str, params: Mapping[str, str]) -> dict[str, Any]:
    """Return all that the template shows."""
    study, names, pictures = share.study, SystemNameMasker(None), SharedImages(token)
    assert study is not None, "a link to a run has another page"
    items = list_items(study, names)
    page = Page.of(params, len(items), parts.PAGE_SIZE)
    reader = parts.StudyReader(names, Audience.LINK, lambda run: reverse("shared-run", args=[token, run.pk]), pictures)
    return {
        "share": share,
        "study": study,
        "author": person(study.owner) if share.show_names else "",
        "parts": parts.draw_parts(items[page.start : page.end], reader, page.first),
        "pictures": pictures,
        "names": names,
        "page": page,
        "team": False,
    }
