"""Pages to sign in: by password, by a one-time link (of the terminal or an admin), with an invitation, and by
single sign-on."""

from __future__ import annotations

from math import ceil
from typing import Any

from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView
from django.db import IntegrityError, transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.decorators import method_decorator
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django_htmx.http import HttpResponseClientRedirect

from experiments.accounts import actions, single_sign_on, throttle
from experiments.accounts.forms import JoinForm, SignInForm
from experiments.core import access
from experiments.core.actors import Actor
from experiments.models import Invitation, LoginLink


@method_decorator(login_not_required, name="dispatch")
class SignIn(LoginView):
    """The sign-in page."""

    template_name = "accounts/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        # A partial request after the session has ended: send the whole page here
        if request.headers.get("HX-Request") and not request.user.is_authenticated:
            return HttpResponseClientRedirect(request.path)
        return super().dispatch(request, *args, **kwargs)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Check name and password; after too many attempts, show when to try again instead."""
        name = request.POST.get("username", "")
        tried = throttle.start_try(request, name)
        if tried.wait:
            form = self.get_form_class()(self.request, initial={"username": name})
            context = self.get_context_data(form=form, wait=format_wait(tried.wait))
            return self.render_to_response(context, status=429, headers={"Retry-After": str(tried.wait)})
        request.came_by = "password"  # type: ignore[attr-defined]
        response = super().post(request, *args, **kwargs)
        if request.user.is_authenticated:
            throttle.clear_tries(tried)
            throttle.remember(response, name)
        return response

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**kwargs) | {"single_sign_on": single_sign_on.label()}


def format_wait(seconds: int) -> str:
    """Return the time to wait in words, rounded up."""
    number, unit = (seconds, "second") if seconds < 90 else (ceil(seconds / 60), "minute")
    return f"{number} {unit}{'s' * (number != 1)}"


@login_not_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def enter(request: HttpRequest, token: str) -> HttpResponse:
    """Sign in with a valid link, by a button."""
    # Chats and mail programs open links for previews, and must not use them up
    user = LoginLink.redeem(token) if request.method == "POST" else None
    if user is not None:
        request.came_by = "link"  # type: ignore[attr-defined]
        login(request, user)
        return redirect("overview")
    link = LoginLink.find(token)
    if link is not None:
        return render(request, "accounts/enter.html", {"link": link})
    # No explanation of a used link for those who are signed in already
    if request.user.is_authenticated:
        return redirect("overview")
    return render(request, "accounts/link_spent.html", status=410)


# --- with an invitation ---


@login_not_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def join(request: HttpRequest, token: str) -> HttpResponse:
    """Join the team with a valid invitation; a signed-in user without a role joins with their account."""
    invitation = Invitation.find(token)
    if access.role_of(request.user) is not None:
        return render(request, "accounts/joined_already.html")
    if invitation is None or invitation.state != "open":
        return _invitation_gone(request)
    if not isinstance(request.user, User):
        return _join_as_newcomer(request, invitation, token)
    if request.method != "POST":
        return render(request, "accounts/join.html", {"invitation": invitation, "stranger": request.user})
    admitted = actions.admit(Actor.behind(request, request.user), invitation)
    return redirect("overview") if admitted else _invitation_gone(request)


def _join_as_newcomer(request: HttpRequest, invitation: Invitation, token: str) -> HttpResponse:
    form = JoinForm(request.POST or None)
    if not form.is_valid():
        context = {"form": form, "invitation": invitation, "token": token, "single_sign_on": single_sign_on.label()}
        return render(request, "accounts/join.html", context, status=400 if form.is_bound else 200)
    try:
        with transaction.atomic():
            user = form.save()
            admitted = actions.admit(Actor.behind(request, user), invitation)
            # If another person was faster, the new account goes as well
            transaction.set_rollback(not admitted)
    except IntegrityError:  # another person took the name at the same moment
        admitted = False
    if not admitted:
        return _invitation_gone(request)
    request.came_by = "invitation"  # type: ignore[attr-defined]
    login(request, user)
    return redirect("overview")


def _invitation_gone(request: HttpRequest) -> HttpResponse:
    return render(request, "accounts/invitation_gone.html", status=410)


# --- by single sign-on ---


@login_not_required
@never_cache
@require_POST
def go_to_provider(request: HttpRequest) -> HttpResponse:
    """Start to sign in, or to join with an invitation."""
    invitation = Invitation.find(request.POST.get("join", ""))
    return leave(request, {"join": invitation.pk} if invitation else {})


def leave(request: HttpRequest, data: dict[str, Any]) -> HttpResponse:
    """Show a page that continues to the provider."""
    if not single_sign_on.is_on():
        raise Http404
    further = request.POST.get("next", "")
    # `next` must not lead to another site
    if not url_has_allowed_host_and_scheme(further, {request.get_host()}, require_https=request.is_secure()):
        further = ""
    found = single_sign_on.start_sign_in(request, data, further)
    if isinstance(found, HttpResponse):
        return found
    # The site's policy allows no form to lead elsewhere, even by a redirect
    return render(request, "accounts/leaving.html", {"url": found, "name": single_sign_on.label()})


@login_not_required
@never_cache
@require_GET
def come_back(request: HttpRequest) -> HttpResponse:
    """Handle the visitor's return from the provider. HEAD is refused: a preview must not use up the state."""
    if not single_sign_on.is_on():
        raise Http404
    return single_sign_on.complete_sign_in(request)
