"""People, as pages call them."""

from __future__ import annotations

from django import template
from django.contrib.auth.models import AnonymousUser, User

from experiments import people

register = template.Library()


@register.filter
def person(user: User | AnonymousUser | None) -> str:
    """The full name, else the user name; "somebody" for no account."""
    return people.person(user)
