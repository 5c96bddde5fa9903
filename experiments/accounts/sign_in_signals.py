"""Record sign-ins, sign-outs and failures, however people sign in; when a session starts, and that it is in use.
The app loads this module."""

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
"""Precision of when a person was last seen, in seconds; at most one write a minute."""
BY_ITSELF = "X-By-Itself"
"""Header with which static/js/display/main.js marks polling requests of an open page, which do not keep a session
alive."""
AGENT_CHARS = 200
KNOWN, UNKNOWN = "of an account", "of no account"


@receiver(user_logged_in)
def start_session(request: HttpRequest, user: User, **_: Any) -> None:
    """Start the session's maximum length when a person has signed in."""
    now = time.time()
    request.session[VISIT] = {
        "began": now,
        "seen": now,
        "how": getattr(request, "came_by", ""),
        "address": client_ip.address(request),
        "agent": request.META.get("HTTP_USER_AGENT", "")[:AGENT_CHARS],
    }
    Member.objects.filter(user=user).update(seen=timezone.now())
    sessions.delete_ended()
    audit.record(Actor.behind(request, user), Verb.PERSON_SIGNED_IN, user)


@receiver(user_logged_out)
def record_sign_out(request: HttpRequest, user: User | None, **_: Any) -> None:
    """Record a sign-out; signing out without a session is ignored."""
    if user is not None:
        audit.record(Actor.behind(request, user), Verb.PERSON_SIGNED_OUT, user)


@receiver(user_login_failed)
def record_failure(credentials: dict[str, Any], request: HttpRequest | None = None, **_: Any) -> None:
    """Record a failed sign-in. The name is recorded only if it exists: people type passwords into the wrong field."""
    tried = User.objects.filter(username=str(credentials.get("username", ""))[:150]).first()
    actor = Actor.behind(request, None) if request else Actor(None)
    audit.record(actor, Verb.SIGN_IN_FAILED, tried, name=KNOWN if tried else UNKNOWN)


class Seen:
    """Middleware, after authentication: keeps a session in use from expiring as idle."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if BY_ITSELF not in request.headers and isinstance(request.user, User):
            note(request, request.user)
        return self.get_response(request)


def note(request: HttpRequest, user: User) -> None:
    """Record that the person is here, unless that was done a moment ago."""
    now, visit = time.time(), request.session.get(VISIT, {})
    if now - visit.get("seen", 0) < EVERY:
        return
    # Later ones win: the beginning stays, unless the session has none.
    request.session[VISIT] = {"began": now, **visit, "seen": now}
    late = timezone.now() - timedelta(seconds=EVERY)
    # Several browsers of one person write once a minute together.
    Member.objects.filter(user=user).exclude(seen__gt=late).update(seen=timezone.now())
