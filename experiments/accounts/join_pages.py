"""The page behind an invitation: a newcomer chooses a name and a password, or comes by single sign-on."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from experiments.accounts import single_sign_on, team
from experiments.accounts.forms import JoinForm
from experiments.core import access
from experiments.models import Invitation


@login_not_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest, token: str) -> HttpResponse:
    """Join the team with a good invitation; whoever is signed in and a stranger joins as who they are."""
    invitation = Invitation.find(token)
    if access.role_of(request.user) is not None:
        return render(request, "accounts/joined_already.html")
    if invitation is None or invitation.state != "open":
        return gone(request)
    if isinstance(request.user, User):
        return as_stranger(request, request.user, invitation)
    return as_newcomer(request, invitation, token)


def as_stranger(request: HttpRequest, user: User, invitation: Invitation) -> HttpResponse:
    if request.method != "POST":
        return render(request, "accounts/join.html", {"invitation": invitation, "stranger": user})
    return redirect("overview") if team.admit(request, user, invitation) else gone(request)


def as_newcomer(request: HttpRequest, invitation: Invitation, token: str) -> HttpResponse:
    form = JoinForm(request.POST or None)
    if form.is_valid():
        user = newcomer(request, form, invitation)
        if user is None:
            return gone(request)
        request.came_by = "invitation"  # type: ignore[attr-defined]
        login(request, user)
        return redirect("overview")
    context: dict[str, Any] = {
        "form": form,
        "invitation": invitation,
        "token": token,
        "single_sign_on": single_sign_on.label(),
    }
    return render(request, "accounts/join.html", context, status=400 if form.is_bound else 200)


def newcomer(request: HttpRequest, form: JoinForm, invitation: Invitation) -> User | None:
    """The new account, in the team; None if somebody else took the invitation, or the name, at the same moment."""
    try:
        with transaction.atomic():
            user = form.save()
            if not team.admit(request, user, invitation):
                transaction.set_rollback(True)
                return None
            return user
    except IntegrityError:
        return None


def gone(request: HttpRequest) -> HttpResponse:
    return render(request, "accounts/invitation_gone.html", status=410)
