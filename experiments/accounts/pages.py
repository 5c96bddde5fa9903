"""Settings pages: one's own account (name, password, ways to sign in, sessions, tokens); for admins people with
roles and invitations, and the audit."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.models import User
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from experiments.accounts import actions, audit_query, lists, single_sign_on, throttle
from experiments.accounts.entry_pages import format_wait, leave
from experiments.accounts.forms import (
    ASSIGNABLE,
    FirstPasswordForm,
    InviteForm,
    NameForm,
    NewPasswordForm,
    RoleForm,
    TokenForm,
)
from experiments.accounts.names import clean_name
from experiments.core import access, audit, sessions
from experiments.core.access import HtmxRequest
from experiments.core.actors import Actor
from experiments.core.audit import Verb
from experiments.core.display_name import person
from experiments.core.errors import ActionRefused, StateConflict
from experiments.core.sessions import VISIT
from experiments.core.system_names import SystemNameMasker
from experiments.display.narrowing import list_fields
from experiments.models import ApiToken, Identity, Invitation, Role

AFTER_A_LINK = 3600
"""Seconds after signing in by a one-time link in which a password can be set without the old one: it was forgotten."""
MAY = {
    Role.VIEWER: "reads everything",
    Role.RESEARCHER: "asks, steers, comments and puts up runs for review",
    Role.REVIEWER: "reviews and judges conclusions",
    Role.ADMIN: "manages people, queues and links, and sees the audit",
}
"""What each role may do beyond the one before."""


# --- one's own account ---


@require_safe
@never_cache
def you(request: HttpRequest) -> HttpResponse:
    """Show one's own account."""
    return _show_you(request, access.require(request))


def _show_you(request: HttpRequest, user: User, status: int = 200, **forms_sent: forms.Form) -> HttpResponse:
    context: dict[str, Any] = {
        "name_form": NameForm(initial={"name": user.get_full_name()}),
        "password_form": _password_form(request, user),
        "sessions": sessions.browser_sessions(user),
        "here": request.session.session_key,
        "single_sign_on": single_sign_on.label(),
        "identities": list(Identity.objects.filter(user=user, provider=single_sign_on.name())),
        "has_password": user.has_usable_password(),
        **forms_sent,
    }
    return render(request, "accounts/you.html", context, status=status)


@require_POST
def rename(request: HttpRequest) -> HttpResponse:
    """Change one's own display name."""
    actor, form = Actor.of(request), NameForm(request.POST)
    if not form.is_valid():
        return _show_you(request, actor.person, 400, name_form=form)
    actions.rename(actor, form.cleaned_data["name"])
    return redirect("settings-you")


def _password_form(request: HttpRequest, user: User, data: Any = None) -> FirstPasswordForm:
    """Return the form. It asks for the old password, unless there is none, or the user just came by a one-time link."""
    visit = request.session.get(VISIT, {})
    by_link = visit.get("how") == "link" and time.time() - visit.get("began", 0) < AFTER_A_LINK
    kind = NewPasswordForm if user.has_usable_password() and not by_link else FirstPasswordForm
    return kind(user, data)


@require_POST
def change_password(request: HttpRequest) -> HttpResponse:
    """Change the password; all other browsers are signed out."""
    actor = Actor.of(request)
    tried = throttle.begin_again(actor.person)
    form = _password_form(request, actor.person, request.POST)
    if tried.wait:
        form.add_error(None, f"Too many tries. This one was not checked; try again in {format_wait(tried.wait)}.")
        return _show_you(request, actor.person, 429, password_form=form)
    if not form.is_valid():
        return _show_you(request, actor.person, 400, password_form=form)
    with transaction.atomic():
        throttle.clear_tries(tried)
        form.save()
        # Without it, the new password would sign this browser out as well
        update_session_auth_hash(request, actor.person)
        sessions.end_all(actor.person, but=request.session.session_key)
        audit.record(actor, Verb.PASSWORD_CHANGED, actor.person)
    messages.success(request, "Your password is changed. All other browsers are signed out.")
    return redirect("settings-you")


