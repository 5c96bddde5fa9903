"""The demo's team: four people, named by their work, and the owner, who is the person who tries it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.contrib.auth.models import User

from experiments.accounts import actions
from experiments.core.actors import Actor
from experiments.models import Member, Role

PEOPLE = {
    "researcher": ("Researcher", Role.RESEARCHER),
    "second-researcher": ("Second researcher", Role.REVIEWER),
    "reviewer": ("Reviewer", Role.REVIEWER),
    "second-reviewer": ("Second reviewer", Role.REVIEWER),
}
"""Account -> display name and role."""


@dataclass(frozen=True)
class Team:
    owner: Actor
    researcher: Actor
    second_researcher: Actor
    reviewer: Actor
    second_reviewer: Actor
    settle: Callable[[], None]
    """Waits until workers have finished all requests."""
    small: bool = False
    """True if the minimum that shows every kind of thing is enough."""

    @property
    def reviewers(self) -> list[Actor]:
        return [self.reviewer, self.second_reviewer, self.second_researcher]


def admit_team(owner: User, settle: Callable[[], None], *, small: bool) -> Team:
    """Give each of them an account and a role; an existing account keeps its role."""
    # In the order of PEOPLE, which is that of the fields.
    one, two, three, four = (_admit(Actor(owner), name, *known) for name, known in PEOPLE.items())
    return Team(Actor(owner), one, two, three, four, settle, small)


def _admit(owner: Actor, account: str, name: str, role: Role) -> Actor:
    user, is_new = User.objects.get_or_create(username=account, defaults={"first_name": name})
    if is_new:
        # The demo's people cannot sign in with a password.
        user.set_unusable_password()
        user.save()
    if not Member.objects.filter(user=user).exists():
        # By invitation, as real members join, so that the audit shows it.
        invitation, _ = actions.invite(owner, role, name)
        actions.admit(Actor(user), invitation)
    return Actor(user)
