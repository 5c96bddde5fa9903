"""Everybody who can, could or may soon come in, as the page of people and the API list them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import User
from django.db.models import Max, Q, QuerySet

from experiments.models import Invitation, Role

MOST = 200
"""People of one kind that are listed; whoever looks for others searches."""
INVITATIONS = 20
"""Invitations that are no longer good and still listed."""


@dataclass(frozen=True)
class Person:
    """One row. `role` is None for a stranger."""

    user: User
    role: Role | None
    seen: datetime | None
    ways: tuple[str, ...]
    """How they can sign in: password, single sign-on."""


def find_users(words: str = "") -> QuerySet[User]:
    """Members and strangers whose name or address holds the words. Accounts that never signed in and cannot are no
    people: such as the owner of made-up runs."""
    found = User.objects.select_related("member").annotate(scripted=Max("api_tokens__last_used"))
    for word in words.split()[:5]:
        holds = Q(username__icontains=word) | Q(first_name__icontains=word) | Q(last_name__icontains=word)
        found = found.filter(holds | Q(email__icontains=word))
    return found.filter(Q(member__isnull=False) | Q(is_active=True) | Q(last_login__isnull=False))


def list_people(words: str = "") -> dict[str, Any]:
    """Members by name, strangers newest first, invitations: the open ones, and the latest of those that are not."""
    found = find_users(words)
    members = list(found.filter(member__isnull=False).order_by("username")[: MOST + 1])
    strangers = list(found.filter(member__isnull=True).order_by("-date_joined", "-pk")[: MOST + 1])
    rows = describe([*members[:MOST], *strangers[:MOST]])
    count = min(len(members), MOST)
    invitations = Invitation.objects.select_related("made_by", "taken_by")
    still = list(invitations.filter(pk__in=Invitation.still_open())[:MOST])
    others = invitations.exclude(pk__in=[each.pk for each in still])[:INVITATIONS]
    return {
        "members": rows[:count],
        "strangers": rows[count:],
        "more": max(len(members), len(strangers)) > MOST,
        "invitations": [*still, *others],
    }


def describe(users: list[User]) -> list[Person]:
    """The users as rows, in their order; one query."""
    accounts = SocialAccount.objects.filter(user__in=users)
    by_provider = set(accounts.values_list("user_id", flat=True))
    rows = []
    for user in users:
        member = getattr(user, "member", None)
        times = [member.seen if member else None, user.last_login, getattr(user, "scripted", None)]
        ways = [("password", user.has_usable_password()), ("single sign-on", user.pk in by_provider)]
        role, seen = Role(member.role) if member else None, max(filter(None, times), default=None)
        rows.append(Person(user, role, seen, tuple(way for way, has in ways if has)))
    return rows