@require_POST
def end_other_sessions(request: HttpRequest) -> HttpResponse:
    """Sign out everywhere else."""
    ended = actions.end_sessions(Actor.of(request), but=request.session.session_key)
    messages.success(request, f"Signed out in {ended} other browser{'s' * (ended != 1)}.")
    return redirect("settings-you")


@require_POST
def connect_provider(request: HttpRequest) -> HttpResponse:
    """Start to add the provider as another way to sign in."""
    user = access.require(request)
    return leave(request, {"connect": user.pk})


@require_POST
def disconnect_provider(request: HttpRequest) -> HttpResponse:
    """Disconnect the provider from this account; only if it has a password."""
    actor = Actor.of(request)
    if not actor.person.has_usable_password():
        messages.error(request, "Choose a password first: otherwise you could not sign in again.")
        return redirect("settings-you")
    with transaction.atomic():
        gone, _ = Identity.objects.filter(user=actor.person, provider=single_sign_on.name()).delete()
        if gone:
            audit.record(actor, Verb.SIGN_ON_DISCONNECTED, actor.person)
    return redirect("settings-you")


# --- one's own tokens ---


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def tokens(request: HttpRequest) -> HttpResponse:
    """Show and create one's own tokens for scripts; a new one is shown once, in the answer to its form."""
    actor = Actor.of(request)
    form = TokenForm(request.POST) if request.method == "POST" else TokenForm()
    made = None
    if form.is_bound and form.is_valid():
        try:
            made = actions.make_token(actor, **form.cleaned_data)
        except StateConflict as error:
            form.add_error(None, str(error))
    token, address = made[1] if made else "YOUR-TOKEN", request.build_absolute_uri(f"{reverse('api:root')}me")
    context: dict[str, Any] = {
        "tokens": list(ApiToken.objects.filter(user=actor.person)[: 2 * actions.MAX_TOKENS]),
        "form": form if made is None else TokenForm(),
        "made": made,
        "command": f'curl -H "Authorization: Bearer {token}" {address}',
        "mcp_address": (mcp_address := request.build_absolute_uri(f"{reverse('overview')}mcp")),
        "mcp_configuration": _configure_mcp(mcp_address, token),
    }
    return render(request, "accounts/tokens.html", context, status=400 if form.errors else 200)


def _configure_mcp(address: str, token: str) -> str:
    """Return the text for the configuration of an MCP client."""
    server = {"type": "http", "url": address, "headers": {"Authorization": f"Bearer {token}"}}
    return json.dumps({"mcpServers": {"maia-web": server}}, indent=2)


@require_POST
def revoke_token(request: HttpRequest, pk: int) -> HttpResponse:
    """Revoke one of one's own tokens."""
    actor = Actor.of(request)
    actions.revoke_token(actor, get_object_or_404(ApiToken, pk=pk, user=actor.person))
    return redirect("settings-tokens")


# --- people, for admins ---


@require_safe
@never_cache
def people(request: HttpRequest) -> HttpResponse:
    """Show all people and invitations."""
    access.require(request, Role.ADMIN)
    return _show_people(request)


def _show_people(request: HttpRequest, status: int = 200, **more: Any) -> HttpResponse:
    words = clean_name(request.GET.get("q", ""))
    context: dict[str, Any] = {
        "found": lists.list_people(words),
        "words": words,
        "roles": ASSIGNABLE,
        "may": [(role, role.label, MAY[role]) for role in Role],
        "form": InviteForm(),
        **more,
    }
    return render(request, "accounts/people.html", context, status=status)


@require_POST
@never_cache
def invite(request: HttpRequest) -> HttpResponse:
    """Create an invitation; its link is shown once, in the answer."""
    actor, form = Actor.of(request, Role.ADMIN), InviteForm(request.POST)
    if not form.is_valid():
        return _show_people(request, 400, form=form)
    invitation, token = actions.invite(actor, **form.cleaned_data)
    return _show_people(request, invited=invitation, link=request.build_absolute_uri(reverse("join", args=[token])))


