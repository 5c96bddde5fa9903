"""The person behind a request, a command or a worker; the first parameter of every action."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from experiments.core import access, client_ip
from experiments.core.display_name import person
from experiments.models import ApiToken, Role


@dataclass(frozen=True)
class Actor:
    """Who performs an action: a person, or None for the installation itself. For a request also its address, user
    agent and token."""

    user: User | None
    address: str | None = None
    agent: str = ""
    token: str = ""

    @classmethod
    def of(cls, request: HttpRequest, least: Role = Role.VIEWER) -> Actor:
        """Return the actor of a request. Raises Http404 for users without a role, PermissionDenied if the role is
        too low."""
        return cls.behind(request, access.require(request, least))

    @classmethod
    def behind(cls, request: HttpRequest, user: User | None) -> Actor:
        """Return the actor of a request whose user is not signed in yet, or not any more."""
        token = getattr(request, "auth", None)
        return cls(
            user,
            client_ip.address(request),
            request.headers.get("User-Agent", ""),
            # Enough to recognise the token, too little to use it.
            f"{token.start}… {token.name}" if isinstance(token, ApiToken) else "",
        )

    @property
    def role(self) -> Role | None:
        return access.role_of(self.user) if self.user else None

    def require(self, least: Role) -> None:
        """Raise PermissionDenied if the actor has less than this role."""
        held = self.role
        if held is None or held < least:
            own = held.label if held else "none"
            raise PermissionDenied(f"This needs the role {least.label}; yours is {own}. Ask an admin of your team.")

    def require_own(self, what: str, *owners: int | None) -> None:
        """Raise PermissionDenied if the row belongs to another person; see `access.may_change`. `what` says what
        the owner did, such as "started this sweep"."""
        if not access.may_change(self.person, *owners):
            raise PermissionDenied(f"Another user {what}: ask them, or an admin of your team.")

    @property
    def name(self) -> str:
        return person(self.user) if self.user else ""

    @property
    def person(self) -> User:
        """Return the user of an action that only a person can perform."""
        assert self.user is not None, "this action is a person's"
        return self.user
