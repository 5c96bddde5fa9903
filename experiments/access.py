"""Who may see or change what: the first line of every view and consumer.

One installation is one team. Anonymous visitors never get here (LoginRequiredMiddleware sends them to the sign-in
page); a signed-in stranger without a role gets 404, a member whose role is too low 403.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404

from experiments.models import Member, Run
from experiments.models.member import Role


def role_of(user: Any) -> Role | None:
    """The user's role, None for strangers and anonymous visitors."""
    if not user.is_authenticated or not user.is_active:
        return None
    member = Member.objects.filter(user_id=user.pk).first()
    return Role(member.role) if member else None


def require(request: HttpRequest, role: Role = Role.VIEWER) -> User:
    """The signed-in member, who has at least this role. Raises Http404 for strangers, PermissionDenied for others."""
    held = role_of(request.user)
    if held is None:
        raise Http404("There is nothing here.")
    if held < role:
        raise PermissionDenied(f"This needs the role {role.label}; yours is {held.label}. Ask an admin of your team.")
    assert isinstance(request.user, User)
    return request.user


def get_run(request: HttpRequest, pk: int, role: Role = Role.VIEWER) -> Run:
    """The run, for a member who has at least this role."""
    require(request, role)
    return get_object_or_404(Run, pk=pk)


def may_watch(user: Any, run_id: int) -> bool:
    """Whether the user of a WebSocket may watch the run. Touches the database."""
    return role_of(user) is not None and Run.objects.filter(pk=run_id).exists()
