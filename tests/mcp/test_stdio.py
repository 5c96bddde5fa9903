"""`manage.py mcp`: the same tools over stdio, in a process of its own, with a token from the environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

from tests import ROOT
from tests.support.mcp_client import data_of
from tests.support.state_folders import copied

MAKE_TOKEN = """
from django.contrib.auth.models import User
from experiments.models import ApiToken, Member, Role
user = User.objects.create_user("owner")
Member.objects.create(user=user, role=Role.RESEARCHER)
print(ApiToken.issue(user, "stdio")[1])
"""


@pytest.fixture
def environment(migrated: Path, tmp_path: Path) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("MAIA_")}
    return own | {"MAIA_STATE": str(copied(migrated, tmp_path / "state"))}


def manage(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "manage.py", *words]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, input="", timeout=120)


def test_a_client_starts_it_and_reads(environment: dict[str, str]) -> None:
    token = manage(environment, "shell", "-v0", "-c", MAKE_TOKEN).stdout.strip().splitlines()[-1]
    started = StdioServerParameters(
        command=sys.executable, args=["manage.py", "mcp"], cwd=ROOT, env=environment | {"MAIA_TOKEN": token}
    )

    async def read() -> Any:
        async with Client(started) as client:
            assert len((await client.list_tools()).tools) > 10
            refused = await client.call_tool("ask", {"model": "toybox", "layer": "layer4", "unit": 7})
            assert refused.is_error
            return data_of(await client.call_tool("search", {"words": "ball"}))

    assert async_to_sync(read)()["ranked"] is True


@pytest.mark.parametrize(("token", "words"), [("", "Set MAIA_TOKEN"), ("maia_unknown", "unknown, revoked or expired")])
def test_without_a_good_token_it_says_what_to_do(environment: dict[str, str], token: str, words: str) -> None:
    ended = manage(environment | {"MAIA_TOKEN": token}, "mcp")
    assert ended.returncode == 1
    assert words in ended.stderr
    assert ended.stdout == ""
