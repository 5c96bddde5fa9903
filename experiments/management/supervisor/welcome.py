"""Prepare what a new user finds: an account, a link that signs in, and one example under way."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction
from django.urls import reverse

from experiments.core.actors import Actor
from experiments.models import LoginLink, Member, Role, Run
from experiments.runs import actions
from experiments.runs.drafts import draft_run
from workers.record.systems import SystemSpec

EXAMPLE = ("toybox", "layer4", 87)
"""Model, layer and unit that the first query asks about."""


@transaction.atomic
def owner() -> tuple[User, bool]:
    """Return an active admin of the team, and whether the account was made just now (at the very first start)."""
    found = Member.objects.filter(role=Role.ADMIN, user__is_active=True).select_related("user").order_by("pk").first()
    if found:
        return found.user, False
    user, new = User.objects.get_or_create(username="owner", defaults={"is_staff": True, "is_superuser": True})
    if new:
        # The owner signs in by link; a password is set only by choice.
        user.set_unusable_password()
        user.save()
    # Also for an existing account that has lost its role: the terminal must always have an admin.
    Member.objects.update_or_create(user=user, defaults={"role": Role.ADMIN})
    return user, new


def link(user: User, port: int) -> str:
    """Return an address that signs the user in, once."""
    return f"http://127.0.0.1:{port}{reverse('enter', args=[LoginLink.issue(user)])}"


def ask_example(user: User) -> Run:
    """Enqueue the first query, so that there is something to watch when the page opens."""
    return actions.add_run(Actor(user), draft_run(SystemSpec("unit", *EXAMPLE), backbone="scripted"))
