"""Authenticate API requests, by token or by browser session, and check access."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from ninja.errors import AuthenticationError
from ninja.security import APIKeyCookie, HttpBearer

from experiments.core import access, sessions
from experiments.models import ApiToken, Role, TokenScope


class Token(HttpBearer):
    """Authenticate by a personal token. An invalid token is refused, even with a valid session."""

    def authenticate(self, request: HttpRequest, token: str) -> ApiToken:
        found = ApiToken.find(token)
        if found is None:
            raise AuthenticationError
        # So that everything behind it, such as `access`, need not know how the person came.
        request.user = found.user
        return found


class SessionAuth(APIKeyCookie):
    """Authenticate by a browser session; changes need the CSRF token too."""

    param_name = settings.SESSION_COOKIE_NAME

    def authenticate(self, request: HttpRequest, key: str | None) -> User | None:  # noqa: ARG002 - Django reads it
        user = request.user
        return user if isinstance(user, User) and user.is_active else None


def authorize(request: HttpRequest, role: Role = Role.VIEWER, scope: TokenScope = TokenScope.READ) -> User:
    """Return the member who sent the request, who has at least this role and scope; the first call of every
    operation.

    Raises Http404 for users without a role, PermissionDenied for others.
    """
    user = access.require(request, role)
    token = getattr(request, "auth", None)
    if isinstance(token, ApiToken) and token.scope < scope:
        held = TokenScope(token.scope).label
        raise PermissionDenied(
            f"This needs a token with the scope “{scope.label}”; “{token.name}” has “{held}”. "
            "Make another on the page Settings, Tokens."
        )
    return user


def is_still_allowed(request: HttpRequest) -> bool:
    """True if access is still valid: the token or session is active, and its user is a member."""
    auth = getattr(request, "auth", None)
    if isinstance(auth, ApiToken):
        # Read again: it may have been revoked since the request began.
        token = ApiToken.objects.filter(pk=auth.pk).first()
        lasts = token is not None and token.is_good
    else:
        lasts = sessions.is_alive(request.session.session_key or "")
    return lasts and access.role_of(request.user) is not None


def identify(request: HttpRequest) -> str:
    """Return the identity whose requests are counted together: a token, or a user's sessions."""
    auth = getattr(request, "auth", None)
    return f"token:{auth.pk}" if isinstance(auth, ApiToken) else f"user:{request.user.pk}"
