"""Every tool: who may call it, what it says of itself, and what it answers where something is wrong."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from mcp.client.client import Client

from experiments.core import transcript
from experiments.mcp import entry, server, waiting
from experiments.mcp.entry import Asker
from experiments.models import ApiToken, Evaluation, HumanReply, Run, TokenScope
from tests.support.api_world import fill
from tests.support.builders import make_run, started
from tests.support.mcp_client import data_of, issue, words_of
from tests.support.people import member
from workers.record.decoding import decode

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_redis")]
MAX_TOKENS = 3_000
"""Of all descriptions, counted as a quarter of their characters."""


def call(token: str, name: str, **arguments: Any) -> Any:
    """What a tool answers to this token, past the door: the tool itself has to look."""

    async def go() -> Any:
        mark = entry.asker.set(Asker(token))
        try:
            async with Client(server.make_server()) as client:
                return await client.call_tool(name, arguments)
        finally:
            entry.asker.reset(mark)

    return async_to_sync(go)()


@pytest.fixture
def waiting_run(owner: User) -> Run:
    """A run that waits for the reply of its first round."""
    run = make_run(owner, backbone="person")
    transcript.append(run.pk, "started", started())
    transcript.append(run.pk, "waiting_for_person", decode("waiting_for_person", {"round": 1}))
    return Run.objects.get(pk=run.pk)


def arguments_of(run: int) -> dict[str, dict[str, Any]]:
    """Arguments for each tool that are right as far as they go."""
    place = {"model": "toybox", "layer": "layer4", "unit": 7}
    return {
        "list_models": {},
        "search": {"words": "ball"},
        "list_runs": {},
        "read_run": {"run": run},
        "read_experiment": {"run": run, "number": 1},
        "read_unit": place,
        "find_labels": {},
        "read_evaluation": {},
        "wait_for_run": {"run": run, "seconds": 1},
        "ask": place,
        "take_over_run": {"run": run},
        "run_experiment": {"run": run, "program": "print(1)"},
        "conclude": {"run": run, "description": "Balls.", "labels": ["ball"]},
    }


TOOLS = sorted(arguments_of(1))
CHANGING = {each.__name__ for each in server.CHANGING}


def test_each_tool_is_walked() -> None:
    assert {each.__name__ for each in (*server.READING, *server.CHANGING)} == set(TOOLS)


@pytest.mark.parametrize("name", TOOLS)
def test_no_tool_answers_who_may_not(owner: User, waiting_run: Run, name: str) -> None:
    revoked = issue(owner, TokenScope.WRITE)
    found = ApiToken.find(revoked)
    assert found
    found.revoke()
    away = issue(User.objects.create_user("stranger"), TokenScope.WRITE)
    wanted = {
        "": "unknown, revoked or expired",
        "maia_unknown": "unknown, revoked or expired",
        revoked: "unknown, revoked or expired",
        away: "no member of the team",
    }
    if name in CHANGING:
        wanted[issue(owner, TokenScope.READ)] = "This needs a token with the scope “Read and run”"
        wanted[issue(member("reader", "VIEWER"), TokenScope.WRITE)] = "This needs the role Researcher"
    before = Run.objects.count(), waiting_run.last_seq
    for token, words in wanted.items():
        answer = call(token, name, **arguments_of(waiting_run.pk)[name])
        assert answer.is_error
        assert words in words_of(answer)
    waiting_run.refresh_from_db()
    assert (Run.objects.count(), waiting_run.last_seq) == before
    assert not HumanReply.objects.exists()


@pytest.mark.parametrize("name", sorted(set(TOOLS) - CHANGING))
def test_a_viewer_s_read_token_reads(owner: User, name: str) -> None:
    world = fill(owner)
    answer = call(issue(member("reader", "VIEWER"), TokenScope.READ), name, **arguments_of(world.run.pk)[name])
    assert not answer.is_error, words_of(answer)


def test_an_evaluation_is_read_with_its_items(owner: User) -> None:
    fill(owner)
    row = Evaluation.objects.first()
    assert row
    told = data_of(call(issue(owner, TokenScope.READ), "read_evaluation", evaluation=row.pk, items=True))
    assert told["id"] == row.pk
    assert "items" in told


@pytest.mark.parametrize("name", sorted(set(TOOLS) - {"list_models", "search", "list_runs", "find_labels"}))
def test_what_is_not_there_is_named(owner: User, name: str) -> None:
    arguments = arguments_of(987)[name] | ({"evaluation": 987} if name == "read_evaluation" else {})
    answer = call(issue(owner), name, **arguments)
    assert answer.is_error
    assert any(word in words_of(answer) for word in ("987", "layer4", "toybox"))


def test_descriptions_have_an_example_and_cost_little() -> None:
    async def listed() -> list[Any]:
        return await server.make_server().list_tools()

    tools = async_to_sync(listed)()
    written = [json.dumps(each.model_dump(by_alias=True, exclude_none=True)) for each in tools]
    assert sum(map(len, written)) / 4 < MAX_TOKENS
    for each in tools:
        assert "Example: {" in each.description or not each.input_schema["properties"], each.name


def test_a_program_that_is_too_long_is_refused_with_the_limit(owner: User, waiting_run: Run) -> None:
    answer = call(issue(owner), "run_experiment", run=waiting_run.pk, program="#" * 100_001)
    assert answer.is_error
    assert "program: String should have at most 100000 characters" in words_of(answer)
    assert not HumanReply.objects.exists()


@pytest.mark.parametrize("program", ["", "\x00", "\ud800"])
def test_a_program_that_is_none_is_refused(owner: User, waiting_run: Run, program: str) -> None:
    answer = call(issue(owner), "run_experiment", run=waiting_run.pk, program=program)
    assert answer.is_error
    assert Run.objects.get().status == "waiting"


def test_a_run_that_waits_for_no_reply_says_what_to_do(owner: User) -> None:
    run = make_run(owner)
    answer = call(issue(owner), "run_experiment", run=run.pk, program="print(1)")
    assert answer.is_error
    assert "take_over_run" in words_of(answer)
    assert not HumanReply.objects.exists()


def test_waiting_ends_with_the_seconds_and_the_run_goes_on(owner: User) -> None:
    run = make_run(owner)
    told = data_of(call(issue(owner, TokenScope.READ), "wait_for_run", run=run.pk, seconds=1))
    assert told["status"] == "queued"
    assert "wait_for_run" in told["note"]


def test_a_number_that_no_row_can_have_changes_nothing(owner: User) -> None:
    run = make_run(owner)
    assert call(issue(owner), "take_over_run", run=10**30).is_error
    assert Run.objects.get(pk=run.pk).backbone == "scripted"


def test_a_token_waits_for_few_runs_at_once(owner: User) -> None:
    run, token = make_run(owner), issue(owner, TokenScope.READ)

    async def wait() -> list[Any]:
        entry.asker.set(Asker(token))
        answers = []
        async with Client(server.make_server()) as client, anyio.create_task_group() as group:

            async def one() -> None:
                answers.append(await client.call_tool("wait_for_run", {"run": run.pk, "seconds": 2}))

            for _ in range(waiting.MAX_WAITING + 1):
                group.start_soon(one)
        return answers

    answers = async_to_sync(wait)()
    (refused,) = [each for each in answers if each.is_error]
    assert f"{waiting.MAX_WAITING} calls of this token already wait" in words_of(refused)
