"""`/metrics` for a monitoring program that has the token from the settings, and for admins."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from experiments.core import access
from experiments.installation.metrics import write_metrics
from experiments.models import Role

_KIND = "text/plain; version=0.0.4; charset=utf-8"


@require_safe
@never_cache
@login_not_required
def metrics(request: HttpRequest) -> HttpResponse:
    """Return the metrics. Others get a 404."""
    if not _may_read(request):
        raise Http404("There is nothing here.")
    return HttpResponse(write_metrics(), content_type=_KIND)


def _may_read(request: HttpRequest) -> bool:
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    token = settings.METRICS_TOKEN
    if token and scheme.lower() == "bearer":
        return constant_time_compare(given.strip(), token)
    return access.role_in(request) == Role.ADMIN
