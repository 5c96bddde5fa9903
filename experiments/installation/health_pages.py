"""What watches the installation asks, without signing in: whether the web process answers, and whether all that it
needs does. Strangers are told no reason.
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
    """This process answers. Asks nothing of anybody else."""
    return HttpResponse("ok\n", content_type="text/plain; charset=utf-8")


@require_safe
@never_cache
@login_not_required
def readyz(request: HttpRequest) -> JsonResponse:
    """Whether each part is ready, status 503 where one is not; why, for those who are signed in."""
    found = probe()
    ready = not any(found.values())
    tells = not found["database"] and access.role_in(request) is not None
    parts = {name: "ok" if not why else why if tells else "not ready" for name, why in found.items()}
    return JsonResponse({"ready": ready, "parts": parts}, status=200 if ready else UNREADY)
