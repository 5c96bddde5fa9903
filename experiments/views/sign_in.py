"""Signing in, by password or by the one-time link that the terminal prints."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django_htmx.http import HttpResponseClientRedirect

from experiments.models import LoginLink


@method_decorator(login_not_required, name="dispatch")
class SignIn(LoginView):
    """The sign-in page. A part of a page that asks after the session has ended moves the whole page here."""

    template_name = "sign_in.html"
    redirect_authenticated_user = True

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.headers.get("HX-Request") and not request.user.is_authenticated:
            return HttpResponseClientRedirect(request.path)
        return super().dispatch(request, *args, **kwargs)


@login_not_required
@never_cache
def enter(request: HttpRequest, token: str) -> HttpResponse:
    """Sign in at once with a good link. A spent one explains itself, unless its reader is signed in already."""
    user = LoginLink.redeem(token)
    if user is not None:
        login(request, user)
        return redirect("overview")
    if request.user.is_authenticated:
        return redirect("overview")
    return render(request, "link_spent.html", status=410)
