"""The address /mcp: who comes in, and who is told why not."""

from __future__ import annotations

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from tests.support.mcp_client import connected, data_of, issue
from tests.support.served import served

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_made_with_the_sdk_reads(owner: User, mode: str) -> None:
    token = issue(owner)

    async def read(url: str) -> None:
        async with connected(url, token, mode) as client:
            tools = await client.list_tools()
            assert "search" in {tool.name for tool in tools.tools}
            found = data_of(await client.call_tool("search", {"words": "red ball"}))
            assert found["ranked"] is True

    with served() as url:
        async_to_sync(read)(url)
