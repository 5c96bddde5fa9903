"""Return the display name of a person."""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser, User

_UNKNOWN = "unknown user"
"""The name shown if the account is deleted or the visitor is not signed in."""


def person(user: User | AnonymousUser | None) -> str:
    """Return the full name, else the user name, else `_UNKNOWN`. The result is untrusted text and must be escaped."""
    if not isinstance(user, User):
        return _UNKNOWN
    return user.get_full_name() or user.get_username()
