"""Health checks and `/metrics`: whether the web process answers, and whether all that it needs does.

The checks need no account, and tell strangers no reason. Metrics need the token of the settings, or an admin.
"""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from experiments.core import access
from experiments.installation.health import probe
from experiments.installation.metrics import write_metrics
from experiments.models import Role

UNREADY = 503
_KIND = "text/plain; version=0.0.4; charset=utf-8"


@require_safe
@never_cache
@login_not_required
def healthz(_: HttpRequest) -> HttpResponse:
    """Answer that this process runs. Checks nothing else."""
    return HttpResponse("ok\n", content_type="text/plain; charset=utf-8")


@require_safe
@never_cache
@login_not_required
def readyz(request: HttpRequest) -> JsonResponse:
    """Return whether each part is ready, with status 503 if one is not. Signed-in users also see why."""
    found = probe()
    ready = not any(found.values())
    # The role is in the database, so it cannot be read if that is down
    tells = not found["database"] and access.role_in(request) is not None
    parts = {name: "ok" if not why else why if tells else "not ready" for name, why in found.items()}
    return JsonResponse({"ready": ready, "parts": parts}, status=200 if ready else UNREADY)


@require_safe
@never_cache
@login_not_required
def metrics(request: HttpRequest) -> HttpResponse:
    """Return the metrics. Raises Http404 for those who may not read them."""
    if not _may_read(request):
        raise Http404("There is nothing here.")
    return HttpResponse(write_metrics(), content_type=_KIND)


def _may_read(request: HttpRequest) -> bool:
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    token = settings.METRICS_TOKEN
    if token and scheme.lower() == "bearer":
        # In constant time, so that its duration does not reveal how much of a token is right
        return constant_time_compare(given.strip(), token)
    return access.role_in(request) == Role.ADMIN
