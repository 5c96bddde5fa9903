"""How a person is called on the pages."""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser, User

NOBODY = "somebody"
"""Who is meant when the account is gone, or nobody is signed in."""


def person(user: User | AnonymousUser | None) -> str:
    """The full name, else the user name. Whose account is gone is "somebody". Untrusted text: to be escaped."""
    if not isinstance(user, User):
        return NOBODY
    return user.get_full_name() or user.get_username()
