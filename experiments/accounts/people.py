"""Everybody who can, could or may soon come in, as the page Settings, People lists them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import User
from django.db.models import Max, Q, QuerySet

from experiments.models import Invitation
from experiments.models.member import Role

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


@dataclass(frozen=True)
class Roll:
    members: list[Person]
    strangers: list[Person]
    more: bool
    invitations: list[Invitation]


def call(words: str = "") -> Roll:
    """The people whose name or address holds the words, members by name, strangers newest first."""
    found = User.objects.select_related("member").annotate(scripted=Max("api_tokens__last_used"))
    for word in words.split()[:5]:
        found = found.filter(
            Q(username__icontains=word)
            | Q(first_name__icontains=word)
            | Q(last_name__icontains=word)
            | Q(email__icontains=word)
        )
    members = list(found.filter(member__isnull=False).order_by("username")[: MOST + 1])
    # Accounts that never signed in and cannot are no people: such as the owner of made-up runs.
    could = Q(is_active=True) | Q(last_login__isnull=False)
    strangers = list(found.filter(could, member__isnull=True).order_by("-date_joined", "-pk")[: MOST + 1])
    more = len(members) > MOST or len(strangers) > MOST
    by_provider = with_provider([*members, *strangers])
    rows = [[person(user, by_provider) for user in each[:MOST]] for each in (members, strangers)]
    return Roll(rows[0], rows[1], more, invitations())


def with_provider(users: list[User]) -> set[int]:
    """Which of them can come by single sign-on."""
    found: QuerySet[SocialAccount] = SocialAccount.objects.filter(user__in=users)
    return set(found.values_list("user_id", flat=True))


def person(user: User, by_provider: set[int]) -> Person:
    member = getattr(user, "member", None)
    times = [member.seen if member else None, user.last_login, getattr(user, "scripted", None)]
    ways = [("password", user.has_usable_password()), ("single sign-on", user.pk in by_provider)]
    return Person(
        user=user,
        role=Role(member.role) if member else None,
        seen=max((each for each in times if each), default=None),
        ways=tuple(way for way, has in ways if has),
    )


def invitations() -> list[Invitation]:
    """The open ones, and the latest of those that are not."""
    found = Invitation.objects.select_related("made_by", "taken_by")
    still = list(found.filter(pk__in=Invitation.still_open())[:MOST])
    return [*still, *found.exclude(pk__in=[each.pk for each in still])[:INVITATIONS]]
