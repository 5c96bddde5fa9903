"""Actions on the team and on one's own account: joining, roles, leaving, invitations, links, tokens, sessions.

There is always an admin who can sign in.
"""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from experiments.core import audit, sessions
from experiments.core.actors import Actor
from experiments.core.audit import Verb
from experiments.core.errors import StateConflict
from experiments.models import ApiToken, Invitation, LoginLink, Member, Role, TokenScope

MAX_TOKENS = 50
"""Maximum valid tokens of one person."""


# --- joining ---


@transaction.atomic
def invite(actor: Actor, role: Role, note: str) -> tuple[Invitation, str]:
    """Create an invitation; return it with its token, which is shown once."""
    invitation, token = Invitation.issue(actor.person, role, note)
    audit.record(actor, Verb.INVITATION_MADE, invitation, role=invitation.get_role_display())
    return invitation, token


@transaction.atomic
def revoke_invitation(actor: Actor, invitation: Invitation) -> None:
    """Revoke an invitation. A second call changes nothing."""
    if invitation.revoke():
        audit.record(actor, Verb.INVITATION_REVOKED, invitation)


@transaction.atomic
def admit(actor: Actor, invitation: Invitation) -> bool:
    """Add a person with an invitation to the team; return False if it is invalid, or they are a member already."""
    user = actor.person
    if Member.objects.filter(user=user).exists() or not invitation.take(user):
        return False
    Member.objects.create(user=user, role=invitation.role, seen=timezone.now())
    audit.record(actor, Verb.INVITATION_ACCEPTED, invitation, role=invitation.get_role_display())
    return True


@transaction.atomic
def make_sign_in_link(actor: Actor, user: User) -> str:
    """Create a link that signs a member in once, after a forgotten password; return its token."""
    token = LoginLink.issue(user, made_by=actor.person)
    audit.record(actor, Verb.SIGN_IN_LINK_MADE, user)
    return token


# --- roles, and leaving ---


@transaction.atomic
def set_role(actor: Actor, user: User, role: Role, was: str = "") -> None:
    """Set a person's role, also the first one. `was` is the role that the requesting page showed, "" for none or
    any.

    Raises StateConflict if no admin would be left, or the role was just changed by another person.
    """
    member = _lock_member(user)
    if was and str(member.role if member else 0) != was:
        raise StateConflict("Another admin has changed this role meanwhile. Refresh the page.")
    if member is None:
        try:
            Member.objects.create(user=user, role=role)
        except IntegrityError:
            raise StateConflict("Another admin has just given them a role. Refresh the page.") from None
        audit.record(actor, Verb.PERSON_ADMITTED, user, role=role.label)
    elif member.role != role:
        before = Role(member.role)
        if before == Role.ADMIN:
            _require_another_admin(member)
            _revoke_made_by(user)
        Member.objects.filter(pk=member.pk).update(role=role)
        audit.record(actor, Verb.PERSON_ROLE_CHANGED, user, before=before.label, after=role.label)


@transaction.atomic
def deactivate(actor: Actor, user: User) -> None:
    """Deactivate an account: its browsers and scripts are signed out at their next request. Raises StateConflict
    for one's own, and for the last admin's."""
    if user == actor.user:
        raise StateConflict("You cannot close your own account. Ask another admin.")
    if member := _lock_member(user):
        _require_another_admin(member)
    _revoke_made_by(user)
    User.objects.filter(pk=user.pk).update(is_active=False)
    sessions.end_all(user)
    audit.record(actor, Verb.PERSON_DEACTIVATED, user)


@transaction.atomic
def reactivate(actor: Actor, user: User) -> None:
    """Activate an account again; the person has to sign in."""
    User.objects.filter(pk=user.pk).update(is_active=True)
    audit.record(actor, Verb.PERSON_REACTIVATED, user)


@transaction.atomic
def remove(actor: Actor, user: User) -> None:
    """Remove a member's role; what they did stays under their name. Raises StateConflict for oneself and for the
    last admin."""
    if user == actor.user:
        raise StateConflict("You cannot remove yourself. Ask another admin.")
    member = _lock_member(user)
    if member is None:
        raise StateConflict("They do not belong to the team any more.")
    _require_another_admin(member)
    _revoke_made_by(user)
    audit.record(actor, Verb.PERSON_REMOVED, user, role=Role(member.role).label)
    Member.objects.filter(pk=member.pk).delete()


def _lock_member(user: User) -> Member | None:
    """Return the person's membership; it is locked, with those of all admins, until the transaction ends."""
    # In the order of keys: two admins who act at the same moment wait for each other and do not deadlock
    rows = Member.objects.select_for_update().filter(Q(role=Role.ADMIN) | Q(user=user)).order_by("pk")
    return next((row for row in rows if row.user_id == user.pk), None)


def _require_another_admin(member: Member) -> None:
    others = Member.objects.filter(role=Role.ADMIN, user__is_active=True).exclude(pk=member.pk)
    if member.role == Role.ADMIN and not others.exists():
        raise StateConflict("This is the last admin who can sign in. Make another user an admin first.")


def _revoke_made_by(user: User) -> None:
    """Revoke the invitations and links that an admin made for others, once they are no longer an admin."""
    Invitation.still_open().filter(made_by=user).update(revoked=timezone.now())
    LoginLink.objects.filter(made_by=user, used=None).delete()


# --- one's own account ---


@transaction.atomic
def rename(actor: Actor, name: str) -> None:
    """Change the actor's display name."""
    user = actor.person
    before, user.first_name, user.last_name = user.get_full_name(), name, ""
    user.save(update_fields=["first_name", "last_name"])
    audit.record(actor, Verb.PERSON_RENAMED, user, before=before, after=user.get_full_name())


@transaction.atomic
def end_sessions(actor: Actor, but: str | None = None) -> int:
    """Sign out everywhere, except in the session with key `but`; return how many ended."""
    ended = sessions.end_all(actor.person, but=but)
    audit.record(actor, Verb.SESSIONS_ENDED, actor.person, number=ended)
    return ended


@transaction.atomic
def make_token(actor: Actor, name: str, scope: TokenScope, days: int) -> tuple[ApiToken, str]:
    """Create a token; return it with its text, which is shown once. Raises StateConflict if the person has too many."""
    if sum(each.is_good for each in ApiToken.objects.filter(user=actor.person)) >= MAX_TOKENS:
        raise StateConflict(f"You have {MAX_TOKENS} tokens that are good. Revoke one that you do not need.")
    made = ApiToken.issue(actor.person, name, scope, days)
    audit.record(actor, Verb.TOKEN_MADE, made[0], scope=made[0].get_scope_display())
    return made


@transaction.atomic
def revoke_token(actor: Actor, token: ApiToken) -> None:
    """Revoke a token, which becomes invalid."""
    token.revoke()
    audit.record(actor, Verb.TOKEN_REVOKED, token)
