"""Settings, You: one's name, password, ways to sign in, and sessions."""

from __future__ import annotations

import time
from typing import Any

from allauth.socialaccount.models import SocialAccount
from django import forms
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.forms import PasswordChangeForm, SetPasswordForm
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from experiments.accounts import single_sign_on, throttle
from experiments.accounts.forms import NameForm
from experiments.accounts.sign_in_pages import in_words
from experiments.accounts.single_sign_on_pages import leave
from experiments.core import access, audit, sessions
from experiments.core.audit import Verb
from experiments.core.sessions import VISIT

AFTER_A_LINK = 3600
"""Seconds for which whoever came by a one-time link may choose a password without the old one: it was forgotten."""


@require_safe
@never_cache
def page(request: HttpRequest) -> HttpResponse:
    """One's own account."""
    user = access.require(request)
    return show(request, user)


def show(request: HttpRequest, user: User, status: int = 200, **forms_sent: forms.Form) -> HttpResponse:
    context: dict[str, Any] = {
        "name_form": NameForm(initial={"name": user.get_full_name()}),
        "password_form": password_form(request, user),
        "visits": sessions.visits(user),
        "here": request.session.session_key,
        "single_sign_on": single_sign_on.label(),
        "identities": list(SocialAccount.objects.filter(user=user, provider=single_sign_on.name())),
        "has_password": user.has_usable_password(),
        **forms_sent,
    }
    return render(request, "accounts/you.html", context, status=status)


@require_POST
def rename(request: HttpRequest) -> HttpResponse:
    """Another name on the pages."""
    user = access.require(request)
    form = NameForm(request.POST)
    if not form.is_valid():
        return show(request, user, 400, name_form=form)
    with transaction.atomic():
        before, user.first_name, user.last_name = user.get_full_name(), form.cleaned_data["name"], ""
        user.save(update_fields=["first_name", "last_name"])
        audit.record(request, Verb.PERSON_RENAMED, user, before=before, after=user.get_full_name())
    return redirect("settings-you")


# --- the password ---


def password_form(request: HttpRequest, user: User, data: Any = None) -> SetPasswordForm[User]:
    """It asks for the old password, unless there is none, or it was forgotten and a one-time link led here."""
    visit = request.session.get(VISIT, {})
    by_link = visit.get("how") == "link" and time.time() - visit.get("began", 0) < AFTER_A_LINK
    kind = PasswordChangeForm if user.has_usable_password() and not by_link else SetPasswordForm
    return kind(user, data)


@require_POST
def change_password(request: HttpRequest) -> HttpResponse:
    """A new password; all other browsers are signed out."""
    user = access.require(request)
    tried = throttle.begin_again(user)
    form = password_form(request, user, request.POST)
    if tried.wait:
        form.add_error(None, f"Too many tries. Nobody looked at this one; try again in {in_words(tried.wait)}.")
        return show(request, user, 429, password_form=form)
    if not form.is_valid():
        return show(request, user, 400, password_form=form)
    with transaction.atomic():
        throttle.succeed(tried)
        form.save()
        update_session_auth_hash(request, user)
        sessions.end_all(user, but=request.session.session_key)
        audit.record(request, Verb.PASSWORD_CHANGED, user)
    messages.success(request, "Your password is changed. All other browsers are signed out.")
    return redirect("settings-you")


# --- sessions ---


@require_POST
def end_others(request: HttpRequest) -> HttpResponse:
    """Sign out everywhere else."""
    user = access.require(request)
    with transaction.atomic():
        ended = sessions.end_all(user, but=request.session.session_key)
        audit.record(request, Verb.SESSIONS_ENDED, user, number=ended)
    messages.success(request, f"Signed out in {ended} other browser{'s' * (ended != 1)}.")
    return redirect("settings-you")


# --- single sign-on ---


@require_POST
def connect(request: HttpRequest) -> HttpResponse:
    """Begin to add the provider as one more way to sign in."""
    user = access.require(request)
    return leave(request, {"connect": user.pk})


@require_POST
def disconnect(request: HttpRequest) -> HttpResponse:
    """The provider opens this account no longer; only for who has a password."""
    user = access.require(request)
    if not user.has_usable_password():
        messages.error(request, "Choose a password first: otherwise you could not sign in again.")
        return redirect("settings-you")
    with transaction.atomic():
        gone, _ = SocialAccount.objects.filter(user=user, provider=single_sign_on.name()).delete()
        if gone:
            audit.record(request, Verb.SIGN_ON_DISCONNECTED, user)
    return redirect("settings-you")