@require_POST
def revoke_invitation(request: HttpRequest, pk: int) -> HttpResponse:
    """Revoke an invitation."""
    actor = Actor.of(request, Role.ADMIN)
    actions.revoke_invitation(actor, get_object_or_404(Invitation, pk=pk))
    return redirect("settings-people")


@require_POST
@never_cache
def make_sign_in_link(request: HttpRequest, pk: int) -> HttpResponse:
    """Create a link that signs a member in once, after a forgotten password; it is shown once, in the answer."""
    actor = Actor.of(request, Role.ADMIN)
    user = get_object_or_404(User, pk=pk, is_active=True, member__isnull=False)
    link = request.build_absolute_uri(reverse("enter", args=[actions.make_sign_in_link(actor, user)]))
    return _show_people(request, linked=user, link=link)


@require_POST
def set_role(request: HttpRequest, pk: int) -> HttpResponse:
    """Set another role for a member, or the first for a user without."""
    actor = Actor.of(request, Role.ADMIN)
    user, form = get_object_or_404(User, pk=pk), RoleForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Choose a role from the list.")
        return redirect("settings-people")
    role, was = form.cleaned_data["role"], form.cleaned_data["was"]
    return _act(request, f"{person(user)} is {role.label} now.", lambda: actions.set_role(actor, user, role, was))


@require_POST
def set_active(request: HttpRequest, pk: int) -> HttpResponse:
    """Deactivate an account, or activate it again."""
    actor, user = Actor.of(request, Role.ADMIN), get_object_or_404(User, pk=pk)
    if request.POST.get("active") == "yes":
        return _act(request, f"{person(user)} can sign in again.", lambda: actions.reactivate(actor, user))
    done = f"{person(user)} is signed out everywhere and cannot sign in."
    return _act(request, done, lambda: actions.deactivate(actor, user))


@require_POST
def remove(request: HttpRequest, pk: int) -> HttpResponse:
    """Remove a member's role."""
    actor, user = Actor.of(request, Role.ADMIN), get_object_or_404(User, pk=pk)
    done = f"{person(user)} does not belong to the team any more."
    return _act(request, done, lambda: actions.remove(actor, user))


def _act(request: HttpRequest, done: str, act: Callable[[], None]) -> HttpResponse:
    """Do it and show a message, or why it was refused."""
    try:
        act()
    except ActionRefused as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(request, done)
    return redirect("settings-people")


# --- the audit, for admins ---


@require_safe
@never_cache
def audit_entries(request: HtmxRequest) -> HttpResponse:
    """Show the entries that the address selects, newest first; htmx gets the list alone."""
    access.require(request, Role.ADMIN)
    found = audit_query.AuditQuery.read(request.GET.dict())
    shown = audit_query.page(found, request.GET.get("before", ""))
    context = {"found": found, "page": shown, "runs": shown.runs, "formats": audit_query.FORMATS}
    part = request.htmx and not request.htmx.history_restore_request
    if not part:
        context |= {
            "people": User.objects.filter(member__isnull=False).order_by("username").values_list("username", flat=True),
            "fields": list_fields(audit_query.FILTERS, found.values, SystemNameMasker(None)),
        }
    response = render(request, "accounts/audit_list.html" if part else "accounts/audit.html", context)
    patch_vary_headers(response, ["HX-Request", "HX-History-Restore-Request"])
    return response


@require_safe
def audit_file(request: HttpRequest, form: str) -> StreamingHttpResponse:
    """Return all of the same entries, as CSV or JSON Lines. The download is recorded too."""
    actor = Actor.of(request, Role.ADMIN)
    if form not in audit_query.FORMATS:
        raise Http404("The audit comes as csv or as jsonl.")
    found = audit_query.AuditQuery.read(request.GET.dict())
    audit.record(actor, Verb.AUDIT_EXPORTED, None, format=form, filter=found.query)
    name = f'attachment; filename="audit-{timezone.now():%Y-%m-%d}.{form}"'
    headers = {"Content-Disposition": name, "X-Content-Type-Options": "nosniff", "Cache-Control": "private, no-store"}
    return StreamingHttpResponse(
        audit_query.stream_entries(found, form), content_type=audit_query.FORMATS[form], headers=headers
    )
