"""People who come and go: recorded whichever way they sign in; how a session begins, and that it is still used.
Loaded by the app."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from experiments.core import audit, client_ip, sessions
from experiments.core.actors import Actor
from experiments.core.audit import Verb
from experiments.core.sessions import VISIT
from experiments.models import Member

EVERY = 60
"""Seconds: how exact it is kept when a person was last seen; one write a minute at most."""
BY_ITSELF = "X-By-Itself"
"""The header with which static/js/display/main.js marks what an open page asks again and again, with nobody doing
anything: that keeps no session alive."""
AGENT_CHARS = 200
KNOWN, UNKNOWN = "of an account", "of no account"


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
    audit.record(Actor.behind(request, user), Verb.PERSON_SIGNED_IN, user)


@receiver(user_logged_out)
def record_sign_out(request: HttpRequest, user: User | None, **_: Any) -> None:
    """Signing out without having signed in is nothing."""
    if user is not None:
        audit.record(Actor.behind(request, user), Verb.PERSON_SIGNED_OUT, user)


@receiver(user_login_failed)
def record_failure(credentials: dict[str, Any], request: HttpRequest | None = None, **_: Any) -> None:
    """A name is told only if it is somebody's: people type passwords into the wrong field."""
    tried = User.objects.filter(username=str(credentials.get("username", ""))[:150]).first()
    actor = Actor.behind(request, None) if request else Actor(None)
    audit.record(actor, Verb.SIGN_IN_FAILED, tried, name=KNOWN if tried else UNKNOWN)


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
    now, visit = time.time(), request.session.get(VISIT, {})
    if now - visit.get("seen", 0) < EVERY:
        return
    request.session[VISIT] = {"began": now, **visit, "seen": now}
    late = timezone.now() - timedelta(seconds=EVERY)
    Member.objects.filter(user=user).exclude(seen__gt=late).update(seen=timezone.now())
