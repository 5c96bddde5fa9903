"""Page of AIM's claims, each with the figures of the newest evaluations."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from experiments.core import access
from experiments.evaluations import claims
from workers.record.evaluations import CAVEAT


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Show all claims. Those not measured yet say how to measure them."""
    access.require(request)
    context = {
        "breadcrumbs": [("Evaluations", reverse("evaluations")), ("What AIM claims", request.path)],
        "rows": claims.set_beside(claims.find_newest()),
        "limits": claims.LIMITS,
        "caveat": CAVEAT,
    }
    return render(request, "evaluations/claims.html", context)
