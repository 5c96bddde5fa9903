"""Notes how a session begins, and that it is still used."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from experiments.core import client_ip, sessions
from experiments.core.sessions import VISIT
from experiments.models import Member

EVERY = 60
"""Seconds: how exact it is kept when a person was last seen; one write a minute at most."""
BY_ITSELF = "X-By-Itself"
"""The header with which static/js/display/main.js marks what an open page asks again and again, with nobody doing
anything: that keeps no session alive."""
AGENT_CHARS = 200


@receiver(user_logged_in)
def start_session(request: HttpRequest, user: User, **_: Any) -> None:
    """A person has signed in: from now on the session's length counts."""
    now = time.time()
    request.session[VISIT] = {
        "began": now,
        "seen": now,
        "how": getattr(request, "came_by", ""),
        "address": client_ip.address(request),
        "agent": request.META.get("HTTP_USER_AGENT", "")[:AGENT_CHARS],
    }
    Member.objects.filter(user=user).update(seen=timezone.now())
    sessions.forget_ended()


class Seen:
    """Middleware, after the one that knows the user: keeps a session that is used from growing idle."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if BY_ITSELF not in request.headers and isinstance(request.user, User):
            note(request, request.user)
        return self.get_response(request)


def note(request: HttpRequest, user: User) -> None:
    """Write down that the person is here, unless that was done a moment ago."""
    now, told = time.time(), request.session.get(VISIT, {})
    if now - told.get("seen", 0) < EVERY:
        return
    request.session[VISIT] = {"began": now, **told, "seen": now}
    late = timezone.now() - timedelta(seconds=EVERY)
    Member.objects.filter(user=user).exclude(seen__gt=late).update(seen=timezone.now())
