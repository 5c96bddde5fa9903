"""The main job by a client made with the SDK: a run on toybox, experiments, a conclusion; what it takes."""

from __future__ import annotations

import json
import time
from threading import Event as Flag
from typing import Any

import anyio
import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from experiments.core import transcript
from experiments.mcp import rounds
from experiments.models import AuditEntry, Run
from tests.support.builders import make_run
from tests.support.mcp_client import connected, data_of, images_of, issue, words_of
from tests.support.playing import PATIENCE, playing
from tests.support.served import served
from workers.jobs import catalogue, lease
from workers.jobs.run_round import execute_round

pytestmark = [
    pytest.mark.more,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("on_own_toybox", "no_redis"),
]
EXEMPLARS = """
def run_experiment(system, tools):
    activations, images = tools.dataset_exemplars(system)
    tools.log_experiment(activations, images, [f"exemplar {n}" for n in range(len(images))], "what they share")
"""
PROMPTS = json.loads(str(rounds.run_experiment.__doc__).partition("Example: ")[2].rstrip("."))["program"]
"""What the tool itself gives as an example."""


@pytest.fixture(autouse=True)
def listed(on_own_toybox: None) -> None:
    catalogue.write_model("toybox")
    catalogue.write_dataset("toybox")
    catalogue.write_toolset("toybox")
    for key in ("person", "scripted"):
        catalogue.write_backbone(key)


def test_a_client_asks_experiments_and_concludes(owner: User) -> None:
    token = issue(owner)
    reports: list[str] = []
    calls: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        reports.append(message or "")

    async def investigate(url: str) -> Any:
        async with connected(url, token) as client:
            tools = json.dumps([tool.model_dump(exclude_none=True) for tool in (await client.list_tools()).tools])

            async def call(name: str, **arguments: Any) -> Any:
                begun = time.monotonic()
                found = await client.call_tool(name, arguments, progress_callback=hear)
                calls.append(time.monotonic() - begun)
                assert not found.is_error, words_of(found)
                return found

            begun = await call("ask", model="toybox", layer="layer4", unit=12)
            run = data_of(begun)["run"]
            assert data_of(begun)["awaits_reply_of_round"] == 1
            assert "tools.text2image" in words_of(begun)

            first = await call("run_experiment", run=run, program=EXEMPLARS)
            assert data_of(first)["awaits_reply_of_round"] == 2
            count = len(images_of(first))
            assert count > 20
            assert "not shown" not in words_of(first)
            assert "Mean exemplar activation" in words_of(first)
            lines = [{"number": 1, "text": "It responds to sunsets."}]
            second = await call("run_experiment", run=run, program=PROMPTS, hypotheses=lines, prose="Colours next.")
            assert len(images_of(second)) == 2
            assert "1. a red ball — activation" in words_of(second)
            failed = await call("run_experiment", run=run, program="print(1 / 0)")
            assert "ZeroDivisionError" in words_of(failed)

            ended = await call("conclude", run=run, description="It responds to sunsets.", labels=["sunset"])
            assert data_of(ended)["status"] == "concluded"
            assert data_of(ended)["conclusion"]["labels"] == ["sunset"]
            again = await call("read_experiment", run=run, number=2)
            assert PROMPTS in words_of(again)
            assert len(images_of(again)) == 2
            told = await call("read_run", run=run, transcript=True)
            assert "Colours next." in words_of(told)
            unit = await call("read_unit", model="toybox", layer="layer4", unit=12)
            assert [each["text"] for each in data_of(unit)["labels"]] == ["sunset"]
            seconds = [round(each, 2) for each in calls]
            print(f"{len(calls)} calls, {sum(calls):.1f} s {seconds}; tools: {len(tools) // 4} tokens, ", end="")
            print(f"ask: {len(words_of(begun)) // 4}, first result: {len(words_of(first)) // 4} and {count} images")
            return run

    with playing(), served() as url:
        run = Run.objects.get(pk=async_to_sync(investigate)(url))
    assert (run.status, run.owner, run.labels) == ("concluded", owner, ["sunset"])
    assert reports
    audit = AuditEntry.objects.filter(row_pk=run.pk).order_by("pk")
    assert [each.verb for each in audit] == ["run.asked", *["reply.sent"] * 4]
    assert all("laptop" in each.token for each in audit)


