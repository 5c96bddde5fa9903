"""Browsers that sign in by single sign-on: to the provider, back, and who they are then."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from django.contrib.auth.models import User
from django.test import Client

from tests.support.openid_provider import Provider, query_of


def leave(client: Client, path: str = "/sign-in/with/", **form: str) -> str:
    """The provider's address that the browser is sent to."""
    page = client.post(path, form)
    assert page.status_code == 200, page.content.decode()
    found = re.search(r'http-equiv="refresh" content="0; url=([^"]+)"', page.content.decode())
    assert found
    return unescape(found[1])


def come(client: Client, provider: Provider, path: str = "/sign-in/with/", **form: str) -> Any:
    """All the way to the provider and back; the answer to coming back."""
    back = provider.authorize(query_of(leave(client, path, **form)))
    return client.get(back.replace("http://testserver", ""))


def who(client: Client) -> str:
    return str(User.objects.get(pk=client.session["_auth_user_id"])) if "_auth_user_id" in client.session else ""


def way_back(client: Client, provider: Provider, **form: str) -> str:
    """The address here that the provider sends the browser back to."""
    return provider.authorize(query_of(leave(client, **form))).replace("http://testserver", "")
