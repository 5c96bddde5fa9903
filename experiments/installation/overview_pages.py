"""The Overview: what runs now, what waits for a person, what was concluded lately, how the workers and models are.
And the pulse, by which every open page keeps the counts of its rail true.

An open Overview asks again by itself and names the parts it has by their fingerprints; only parts that have changed
are sent, and nothing moves under the reader's eyes.
"""

from __future__ import annotations

from hashlib import blake2s
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe

from experiments.core import access, worker_status
from experiments.core.access import HtmxRequest
from experiments.installation import dashboard
from experiments.models import VisionModelRow
from experiments.models.member import Role
from experiments.pairwise import judging
from experiments.reviews import lists as review_lists

PARTS = ("now", "waiting", "lately", "workers")
"""Parts of the page, each a template in templates/overview."""


@require_safe
def page(request: HtmxRequest) -> HttpResponse:
    """The whole page; htmx is sent the parts that it does not have, or an empty answer."""
    access.require(request)
    if request.htmx:
        return changed(request)
    now, waiting, lately, workers = drawn(request)
    return render(request, "installation/overview.html", {"columns": [(now, lately), (waiting, workers)]})


def changed(request: HttpRequest) -> HttpResponse:
    """The parts whose fingerprint the page did not name."""
    seen = set(request.GET.getlist("seen"))
    fresh = [part for part in drawn(request) if f"{part['name']}:{part['print']}" not in seen]
    return (
        render(request, "installation/overview/parts.html", {"parts": fresh, "oob": True})
        if fresh
        else HttpResponse(status=204)
    )


def drawn(request: HttpRequest) -> list[dict[str, Any]]:
    """Every part as HTML, with its name and fingerprint."""
    role = access.role_of(request.user) or Role.VIEWER
    context = dashboard.everything() | {
        "may_ask": role >= Role.RESEARCHER,
        "to_review": review_lists.unfinished(request.user),
        "to_judge": judging.unfinished(access.require(request)) if role >= Role.REVIEWER else [],
    }
    html = {name: render_to_string(f"installation/overview/{name}.html", context) for name in PARTS}
    prints = {name: blake2s(text.encode(), digest_size=8).hexdigest() for name, text in html.items()}
    return [{"name": name, "print": prints[name], "html": html[name]} for name in PARTS]


@require_safe
def pulse(request: HttpRequest) -> HttpResponse:
    """How many runs are alive and whether a worker is there; asked by every open page now and then."""
    access.require(request)
    models = list(VisionModelRow.objects.filter(available=True).values_list("name", flat=True))
    return render(request, "display/pulse.html", {"worker": worker_status.is_here(), "models": models})
