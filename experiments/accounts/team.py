"""Who belongs to the team, and in which role: joining, changing, leaving. There is always an admin who can sign in."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.http import HttpRequest
from django.utils import timezone

from experiments.core import audit, sessions
from experiments.core.actors import Actor
from experiments.core.audit import Verb
from experiments.models import Invitation, LoginLink, Member
from experiments.models.member import Role


class Refused(Exception):
    """Raised with a sentence for the person who asked."""


@transaction.atomic
def admit(request: HttpRequest, user: User, invitation: Invitation) -> bool:
    """Make a stranger who has an invitation one of the team; False if that is of no use, or they are already."""
    if Member.objects.filter(user=user).exists() or not invitation.take(user):
        return False
    Member.objects.create(user=user, role=invitation.role, seen=timezone.now())
    audit.record(Actor.behind(request, user), Verb.INVITATION_ACCEPTED, invitation, role=invitation.get_role_display())
    return True


@transaction.atomic
def set_role(request: HttpRequest, user: User, role: Role, was: str = "") -> None:
    """Give a person a role, a stranger too. `was` is the role that the asking page showed, "" for none or any.

    Raises Refused if it would leave no admin, or somebody else has just changed it.
    """
    member = locked(user)
    if was and str(member.role if member else 0) != was:
        raise Refused("Somebody else has changed this role meanwhile. Look again.")
    if member is None:
        try:
            Member.objects.create(user=user, role=role)
        except IntegrityError:
            raise Refused("Somebody else has just given them a role. Look again.") from None
        audit.record(request, Verb.PERSON_ADMITTED, user, role=role.label)
        return
    if member.role == role:
        return
    before = Role(member.role)
    if before == Role.ADMIN:
        must_not_be_the_last(member)
        take_back(user)
    Member.objects.filter(pk=member.pk).update(role=role)
    audit.record(request, Verb.PERSON_ROLE_CHANGED, user, before=before.label, after=role.label)


@transaction.atomic
def deactivate(request: HttpRequest, user: User) -> None:
    """Close an account: its browsers and scripts are out at their next request. Raises Refused for the last admin."""
    member = locked(user)
    if member is not None:
        must_not_be_the_last(member)
    take_back(user)
    User.objects.filter(pk=user.pk).update(is_active=False)
    sessions.end_all(user)
    audit.record(request, Verb.PERSON_DEACTIVATED, user)


@transaction.atomic
def reactivate(request: HttpRequest, user: User) -> None:
    """Open an account again; the person signs in anew."""
    User.objects.filter(pk=user.pk).update(is_active=True)
    audit.record(request, Verb.PERSON_REACTIVATED, user)


@transaction.atomic
def remove(request: HttpRequest, user: User) -> None:
    """Make a member a stranger; what they did stays theirs. Raises Refused for the last admin."""
    member = locked(user)
    if member is None:
        raise Refused("They do not belong to the team any more.")
    must_not_be_the_last(member)
    take_back(user)
    audit.record(request, Verb.PERSON_REMOVED, user, role=Role(member.role).label)
    Member.objects.filter(pk=member.pk).delete()


def locked(user: User) -> Member | None:
    """The person's place in the team, held together with all admins' until the transaction ends."""
    rows = Member.objects.select_for_update().filter(Q(role=Role.ADMIN) | Q(user=user)).order_by("pk")
    return next((row for row in rows if row.user_id == user.pk), None)


def must_not_be_the_last(member: Member) -> None:
    others = Member.objects.filter(role=Role.ADMIN, user__is_active=True).exclude(pk=member.pk)
    if member.role == Role.ADMIN and not others.exists():
        raise Refused("This is the last admin who can sign in. Make somebody else an admin first.")


def take_back(user: User) -> None:
    """The ways in that somebody made for others end with their being an admin."""
    Invitation.still_open().filter(made_by=user).update(revoked=timezone.now())
    LoginLink.objects.filter(made_by=user, used=None).delete()
