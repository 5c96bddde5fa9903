"""Signing in, by password or by a one-time link: the terminal's, or one that an admin made."""

from __future__ import annotations

from math import ceil
from typing import Any

from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods
from django_htmx.http import HttpResponseClientRedirect

from experiments.accounts import single_sign_on, throttle
from experiments.models import LoginLink


@method_decorator(login_not_required, name="dispatch")
class SignIn(LoginView):
    """The sign-in page. A part of a page that asks after the session has ended moves the whole page here."""

    template_name = "accounts/sign_in.html"
    redirect_authenticated_user = True

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.headers.get("HX-Request") and not request.user.is_authenticated:
            return HttpResponseClientRedirect(request.path)
        return super().dispatch(request, *args, **kwargs)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Look at name and password, unless there were too many tries."""
        name = request.POST.get("username", "")
        tried = throttle.begin(request, name)
        if tried.wait:
            return self.too_many(name, tried.wait)
        request.came_by = "password"  # type: ignore[attr-defined]
        response = super().post(request, *args, **kwargs)
        if request.user.is_authenticated:
            throttle.succeed(tried)
            throttle.remember(response, name)
        return response

    def too_many(self, name: str, wait: int) -> HttpResponse:
        """Nobody looked at the password: say so, and when to come again."""
        form = self.get_form_class()(self.request, initial={"username": name})
        context = self.get_context_data(form=form, wait=in_words(wait))
        return self.render_to_response(context, status=429, headers={"Retry-After": str(wait)})

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**kwargs) | {"single_sign_on": single_sign_on.label()}


def in_words(seconds: int) -> str:
    """How long to wait, rounded up."""
    number, unit = (seconds, "second") if seconds < 90 else (ceil(seconds / 60), "minute")
    return f"{number} {unit}{'s' * (number != 1)}"


@login_not_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def enter(request: HttpRequest, token: str) -> HttpResponse:
    """Sign in with a good link, by a button: chats and mail programs open links to preview them, and spend nothing.

    A spent one explains itself, unless its reader is signed in already.
    """
    user = LoginLink.redeem(token) if request.method == "POST" else None
    if user is not None:
        request.came_by = "link"  # type: ignore[attr-defined]
        login(request, user)
        return redirect("overview")
    link = LoginLink.find(token)
    if link is not None:
        return render(request, "accounts/enter.html", {"link": link})
    if request.user.is_authenticated:
        return redirect("overview")
    return render(request, "accounts/link_spent.html", status=410)
