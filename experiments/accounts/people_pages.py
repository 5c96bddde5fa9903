"""Settings, People: who belongs to the team, in which role; invitations. For admins."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from experiments.accounts import people, team
from experiments.accounts.forms import ASSIGNABLE, InviteForm, RoleForm
from experiments.accounts.names import plain
from experiments.core import access, audit
from experiments.core.audit import Verb
from experiments.core.display_name import person
from experiments.models import Invitation, LoginLink
from experiments.models.member import Role

MAY = {
    Role.VIEWER: "reads everything",
    Role.RESEARCHER: "asks, steers, comments and puts up runs for review",
    Role.REVIEWER: "reviews and judges conclusions",
    Role.ADMIN: "manages people, queues and links, and sees the audit",
}
"""What each role may do beyond the one before."""


@require_safe
@never_cache
def page(request: HttpRequest) -> HttpResponse:
    """Everybody, and who is invited."""
    access.require(request, Role.ADMIN)
    return show(request)


def show(request: HttpRequest, status: int = 200, **more: Any) -> HttpResponse:
    words = plain(request.GET.get("q", ""))
    context: dict[str, Any] = {
        "roll": people.call(words),
        "words": words,
        "roles": ASSIGNABLE,
        "may": [(role, role.label, MAY[role]) for role in Role],
        "form": InviteForm(),
        **more,
    }
    return render(request, "accounts/people.html", context, status=status)


# --- invitations, and links for those who forgot their password: each is shown once ---


@require_POST
@never_cache
def invite(request: HttpRequest) -> HttpResponse:
    """A new invitation; its link stands on the answer, and nowhere else."""
    user = access.require(request, Role.ADMIN)
    form = InviteForm(request.POST)
    if not form.is_valid():
        return show(request, 400, form=form)
    with transaction.atomic():
        invitation, token = Invitation.issue(user, **form.cleaned_data)
        audit.record(request, Verb.INVITATION_MADE, invitation, role=invitation.get_role_display())
    return show(request, invited=invitation, link=request.build_absolute_uri(reverse("join", args=[token])))


@require_POST
def revoke(request: HttpRequest, pk: int) -> HttpResponse:
    """From now on the invitation is of no use."""
    access.require(request, Role.ADMIN)
    invitation = get_object_or_404(Invitation, pk=pk)
    with transaction.atomic():
        if invitation.revoke():
            audit.record(request, Verb.INVITATION_REVOKED, invitation)
    return redirect("settings-people")


@require_POST
@never_cache
def link(request: HttpRequest, pk: int) -> HttpResponse:
    """A link that signs a member in once, for who forgot the password; shown on the answer alone."""
    admin = access.require(request, Role.ADMIN)
    user = get_object_or_404(User, pk=pk, is_active=True, member__isnull=False)
    with transaction.atomic():
        token = LoginLink.issue(user, made_by=admin)
        audit.record(request, Verb.SIGN_IN_LINK_MADE, user)
    return show(request, linked=user, link=request.build_absolute_uri(reverse("enter", args=[token])))


# --- people ---


@require_POST
def set_role(request: HttpRequest, pk: int) -> HttpResponse:
    """Another role for a member, or the first for a stranger."""
    access.require(request, Role.ADMIN)
    user, form = get_object_or_404(User, pk=pk), RoleForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Choose a role from the list.")
        return redirect("settings-people")
    role = form.cleaned_data["role"]
    return act(request, f"{person(user)} is {role.label} now.", team.set_role, user, role, form.cleaned_data["was"])


@require_POST
def set_active(request: HttpRequest, pk: int) -> HttpResponse:
    """Close an account, or open it again."""
    admin = access.require(request, Role.ADMIN)
    user = get_object_or_404(User, pk=pk)
    if request.POST.get("active") == "yes":
        return act(request, f"{person(user)} can sign in again.", team.reactivate, user)
    if user == admin:
        messages.error(request, "You cannot close your own account. Ask another admin.")
        return redirect("settings-people")
    return act(request, f"{person(user)} is signed out everywhere and cannot sign in.", team.deactivate, user)


@require_POST
def remove(request: HttpRequest, pk: int) -> HttpResponse:
    """Make a member a stranger."""
    admin = access.require(request, Role.ADMIN)
    user = get_object_or_404(User, pk=pk)
    if user == admin:
        messages.error(request, "You cannot remove yourself. Ask another admin.")
        return redirect("settings-people")
    return act(request, f"{person(user)} does not belong to the team any more.", team.remove, user)


def act(request: HttpRequest, done: str, deed: Any, *arguments: Any) -> HttpResponse:
    """Do it and say so, or say why not."""
    try:
        deed(request, *arguments)
    except team.Refused as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(request, done)
    return redirect("settings-people")
