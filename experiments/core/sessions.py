"""The session engine (`SESSION_ENGINE`): Django's, in a table that knows the user of each session, with two limits.

A session ends after `SESSION_IDLE` without use, and at the latest `SESSION_LENGTH` after it began. The server
enforces both: the row's expiry counts for pages and sockets alike.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.utils import timezone

from experiments.models import Session

VISIT = "visit"
"""Session key under which it keeps how, when and from where it began, and when it was last used."""


class SessionStore(DatabaseStore):
    """One browser's session."""

    @classmethod
    def get_model_class(cls) -> type[Session]:
        return Session

    def create_model_instance(self, data: dict[str, Any]) -> Session:
        row = super().create_model_instance(data)
        assert isinstance(row, Session)
        # A column, so that all sessions of a person can be ended.
        row.user_id = int(data[SESSION_KEY]) if SESSION_KEY in data else None
        return row

    def get_session_cookie_age(self) -> int:
        """Return the seconds until the session ends if it is not used again."""
        idle = int(settings.SESSION_COOKIE_AGE)
        began = self.get(VISIT, {}).get("began")
        # The nearer of both limits.
        return idle if began is None else max(0, min(idle, int(began + settings.SESSION_LENGTH - time.time())))


@dataclass(frozen=True)
class BrowserSession:
    """A session as shown to its user. Times are None for sessions from before times were kept."""

    key: str
    began: datetime | None
    seen: datetime | None
    how: str
    address: str
    agent: str


def browser_sessions(user: User) -> list[BrowserSession]:
    """Return the active sessions of a person, most recently used first."""
    found = []
    for row in Session.objects.filter(user=user, expire_date__gt=timezone.now()):
        kept = row.get_decoded().get(VISIT, {})
        began, seen = (datetime.fromtimestamp(kept[name], UTC) if name in kept else None for name in ("began", "seen"))
        how, address, agent = kept.get("how", ""), kept.get("address") or "", kept.get("agent", "")
        found.append(BrowserSession(row.session_key, began, seen, how, address, agent))
    return sorted(found, key=lambda each: each.seen.timestamp() if each.seen else 0, reverse=True)


def end_all(user: User, but: str | None = None) -> int:
    """Sign a person out everywhere, except in the session with key `but`. Return how many sessions ended."""
    ended, _ = Session.objects.filter(user=user).exclude(session_key=but or "").delete()
    return ended


def is_alive(key: str) -> bool:
    """True if the session still exists. Sockets ask, since no request tells them."""
    return Session.objects.filter(session_key=key, expire_date__gt=timezone.now()).exists()


def delete_ended() -> None:
    """Delete the rows of expired sessions."""
    Session.objects.filter(expire_date__lt=timezone.now()).delete()
