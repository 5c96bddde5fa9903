"""Check what a user may see or change; the first call of every view and consumer.

One installation is one team. LoginRequiredMiddleware sends anonymous visitors to the sign-in page. A signed-in user
without a role gets 404, a member whose role is too low 403.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib.auth.models import AnonymousUser, User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404
from django_htmx.middleware import HtmxDetails

from experiments.core import sessions, visibility
from experiments.models import Member, Role, Run

TOPIC = re.compile(r"(?P<name>[a-z]{1,20}(\.[a-z]{1,20})?)(\.(?P<number>[1-9][0-9]{0,17}))?", re.ASCII)
_NO_ROLE = max(Role) + 1
"""A role that no user has: what an unknown topic takes."""


class HtmxRequest(HttpRequest):
    """A request after the middleware; `htmx` is true if htmx made it, to load a part of the page."""

    htmx: HtmxDetails


def role_of(user: Any) -> Role | None:
    """Return the user's role; None for users without a role and anonymous visitors."""
    if not user.is_authenticated:
        return None
    # Read from the database: a socket keeps the user as it was when the socket opened.
    member = Member.objects.filter(user_id=user.pk, user__is_active=True).first()
    return Role(member.role) if member else None


def require(request: HttpRequest, role: Role = Role.VIEWER) -> User:
    """Return the signed-in member, who has at least this role.

    Raises Http404 for users without a role. Raises PermissionDenied if the role is too low, or if the address names
    a run that is hidden while people write labels.
    """
    held = role_of(request.user)
    if held is None:
        raise Http404("There is nothing here.")
    if held < role:
        raise PermissionDenied(f"This needs the role {role.label}; yours is {held.label}. Ask an admin of your team.")
    # Here, since every view calls `require`: none can forget to hide the run.
    visibility.check_route(request)
    # Templates ask for it many times, through `role_in`.
    vars(request)["held_role"] = held
    assert isinstance(request.user, User)
    return request.user


def role_in(request: HttpRequest) -> Role | None:
    """Return the user's role as `require` found it for this request. Use it to decide what a page offers, never to
    allow a change."""
    if "held_role" not in vars(request):
        vars(request)["held_role"] = role_of(getattr(request, "user", AnonymousUser()))
    held: Role | None = vars(request)["held_role"]
    return held


def may_change(user: User, *owners: int | None) -> bool:
    """True if the user may change a row of these owners: the owners and admins may. The caller checks the role. A
    row without an owner, such as an imported label, may be changed by everyone with the role."""
    known = {owner for owner in owners if owner is not None}
    return not known or user.pk in known or role_of(user) == Role.ADMIN


def get_run(request: HttpRequest, pk: int, role: Role = Role.VIEWER) -> Run:
    """Return the run, for a member who has at least this role."""
    require(request, role)
    return get_object_or_404(Run, pk=pk)


def is_still_signed_in(scope: Mapping[str, Any]) -> bool:
    """True if the session that opened a WebSocket has not ended. Reads the database."""
    session = scope.get("session")
    return session is None or not session.session_key or sessions.is_alive(session.session_key)


TOPICS = {
    "comments.run": Role.VIEWER,
    "trial": Role.VIEWER,
    "queue": Role.VIEWER,
    "runs": Role.VIEWER,
    "user": Role.VIEWER,
}
"""Topic without its number -> the role that may receive its bell (`notify.publish_topic`)."""


def may_hear(user: Any, topics: Sequence[str]) -> bool:
    """True if the user of a WebSocket may receive the bells of all these topics, such as `comments.run.7`; False
    for none. Reads the database."""
    held = role_of(user)
    if held is None or not topics:
        return False
    for topic in topics:
        found = TOPIC.fullmatch(topic)
        if found is None or held < TOPICS.get(found["name"], _NO_ROLE):
            return False
        # The bell of a person's notifications is for that person alone.
        if found["name"] == "user" and found["number"] != str(user.pk):
            return False
    return True


def may_watch(user: Any, run_id: int) -> bool:
    """True if the user of a WebSocket may watch the run. Reads the database."""
    return role_of(user) is not None and visibility.visible_to(Run.objects.filter(pk=run_id)).exists()
