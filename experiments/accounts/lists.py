"""List all people who can, could or may soon sign in, for the People page and the API."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Max, Q, QuerySet

from experiments.models import Identity, Invitation, Role

MAX_PEOPLE = 200
"""Maximum people of one kind that are listed; others are found by search."""
INVITATIONS = 20
"""Invitations that are no longer valid and still listed."""


@dataclass(frozen=True)
class Person:
    """One row. `role` is None for a user without a role."""

    user: User
    role: Role | None
    seen: datetime | None
    ways: tuple[str, ...]
    """Ways to sign in: password, single sign-on."""


def find_users(words: str = "") -> QuerySet[User]:
    """Return users with and without a role whose name or address contains the words. Without accounts that never
    signed in and cannot, such as the owner of demo runs."""
    found = User.objects.select_related("member").annotate(scripted=Max("api_tokens__last_used"))
    for word in words.split()[:5]:
        holds = Q(username__icontains=word) | Q(first_name__icontains=word) | Q(last_name__icontains=word)
        found = found.filter(holds | Q(email__icontains=word))
    return found.filter(Q(member__isnull=False) | Q(is_active=True) | Q(last_login__isnull=False))


def list_people(words: str = "") -> dict[str, Any]:
    """Return members by name, users without a role newest first, and invitations: the open ones, and the latest of
    the others."""
    found = find_users(words)
    members = list(found.filter(member__isnull=False).order_by("username")[: MAX_PEOPLE + 1])
    strangers = list(found.filter(member__isnull=True).order_by("-date_joined", "-pk")[: MAX_PEOPLE + 1])
    rows = describe([*members[:MAX_PEOPLE], *strangers[:MAX_PEOPLE]])
    count = min(len(members), MAX_PEOPLE)
    invitations = Invitation.objects.select_related("made_by", "taken_by")
    still = list(invitations.filter(pk__in=Invitation.still_open())[:MAX_PEOPLE])
    others = invitations.exclude(pk__in=[each.pk for each in still])[:INVITATIONS]
    return {
        "members": rows[:count],
        "strangers": rows[count:],
        "more": max(len(members), len(strangers)) > MAX_PEOPLE,
        "invitations": [*still, *others],
    }


def describe(users: list[User]) -> list[Person]:
    """Return the users as rows, in their order; one query."""
    by_provider = set(Identity.objects.filter(user__in=users).values_list("user_id", flat=True))
    rows = []
    for user in users:
        member = getattr(user, "member", None)
        times = [member.seen if member else None, user.last_login, getattr(user, "scripted", None)]
        ways = [("password", user.has_usable_password()), ("single sign-on", user.pk in by_provider)]
        role, seen = Role(member.role) if member else None, max(filter(None, times), default=None)
        rows.append(Person(user, role, seen, tuple(way for way, has in ways if has)))
    return rows
