"""To the provider of single sign-on and back."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from experiments.accounts import single_sign_on
from experiments.models import Invitation


@login_not_required
@never_cache
@require_POST
def go(request: HttpRequest) -> HttpResponse:
    """Begin to sign in, or to join with an invitation."""
    invitation = Invitation.find(request.POST.get("join", ""))
    return leave(request, {"join": invitation.pk} if invitation else {})


def leave(request: HttpRequest, data: dict[str, Any]) -> HttpResponse:
    """A page that leads on to the provider: the policy of the site lets no form lead outside, not even by a detour."""
    if not single_sign_on.is_on():
        raise Http404
    further = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(further, {request.get_host()}, require_https=request.is_secure()):
        further = ""
    found = single_sign_on.begin(request, data, further)
    if isinstance(found, HttpResponse):
        return found
    return render(request, "accounts/leaving.html", {"url": found, "name": single_sign_on.label()})


@login_not_required
@never_cache
@require_safe
def back(request: HttpRequest) -> HttpResponse:
    """The provider has sent somebody back."""
    if not single_sign_on.is_on():
        raise Http404
    return single_sign_on.come_back(request)
