"""People who come and go are recorded, whichever way they sign in. Loaded by the app."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.dispatch import receiver
from django.http import HttpRequest

from experiments.core import audit
from experiments.core.actors import Actor
from experiments.core.audit import Verb

KNOWN, UNKNOWN = "of an account", "of no account"


@receiver(user_logged_in)
def record_sign_in(request: HttpRequest, user: User, **_: Any) -> None:
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
    audit.record(
        Actor.behind(request, None) if request else Actor(None),
        Verb.SIGN_IN_FAILED,
        tried,
        name=KNOWN if tried else UNKNOWN,
    )
