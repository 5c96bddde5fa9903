"""Pages of experiments (a gallery of observations, or a list of experiments), of one experiment, and of images."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from experiments.core import access
from experiments.core.access import HtmxRequest
from experiments.core.paging import number_of
from experiments.core.system_names import SystemNameMasker
from experiments.core.thumbnails import BEGINNING, ImageUrls
from experiments.core.visibility import list_images
from experiments.display import events, log_entries
from experiments.display.parameter_plots import draw_parameters
from experiments.gallery import observations
from experiments.gallery.image_plot import draw_uses
from experiments.gallery.images import FOREVER, find_usage, serve_image, serve_thumbnail
from experiments.gallery.lists import LIST_SORTS, MORE, OF_FILES, SORTS, Filters
from experiments.models import ExportSubject, Image
from experiments.runs.filter_words import describe_filter
from workers.record.events import ExperimentEnded

VIEWS = {"": "Gallery", "list": "Experiments"}


@require_safe
def index(request: HtmxRequest) -> HttpResponse:
    """Show both views; htmx gets the results alone."""
    filters = Filters(request.GET, SystemNameMasker(access.require(request)))
    view = request.GET.get("view", "") if request.GET.get("view") in VIEWS else ""
    filters.offer(LIST_SORTS if view else SORTS)
    context: dict[str, Any] = {
        "filters": filters,
        "view": view,
        "views": VIEWS.items(),
        "rest_open": any(request.GET.get(name) for name in MORE),
        "words": describe_filter("experiments" if view else "images", _list_filled_fields(filters)),
        **_find_page(filters, view, request.GET.get("page", "")),
    }
    # After "back", htmx asks for an address that it no longer has in its cache: it needs the whole page.
    alone = request.htmx and not request.htmx.history_restore_request
    return render(request, "gallery/found.html" if alone else "gallery/index.html", context | {"alone": alone})


def _list_filled_fields(filters: Filters) -> dict[str, str]:
    return {name: text for name, text in filters.params().items() if name in OF_FILES}


def _find_page(filters: Filters, view: str, page: str) -> dict[str, Any]:
    """Return the results of the filters, or why there can be none."""
    problems = [] if filters.is_valid() else filters.problems
    number = number_of(page)
    if not number:
        problems.append(f"Page: “{page[:40]}” is no number of a page. They count from 1.")
    if problems:
        return {"problems": problems}
    shown = observations.find_experiments(filters, number) if view == "list" else observations.find(filters, number)
    return {**shown, "any": filters.any or shown["page"].count.rows > 0, "export": export(filters, view)}


def export(filters: Filters, view: str) -> tuple[str, str]:
    """Return the subject and the query of a file with all results of the filters."""
    what = ExportSubject.EXPERIMENTS if view == "list" else ExportSubject.OBSERVATIONS
    given = _list_filled_fields(filters)
    if not view and filters.sorted_by in {"rise", "drop"}:
        given["origin"] = "edited"  # these orders show edits alone
    return str(what), urlencode(given)


@require_safe
def experiment(request: HttpRequest, pk: int, n: int) -> HttpResponse:
    """Show one experiment: its program, output, calls and images, and what the agent said before it."""
    run = access.get_run(request, pk)
    row = get_object_or_404(run.experiments.select_related("run").defer("state"), number=n)
    event = run.events.filter(seq=row.seq).first()
    result = event.content if event and isinstance(event.content, ExperimentEnded) else None
    reply = run.events.filter(kind="reply", payload__round=row.round).order_by("-seq").first()
    context = {
        "run": run,
        "experiment": row,
        "event": event,
        "result": result,
        "reply": reply and reply.content,
        "entries": log_entries.entries(result, log_entries.originals(run, [result])) if result else [],
        "parameter_plots": draw_parameters(result.observations) if result else [],
        "scale": events.scale_of(run),
        "before": run.experiments.filter(number__lt=n).only("number", "run").order_by("-number").first(),
        "after": run.experiments.filter(number__gt=n).only("number", "run").order_by("number").first(),
    }
    return render(request, "gallery/page.html", context)


# --- images ---


@require_safe
def image(request: HttpRequest, key: str) -> HttpResponse:
    """Return the PNG file."""
    access.require(request)
    return serve_image(request, key)


@require_safe
def thumbnail(request: HttpRequest, key: str, size: int) -> HttpResponse:
    """Return a small WebP; until a worker has made it, the whole image."""
    access.require(request)
    return serve_thumbnail(request, key, size)


@require_safe
def picture(request: HttpRequest, beginning: str) -> HttpResponse:
    """Redirect to the small version of the image whose key begins like this."""
    access.require(request)
    # Keys are hexadecimal, and "g" comes after "f": a range uses the index in every database.
    known = Image.objects.filter(key__gte=beginning, key__lt=f"{beginning}g") if len(beginning) == BEGINNING else None
    key = known.order_by("key").values_list("key", flat=True).first() if known else None
    if key is None:
        raise Http404(f"No image is stored under a key that begins with {beginning}.")
    return HttpResponseRedirect(ImageUrls.of(key).small, headers={"Cache-Control": FOREVER})


@require_safe
def image_page(request: HttpRequest, key: str) -> HttpResponse:
    """Show what is known of an image, and all its uses."""
    user = access.require(request)
    names = SystemNameMasker(user)
    found = get_object_or_404(list_images(Image.objects.all(), user), pk=key)
    context = {"image": found, "uses_plot": draw_uses(found, names), **find_usage(found, request.GET, names)}
    return render(request, "gallery/image_page.html", context)
