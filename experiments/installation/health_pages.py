"""Health checks without signing in: does the web process answer, and does everything that it needs?

Only signed-in users see reasons.
"""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from experiments.core import access
from experiments.installation.health import probe

UNREADY = 503


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
