"""The main job by a client made with the SDK: a run on toybox, experiments, a conclusion; what it takes."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from experiments.models import AuditEntry, Run
from tests.support.mcp_client import connected, data_of, images_of, issue, words_of
from tests.support.playing import playing
from tests.support.served import served
from workers.jobs import catalogue

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
PROMPTS = """
prompts = ["a red ball on grass", "a blue ball on grass", "a red cube on snow"]
activations, images = system.neuron(tools.text2image(prompts))
tools.log_experiment(activations, images, prompts, "colour and shape")
"""


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
            assert len(images_of(first)) > 10
            assert "Mean exemplar activation" in words_of(first)
            lines = [{"number": 1, "text": "It responds to sunsets."}]
            second = await call("run_experiment", run=run, program=PROMPTS, hypotheses=lines, prose="Colours next.")
            assert len(images_of(second)) == 3
            assert "1. a red ball on grass — activation" in words_of(second)
            failed = await call("run_experiment", run=run, program="print(1 / 0)")
            assert "ZeroDivisionError" in words_of(failed)

            ended = await call("conclude", run=run, description="It responds to sunsets.", labels=["sunset"])
            assert data_of(ended)["status"] == "concluded"
            assert data_of(ended)["conclusion"]["labels"] == ["sunset"]
            again = await call("read_experiment", run=run, number=2)
            assert PROMPTS.strip() in words_of(again)
            assert len(images_of(again)) == 3
            told = await call("read_run", run=run, transcript=True)
            assert "Colours next." in words_of(told)
            unit = await call("read_unit", model="toybox", layer="layer4", unit=12)
            assert [each["text"] for each in data_of(unit)["labels"]] == ["sunset"]
            print(f"{len(calls)} calls, {sum(calls):.1f} s, {[round(each, 2) for each in calls]}, {len(tools)} characters of tools, {len(reports)} reports")
            print({name: len(words_of(each)) for name, each in (("ask", begun), ("first", first), ("second", second))}, len(images_of(first)), sum(len(each.data) for each in images_of(first)), {each.mime_type for each in images_of(first)})
            return run

    with playing(), served() as url:
        run = Run.objects.get(pk=async_to_sync(investigate)(url))
    assert (run.status, run.owner, run.labels) == ("concluded", owner, ["sunset"])
    assert reports
    audit = AuditEntry.objects.filter(row_pk=run.pk).order_by("pk")
    assert [each.verb for each in audit] == ["run.asked", *["reply.sent"] * 4]
    assert all("laptop" in each.token for each in audit)
