"""Your account, sessions and tokens; for admins the team, invitations, the audit."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Literal

from django.contrib.auth.models import User
from django.http import HttpRequest
from django.urls import reverse
from ninja import Field, Query, Router, Schema, Status
from pydantic import BeforeValidator, StringConstraints

from experiments.accounts import actions, audit_query, lists, names
from experiments.api.auth import authorize
from experiments.api.cursors import ListPage, Paging, page
from experiments.api.fields import NO_NUL, Body, FullName, Id, RowOut, Words, find
from experiments.api.filters import read_filters, with_filters
from experiments.core import access, sessions
from experiments.core.actors import Actor
from experiments.core.display_name import person
from experiments.core.errors import InvalidFilters
from experiments.models import ApiToken, Invitation, Role, TokenScope
from experiments.models.invitation import NOTE_CHARS

router = Router(tags=["Account"])
TEAM, AUDIT = ["The team"], ["Audit"]

RoleName = Literal["viewer", "researcher", "reviewer", "admin"]


def role_of(name: str) -> Role:
    return Role[name.upper()]


HeldRole = Annotated[RoleName, BeforeValidator(lambda role: Role(role).name.lower() if isinstance(role, int) else role)]


# --- you ---


class TokenOut(RowOut):
    name: str
    scope: str = Field(validation_alias="get_scope_display")
    expires: datetime


class Me(Schema):
    """You, your role, and the token of this request."""

    username: str
    role: str
    token: TokenOut | None


@router.get("/me", response=Me, summary="Get current user")
def read_me(request: HttpRequest) -> Me:
    """Read your account: the quickest way to try a token."""
    user = authorize(request)
    role, auth = access.role_of(user), getattr(request, "auth", None)
    token = TokenOut.from_orm(auth) if isinstance(auth, ApiToken) else None
    return Me(username=user.get_username(), role=role.label if role else "", token=token)


class NameIn(Body):
    """Your display name; "" for your user name."""

    name: Annotated[str, StringConstraints(max_length=names.NAME_CHARS, pattern=NO_NUL)]


@router.patch("/me", response=Me, summary="Change your display name")
def rename_me(request: HttpRequest, wanted: NameIn) -> Me:
    """Change your display name; the user name stays."""
    actor = Actor.behind(request, authorize(request, Role.VIEWER, TokenScope.WRITE))
    actions.rename(actor, names.clean_name(wanted.name))
    return read_me(request)


class SessionOut(RowOut):
    """A browser in which you are signed in."""

    began: datetime | None
    used: datetime | None = Field(validation_alias="seen")
    how: str
    address: str
    agent: str


@router.get("/me/sessions", response=list[SessionOut], summary="List your sessions")
def list_sessions(request: HttpRequest) -> list[SessionOut]:
    """List the browsers in which you are signed in, last used first."""
    return [SessionOut.from_orm(each) for each in sessions.browser_sessions(authorize(request))]


@router.delete("/me/sessions", response={204: None}, summary="Sign out everywhere")
def end_sessions(request: HttpRequest) -> Status[None]:
    """Sign out in every browser except the one that asks; your tokens stay valid."""
    actor = Actor.behind(request, authorize(request, Role.VIEWER, TokenScope.WRITE))
    actions.end_sessions(actor, but=request.session.session_key)
    return Status(204, None)


class TokenRow(TokenOut):
    """One of your tokens, without its text: only a hash is stored."""

    id: int
    start: str = Field(description="its first characters")
    created: datetime
    last_used: datetime | None
    revoked: datetime | None


@router.get("/me/tokens", response=ListPage[TokenRow], summary="List your tokens")
def list_tokens(request: HttpRequest, paging: Query[Paging]) -> ListPage[TokenRow]:
    """Newest first. Tokens are created on the page Settings, Tokens, so that a leaked one cannot create others."""
    user = authorize(request)
    return page(request, ApiToken.objects.filter(user=user), ["-pk"], paging, TokenRow.from_orm)


@router.delete("/me/tokens/{pk}", response={204: None}, summary="Revoke a token of yours")
def revoke_token(request: HttpRequest, pk: Id) -> Status[None]:
    """Revoke one of your tokens, also the one of this request."""
    actor = Actor.behind(request, authorize(request, Role.VIEWER, TokenScope.WRITE))
    actions.revoke_token(actor, find(ApiToken.objects.filter(user=actor.person), pk=pk))
    return Status(204, None)


# --- the team ---


class PersonOut(RowOut):
    """A person who can or could sign in."""

    id: int = Field(validation_alias="user.pk")
    username: str = Field(validation_alias="user.username")
    name: FullName = Field(validation_alias="user")
    email: str = Field(validation_alias="user.email")
    role: HeldRole | None = Field(description="null for who can sign in and sees nothing")
    active: bool = Field(validation_alias="user.is_active")
    seen: datetime | None
    ways: list[str] = Field(description="how they can sign in")


class RoleIn(Body):
    role: RoleName
    was: RoleName | None = Field(None, description="refused if it is another by now")


class PeopleFilters(Schema):
    q: Words = Field("", description="words of a name or an e-mail address")


def _person_out(user: User) -> PersonOut:
    return PersonOut.from_orm(lists.describe([user])[0])


@router.get("/people", response=ListPage[PersonOut], summary="List people", tags=TEAM)
def list_people(request: HttpRequest, filters: Query[PeopleFilters], paging: Query[Paging]) -> ListPage[PersonOut]:
    """List members, and people without a role, by user name."""
    authorize(request, Role.ADMIN)
    return page(request, lists.find_users(filters.q), ["username"], paging, _person_out)


def _change_person(pk: int, change: Callable[[User], None]) -> PersonOut:
    change(find(User.objects.all(), pk=pk))
    return _person_out(find(User.objects.select_related("member"), pk=pk))


@router.put("/people/{pk}/role", response=PersonOut, summary="Set a role", tags=TEAM)
def set_role(request: HttpRequest, pk: Id, wanted: RoleIn) -> PersonOut:
    """Set another role for a member, or the first for a person without. There is always an admin."""
    actor = Actor.behind(request, authorize(request, Role.ADMIN, TokenScope.WRITE))
    role, was = role_of(wanted.role), str(int(role_of(wanted.was))) if wanted.was else ""
    return _change_person(pk, lambda user: actions.set_role(actor, user, role, was))


@router.post("/people/{pk}/deactivate", response=PersonOut, summary="Deactivate an account", tags=TEAM)
def deactivate_person(request: HttpRequest, pk: Id) -> PersonOut:
    """Sign a person out everywhere and prevent signing in."""
    actor = Actor.behind(request, authorize(request, Role.ADMIN, TokenScope.WRITE))
    return _change_person(pk, lambda user: actions.deactivate(actor, user))


@router.post("/people/{pk}/reactivate", response=PersonOut, summary="Reactivate an account", tags=TEAM)
def reactivate_person(request: HttpRequest, pk: Id) -> PersonOut:
    """Let a person sign in again."""
    actor = Actor.behind(request, authorize(request, Role.ADMIN, TokenScope.WRITE))
    return _change_person(pk, lambda user: actions.reactivate(actor, user))


@router.delete("/people/{pk}", response={204: None}, summary="Remove a member", tags=TEAM)
def remove_person(request: HttpRequest, pk: Id) -> Status[None]:
    """Remove a member: they can sign in and see nothing; what they did stays under their name."""
    actor = Actor.behind(request, authorize(request, Role.ADMIN, TokenScope.WRITE))
    actions.remove(actor, find(User.objects.all(), pk=pk))
    return Status(204, None)


class InvitationIn(Body):
    """The invited person, and the role in which they join."""

    role: RoleName = "researcher"
    note: Annotated[str, StringConstraints(max_length=NOTE_CHARS, pattern=NO_NUL)] = ""


class InvitationOut(RowOut):
    id: int
    role: HeldRole
    note: str
    state: str = Field(description="open, taken, revoked or expired")
    made_by: FullName
    created: datetime
    expires: datetime
    taken_by: Annotated[str | None, BeforeValidator(lambda user: person(user) if isinstance(user, User) else user)]


class InvitationMade(InvitationOut):
    address: str = Field(description="the link; it is told here and nowhere else")


@router.get("/invitations", response=ListPage[InvitationOut], summary="List invitations", tags=TEAM)
def list_invitations(request: HttpRequest, paging: Query[Paging]) -> ListPage[InvitationOut]:
    """Newest first, without the links: only a hash of each is stored."""
    authorize(request, Role.ADMIN)
    rows = Invitation.objects.select_related("made_by", "taken_by")
    return page(request, rows, ["-pk"], paging, InvitationOut.from_orm)


@router.post("/invitations", response={201: InvitationMade}, summary="Create an invitation", tags=TEAM)
def create_invitation(request: HttpRequest, wanted: InvitationIn) -> Status[InvitationMade]:
    """The first person to open the link joins. An Idempotency-Key is ignored: to repeat the answer, the link would
    have to be stored."""
    actor = Actor.behind(request, authorize(request, Role.ADMIN, TokenScope.WRITE))
    row, token = actions.invite(actor, role_of(wanted.role), names.clean_name(wanted.note))
    address = request.build_absolute_uri(reverse("join", args=[token]))
    return Status(201, InvitationMade(address=address, **InvitationOut.from_orm(row).dict()))


@router.delete("/invitations/{pk}", response={204: None}, summary="Revoke an invitation", tags=TEAM)
def revoke_invitation(request: HttpRequest, pk: Id) -> Status[None]:
    """Revoke an invitation. A second call changes nothing."""
    actor = Actor.behind(request, authorize(request, Role.ADMIN, TokenScope.WRITE))
    actions.revoke_invitation(actor, find(Invitation.objects.all(), pk=pk))
    return Status(204, None)


# --- the audit ---


class AuditOut(RowOut):
    """A recorded action."""

    id: int
    time: datetime
    name: str = Field(description="of who did it; empty for the system, and for who was not signed in")
    verb: str
    row_kind: str
    row_pk: int | None
    row_words: str
    details: dict[str, Any]
    address: str | None
    agent: str
    token: str


@with_filters(audit_query.FILTERS)
class AuditFilters(Schema):
    """The filters of the page Settings, Audit."""


@router.get("/audit", response=ListPage[AuditOut], summary="Read the audit", tags=AUDIT)
def list_audit(request: HttpRequest, filters: Query[AuditFilters], paging: Query[Paging]) -> ListPage[AuditOut]:
    """List who did what, newest first."""
    authorize(request, Role.ADMIN)
    found = audit_query.AuditQuery.read(read_filters(filters))
    if found.problems:
        raise InvalidFilters(found.problems)
    return page(request, found.entries, ["-pk"], paging, AuditOut.from_orm)
