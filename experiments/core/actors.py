"""Who acts: the person behind a request, a command or a worker, and from where. What an action is given first."""

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
    """A person, None for the installation itself; of a request its address, what the client calls itself, its token."""

    user: User | None
    address: str | None = None
    agent: str = ""
    token: str = ""

    @classmethod
    def of(cls, request: HttpRequest, least: Role = Role.VIEWER) -> Actor:
        """Who is behind a request. Raises Http404 for strangers, PermissionDenied for who has less than that role."""
        return cls.behind(request, access.require(request, least))

    @classmethod
    def behind(cls, request: HttpRequest, user: User | None) -> Actor:
        """Somebody who is not signed in yet, or not any more, behind a request."""
        token = getattr(request, "auth", None)
        return cls(
            user,
            client_ip.address(request),
            request.headers.get("User-Agent", ""),
            f"{token.start}… {token.name}" if isinstance(token, ApiToken) else "",
        )

    @property
    def role(self) -> Role | None:
        return access.role_of(self.user) if self.user else None

    def require(self, least: Role) -> None:
        """Raises PermissionDenied for who has less than this role."""
        held = self.role
        if held is None or held < least:
            own = held.label if held else "none"
            raise PermissionDenied(f"This needs the role {least.label}; yours is {own}. Ask an admin of your team.")

    def require_own(self, what: str, *owners: int | None) -> None:
        """Raises PermissionDenied for a row that is another's: see `access.may_change`. `what` is what they did to it,
        as "started this sweep"."""
        if not access.may_change(self.person, *owners):
            raise PermissionDenied(f"Somebody else {what}: ask them, or an admin of your team.")

    @property
    def name(self) -> str:
        return person(self.user) if self.user else ""

    @property
    def person(self) -> User:
        """The user, where there must be one."""
        assert self.user is not None, "this action is a person's"
        return self.user
