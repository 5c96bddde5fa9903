"""Return the display name of a person."""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser, User

NOBODY = "somebody"
"""The name shown if the account is deleted or the visitor is not signed in."""


def person(user: User | AnonymousUser | None) -> str:
    """Return the full name, else the user name, else `NOBODY`. The result is untrusted text and must be escaped."""
    if not isinstance(user, User):
        return NOBODY
    return user.get_full_name() or user.get_username()