def begin(owner: User) -> Run:
    """A run that waits for the reply of its first round."""
    return await_reply(make_run(owner, backbone="person", unit=12), 1)


def await_reply(run: Run, number: int) -> Run:
    """The run once a worker has it wait for the reply of this round."""
    end = time.monotonic() + PATIENCE
    while True:
        found = Run.objects.get(pk=run.pk)
        if found.rounds == number - 1 and transcript.awaits_reply(found):
            return found
        assert time.monotonic() < end, f"run {run.pk} did not come to wait for round {number}: {found.status}"
        time.sleep(0.05)


def test_of_two_programs_at_once_one_is_played_and_the_other_is_told(owner: User) -> None:
    token, answers = issue(owner), []

    async def both(url: str, run: int) -> None:
        async with connected(url, token) as client, anyio.create_task_group() as group:

            async def send(text: str) -> None:
                program = f"print({text!r})"
                answers.append(await client.call_tool("run_experiment", {"run": run, "program": program}))

            group.start_soon(send, "one")
            group.start_soon(send, "two")

    with playing(), served() as url:
        run = begin(owner)
        async_to_sync(both)(url, run.pk)
    refused = [each for each in answers if each.is_error]
    assert len(refused) == 1, [words_of(each) for each in answers]
    told = words_of(refused[0])
    assert any(words in told for words in ("changed", "sent round 1", "does not wait")), told
    played = next(each for each in answers if not each.is_error)
    (reply,) = run.human_replies.filter(sent__isnull=False)
    assert f"Output:\n{reply.program[7:10]}" in words_of(played)
    assert run.experiments.count() == 1


def test_the_round_of_a_client_that_vanishes_is_played_and_kept(owner: User) -> None:
    token = issue(owner)

    async def vanish(url: str, run: int) -> None:
        async with connected(url, token) as client:
            with anyio.CancelScope() as scope:

                async def leave(*_: Any) -> None:
                    scope.cancel()

                program = "import time\ntime.sleep(1)\nprint('still here')"
                arguments = {"run": run, "program": program}
                await client.call_tool("run_experiment", arguments, progress_callback=leave)
            assert scope.cancelled_caught

    async def come_back(url: str, run: int) -> Any:
        async with connected(url, token) as client:
            return await client.call_tool("take_over_run", {"run": run})

    with playing(), served() as url:
        run = begin(owner)
        async_to_sync(vanish)(url, run.pk)
        await_reply(run, 2)
        found = async_to_sync(come_back)(url, run.pk)
    assert data_of(found)["awaits_reply_of_round"] == 2
    assert "still here" in words_of(found)


def test_a_run_of_an_agent_is_taken_over_and_its_limits_hold(owner: User) -> None:
    token = issue(owner)
    run = make_run(owner, unit=12, limits={"rounds": 3})

    async def take_over(url: str) -> list[Any]:
        async with connected(url, token) as client:
            taken = await client.call_tool("take_over_run", {"run": run.pk})
            last = await client.call_tool("run_experiment", {"run": run.pk, "program": "print(1)"})
            late = await client.call_tool("run_experiment", {"run": run.pk, "program": "print(1)"})
            return [taken, last, late]

    claimed = lease.claim(run.pk)
    assert claimed
    with lease.hold_lease(claimed):
        execute_round(claimed, Flag())
    assert Run.objects.get(pk=run.pk).rounds == 1
    with playing(), served() as url:
        taken, last, late = async_to_sync(take_over)(url)
    assert "## Reply" in words_of(taken)
    assert images_of(taken)
    assert not last.is_error, words_of(last)
    assert late.is_error
    assert "limit" in words_of(late)
