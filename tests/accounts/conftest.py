"""A provider of single sign-on, with which this site is registered."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.openid_provider import CLIENT, SECRET, Provider, serving


@pytest.fixture(scope="module")
def server() -> Iterator[Provider]:
    with serving() as provider:
        yield provider


@pytest.fixture
def provider(server: Provider, settings) -> Provider:
    """The provider as new, and this site registered with it."""
    server.__init__(issuer=server.issuer)  # type: ignore[misc]
    settings.OIDC_ISSUER, settings.OIDC_CLIENT_ID, settings.OIDC_CLIENT_SECRET = server.issuer, CLIENT, SECRET
    settings.OIDC_NAME = "Our Institute"
    return server
