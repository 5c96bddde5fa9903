"""A client made with the official SDK, over HTTP to a served site."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from django.contrib.auth.models import User
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from experiments.models import ApiToken, TokenScope


def issue(user: User, scope: TokenScope = TokenScope.RUN) -> str:
    """The text of a new token."""
    return ApiToken.issue(user, "laptop", scope)[1]


@asynccontextmanager
async def connected(url: str, token: str, mode: str = "auto") -> AsyncIterator[Client]:
    """A client that shows this token at the site's /mcp."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


def words_of(result: Any) -> str:
    """All texts of an answer."""
    return "\n".join(each.text for each in result.content if each.type == "text")


def data_of(result: Any) -> Any:
    """The first text of an answer that is no error, as data."""
    assert not result.is_error, words_of(result)
    return json.loads(result.content[0].text)


def images_of(result: Any) -> list[Any]:
    return [each for each in result.content if each.type == "image"]
