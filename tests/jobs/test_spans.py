"""The spans of a run follow from its events alone: names, parents, times, tokens, ids, and what is in none of them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from experiments.core import transcript
from experiments.models import Event, Image, Run
from tests.support.builders import experiment, make_run, replied, result, started
from tests.support.function_runs import play
from tests.support.span_collector import read_attributes, read_spans
from workers.jobs.spans.making import MAX_CALLS, spans_of
from workers.jobs.spans.otlp import encode
from workers.jobs.spans.rows import MAX_TEXT_CHARS, SpanRow
from workers.record.events import Blocked, Ended, Forked, Graded, HandedOver, Note, Payload, Retrying
from workers.record.experiments import ToolCall
from workers.record.limits import Usage
from workers.record.replies import Conclusion, FunctionCall

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_redis")]
SECRET = "crimson hunch"
"""What stands in every text of a run, and in no name."""


def record(run: Run, *steps: tuple[str, Payload]) -> Run:
    for kind, payload in steps:
        transcript.append(run.pk, kind, payload)
    return Run.objects.get(pk=run.pk)


def make_spans(run: Run, **options: Any) -> list[SpanRow]:
    return spans_of(run, list(run.events.order_by("seq")), **options)


def sum_tokens(spans: list[SpanRow]) -> tuple[int, int]:
    names = ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens")
    first, second = (sum(int(each.attributes.get(name, 0)) for each in spans) for name in names)
    return first, second


def full_run(owner: User) -> Run:
    """A run with everything that takes tokens, whose every text holds the secret."""
    code = replace(experiment(), code=f"print('{SECRET}')")
    calls = (ToolCall("tools.text2image", SECRET, 0.01), ToolCall("system.neuron", SECRET, 0.02, failed=True))
    asked = (FunctionCall("run_experiment", SECRET, "call_7"),)
    usage = Usage(10, 5, 0.25, cached_tokens=4)
    return record(
        make_run(owner, question=SECRET),
        ("started", replace(started(), question=SECRET, assignment=SECRET, instructions=SECRET)),
        ("reply", replied(text=SECRET, prose=SECRET, reasoning=SECRET, usage=usage, seconds=0.5, calls=asked)),
        ("experiment", code),
        ("result", result(output=SECRET, error=SECRET, calls=calls, usage=Usage(100, 10), seconds=0.1)),
        ("note", Note(1, "Ada Lovelace", SECRET)),
        ("retrying", Retrying(2, 1, SECRET)),
        ("blocked", Blocked(2, SECRET, Usage(3, 2))),
        ("resumed", HandedOver(2, "Ada Lovelace", "openai", "gpt-4o", "gpt-4o")),
        ("handover", HandedOver(2, "Ada Lovelace", "person", "", "Ada Lovelace")),
        ("reply", replied(2, author="Ada Lovelace", by_person=True, text=SECRET, prose=SECRET, usage=Usage())),
        ("graded", Graded(2, SECRET, passed=True, pearson=0.8)),
        ("failed", Ended(SECRET, Conclusion(SECRET, (SECRET,)), Usage(1, 1))),
    )


@pytest.mark.usefixtures("on_toybox")
def test_a_real_run_is_a_tree_of_named_spans(owner: User) -> None:
    run = play(make_run(owner, limits={"rounds": 3}))
    assert run.has_ended
    *spans, root = make_spans(run)
    events = list(run.events.order_by("seq"))
    replies = [each for each in spans if each.name.startswith("chat ")]
    programs = [each for each in spans if each.name == "execute_tool run_experiment"]
    tools = [each for each in spans if each not in replies and each not in programs]
    assert (root.name, root.parent, root.attributes["maia.status"]) == ("invoke_agent MAIA", b"", run.status)
    assert len(replies) == run.rounds
    assert len(programs) == run.experiment_count > 1
    assert len(tools) == sum(len(each.content.calls) for each in events if each.kind == "result") > 5
    assert {each.name for each in tools} >= {"execute_tool system.neuron", "execute_tool tools.log_experiment"}
    assert all(each.parent == root.span for each in (*replies, *programs))
    parents = {each.span: each for each in (root, *programs)}
    assert all(each.parent in parents for each in spans)
    for each in spans:
        assert parents[each.parent].start <= each.start <= each.end <= parents[each.parent].end
    assert len({each.span for each in (root, *spans)}) == len(spans) + 1
    assert {each.trace for each in (root, *spans)} == {root.trace}


def test_tokens_of_the_spans_are_those_of_the_run(owner: User) -> None:
    run = full_run(owner)
    spans = make_spans(run)
    assert sum_tokens(spans) == (run.prompt_tokens, run.completion_tokens) == (114, 18)
    root = spans[-1].attributes
    assert (root["maia.input_tokens"], root["maia.output_tokens"]) == (114, 18)
    assert [each.attributes["gen_ai.usage.cache_read.input_tokens"] for each in spans[:1]] == [4]


def test_failures_models_and_calls_are_named(owner: User) -> None:
    run = full_run(owner)
    *spans, root = make_spans(run)
    assert [(each.name, each.error) for each in spans] == [
        ("chat scripted", ""),
        ("execute_tool run_experiment", ""),
        ("execute_tool tools.text2image", ""),
        ("execute_tool system.neuron", "tool_error"),
        ("chat scripted", ""),
        ("chat scripted", "blocked"),
        ("chat person", ""),
        ("chat person", "failed"),
    ]
    assert (root.error, root.attributes["error.type"]) == ("failed", "failed")
    assert spans[1].attributes["gen_ai.tool.call.id"] == "call_7"
    assert [each.name for each in root.marks] == [
        "maia.note",
        "maia.retrying",
        "maia.blocked",
        "maia.resumed",
        "maia.handover",
        "gen_ai.evaluation.result",
    ]


def test_no_text_and_no_name_of_a_person_is_sent_by_default(owner: User) -> None:
    run = full_run(owner)
    plain = encode(make_spans(run), {})
    assert SECRET.encode() not in plain
    told = encode(make_spans(run, with_content=True), {})
    assert told.count(SECRET.encode()) > 10
    assert b"Lovelace" not in plain + told


def test_content_is_messages_that_collectors_read(owner: User) -> None:
    first, *_, root = make_spans(full_run(owner), with_content=True)
    (asked,) = json.loads(str(first.attributes["gen_ai.input.messages"]))
    (answer,) = json.loads(str(first.attributes["gen_ai.output.messages"]))
    assert asked == {"role": "user", "parts": [{"type": "text", "content": SECRET}]}
    assert [each["type"] for each in answer["parts"]] == ["reasoning", "text"]
    assert (answer["role"], answer["finish_reason"]) == ("assistant", "stop")
    assert json.loads(str(first.attributes["gen_ai.system_instructions"])) == [{"type": "text", "content": SECRET}]
    (found,) = json.loads(str(root.attributes["gen_ai.output.messages"]))
    assert found["parts"] == [{"type": "text", "content": f"{SECRET}\n{SECRET}"}]


def test_images_are_words_in_the_content(owner: User) -> None:
    Image.objects.create(key="0a1b2c", width=8, height=8, origin="generated")
    run = record(
        make_run(owner),
        ("started", started()),
        ("reply", replied()),
        ("experiment", experiment()),
        ("result", result(images=("0a1b2c",))),
        ("reply", replied(2)),
        ("concluded", Ended()),
    )
    body = encode(make_spans(run, with_content=True), {})
    assert b"(an image)" in body
    assert b"0a1b2c" not in body


def test_the_same_run_has_the_same_ids_and_another_has_others(owner: User) -> None:
    first, second = full_run(owner), full_run(owner)
    assert make_spans(first) == make_spans(first)
    ids = [{each.span for each in make_spans(run)} for run in (first, second)]
    assert not ids[0] & ids[1]
    again = Run.objects.get(pk=first.pk)
    again.created += timedelta(microseconds=1)  # run 1 of another installation
    assert make_spans(again)[0].trace != make_spans(first)[0].trace


def test_a_run_under_way_has_the_spans_that_it_will_have_at_its_end(owner: User) -> None:
    run = full_run(owner)
    events = list(run.events.order_by("seq"))
    begun, whole = spans_of(run, events[:4]), spans_of(run, events)
    assert [each.name for each in begun] == [each.name for each in whole[: len(begun)]]
    assert [each.span for each in begun] == [each.span for each in whole[: len(begun)]]
    assert whole[-1].span not in {each.span for each in begun}
    assert spans_of(run, []) == []


def test_a_program_under_way_at_the_end_is_broken_off(owner: User) -> None:
    steps = [("started", started()), ("reply", replied()), ("experiment", experiment()), ("cancelled", Ended())]
    spans = make_spans(record(make_run(owner), *steps))
    assert [(each.name, each.error) for each in spans[1:]] == [
        ("execute_tool run_experiment", "cancelled"),
        ("invoke_agent MAIA", ""),
    ]


def test_what_a_fork_copied_belongs_to_the_other_run(owner: User) -> None:
    parent = make_run(owner)
    fork = make_run(owner, parent=parent)
    forked = ("forked", Forked(1, "Ada Lovelace", parent.pk))
    steps = [("started", started()), ("reply", replied()), forked, ("reply", replied(2)), ("concluded", Ended())]
    spans = make_spans(record(fork, *steps))
    assert [each.attributes["maia.round"] for each in spans[:-1]] == [2]
    assert spans[-1].attributes["maia.forked_from"] == parent.pk


def test_the_name_of_a_synthetic_neuron_is_not_told(owner: User) -> None:
    run = make_run(owner, system_kind="synthetic", model="synthetic:toybox-eyes", layer="mono", unit=1)
    root = make_spans(record(run, ("started", started()), ("concluded", Ended())))[-1]
    assert re.fullmatch(r"neuron \d{6}", str(root.attributes["maia.system"]))


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -5.0, 1e18])
def test_times_that_make_no_sense_stay_within_the_run(owner: User, seconds: float) -> None:
    run = record(
        make_run(owner),
        ("started", started()),
        ("reply", replied()),
        ("experiment", experiment()),
        ("result", result()),
        ("concluded", Ended()),
    )
    events = list(run.events.order_by("seq"))
    events[1].__dict__["content"] = replace(replied(), seconds=seconds)
    calls = (ToolCall("tools.display", "", seconds),)
    events[3].__dict__["content"] = result(seconds=seconds, tool_seconds=seconds, calls=calls)
    *spans, root = spans_of(run, events)
    assert all(root.start <= each.start <= each.end <= root.end for each in spans)
    assert len(read_spans(encode([*spans, root], {}))) == 4


def test_hostile_text_is_bounded_and_encoded(owner: User) -> None:
    text = "\x00\ud800" + "x" * 1_000_000
    calls = tuple(ToolCall(text, text, 0.0) for _ in range(1_000))
    events = [
        Event(seq=seq, kind=kind) for seq, kind in enumerate(("started", "reply", "experiment", "result", "failed"), 1)
    ]
    payloads = [
        replace(started(), question=text, instructions=text, assignment=text, versions={"backbone": text}),
        replied(
            author=text, text=text, reasoning=text, usage=Usage(10**30, -1), calls=(FunctionCall(text, text, text),)
        ),
        replace(experiment(), code=text),
        result(output=text, error=text, calls=calls),
        Ended(text, Conclusion(text, (text,) * 100)),
    ]
    for event, payload in zip(events, payloads, strict=True):
        event.__dict__["content"] = payload
    run = make_run(owner)
    run.limits = {"rounds": 10**30}
    spans = spans_of(run, events, with_content=True)
    body = encode(spans, {})
    texts = [value for span in read_spans(body) for value in read_attributes(span).values() if isinstance(value, str)]
    assert len(spans) == MAX_CALLS + 3
    assert max(map(len, texts)) < 3 * MAX_TEXT_CHARS
    assert not any("\x00" in each for each in texts)
    assert len(body) < 10_000_000
