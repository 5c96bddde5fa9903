"""Who the API takes you for."""

from __future__ import annotations

from datetime import datetime

from django.http import HttpRequest
from ninja import Router, Schema

from experiments.api.entry import allow
from experiments.core import access
from experiments.models import ApiToken
from experiments.models.api_token import Scope

router = Router(tags=["You"])


class TokenOut(Schema):
    name: str
    scope: str
    expires: datetime


class Me(Schema):
    """You, your role, and the token you came with."""

    username: str
    role: str
    token: TokenOut | None


@router.get("/me", response=Me, summary="Read who you are")
def read_me(request: HttpRequest) -> Me:
    """The quickest way to try a token."""
    user = allow(request)
    role, token = access.role_of(user), getattr(request, "auth", None)
    shown = None
    if isinstance(token, ApiToken):
        shown = TokenOut(name=token.name, scope=Scope(token.scope).label, expires=token.expires)
    return Me(username=user.get_username(), role=role.label if role else "", token=shown)
