"""Settings, audit: who did what, when, to which row, from where; for admins."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from experiments.accounts import audit_query
from experiments.core import access, audit
from experiments.core.access import HtmxRequest
from experiments.core.audit import Verb
from experiments.models.member import Role


@require_safe
@never_cache
def page(request: HtmxRequest) -> HttpResponse:
    """The entries that the address chooses, newest first; the list alone for htmx."""
    access.require(request, Role.ADMIN)
    found = audit_query.read(request.GET.dict())
    shown = audit_query.page(found, request.GET.get("before", ""))
    context = {
        "found": found,
        "page": shown,
        "runs": audit_query.runs_among(shown.entries),
        "formats": audit_query.FORMATS,
    }
    part = request.htmx and not request.htmx.history_restore_request
    if not part:
        context |= {
            "people": User.objects.filter(member__isnull=False).order_by("username").values_list("username", flat=True),
            "verbs": audit_query.distinct("verb"),
            "kinds": audit_query.distinct("row_kind"),
        }
    response = render(request, "accounts/audit_list.html" if part else "accounts/audit.html", context)
    patch_vary_headers(response, ["HX-Request", "HX-History-Restore-Request"])
    return response


@require_safe
def file(request: HttpRequest, form: str) -> StreamingHttpResponse:
    """The same entries, all of them, as CSV or JSON Lines. That it was taken is recorded too."""
    access.require(request, Role.ADMIN)
    if form not in audit_query.FORMATS:
        raise Http404("The audit comes as csv or as jsonl.")
    found = audit_query.read(request.GET.dict())
    audit.record(request, Verb.AUDIT_EXPORTED, None, format=form, filter=found.query)
    name = f'attachment; filename="audit-{timezone.now():%Y-%m-%d}.{form}"'
    headers = {"Content-Disposition": name, "X-Content-Type-Options": "nosniff", "Cache-Control": "private, no-store"}
    return StreamingHttpResponse(
        audit_query.pieces(found, form), content_type=audit_query.FORMATS[form][0], headers=headers
    )
