"""Functions that models call by their provider's means: in pieces or whole, recorded, and the same when resumed."""

from __future__ import annotations

import json

import pytest

from tests.support.openai_backbone import TASK, ask, backbone
from tests.support.playback import CONCLUSION, RED_BALLS, Lab, end, kinds, logged, play
from tests.support.provider import Provider, says, sends, streams
from workers.agent.conversation import messages
from workers.errors import BackboneUnavailable
from workers.protocols import Message, StatusNote
from workers.record.decoding import decode, encode
from workers.record.grammar.calls import READ
from workers.record.replies import FunctionCall

PRICES = {"gpt-4o": (2.5, 10.0)}
CODE = "tools.display(1)"
ARGUMENTS = json.dumps({"code": CODE})
CALL = FunctionCall("run", ARGUMENTS, "call_1")


def piece(*calls, finish=None, content=None, **delta):
    return {
        "choices": [{"index": 0, "delta": {"content": content, "tool_calls": calls, **delta}, "finish_reason": finish}]
    }


def part(arguments, index=0, **more):
    name = {"name": more.pop("name")} if "name" in more else {}
    numbered = {} if index is None else {"index": index}
    return {**numbered, **more, "function": {**name, "arguments": arguments}}


END = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
WHOLE = part(ARGUMENTS, id="call_1", name="run", type="function")
FORMS = {
    "in pieces": streams(
        piece(part("", id="call_1", name="run")), *(piece(part(each)) for each in (ARGUMENTS[:5], ARGUMENTS[5:])), END
    ),
    "its id each time": streams(
        *(piece(part(each, id="call_1", name="run")) for each in (ARGUMENTS[:5], ARGUMENTS[5:])), END
    ),
    "whole": streams(piece(WHOLE, finish="tool_calls")),
    "without an index": streams(piece(part(ARGUMENTS, None, id="call_1", name="run")), END),
    "arguments as an object": streams(piece(part({"code": CODE}, id="call_1", name="run")), END),
    "one body": sends(
        {"choices": [{"message": {"content": None, "tool_calls": [WHOLE]}, "finish_reason": "tool_calls"}]}
    ),
}


@pytest.mark.parametrize("answer", FORMS.values(), ids=FORMS)
def test_a_call_is_heard_in_every_form(answer):
    with Provider(answer) as server:
        reply = ask(server)
    assert (reply.text, reply.calls) == ("", (CALL,))
    assert reply.usage.completion_tokens > 0
    assert len(server.asked) == 1


def test_the_older_form_of_a_call_is_heard():
    older = {"choices": [{"delta": {"content": "So.", "function_call": {"name": "run", "arguments": ARGUMENTS}}}]}
    with Provider(streams(older, END)) as server:
        reply = ask(server)
    assert (reply.text, reply.calls) == ("So.", (FunctionCall("run", ARGUMENTS),))


@pytest.mark.parametrize("indices", [(0, 1), (0, 0), (None, None)])
def test_several_calls_are_kept_apart(indices):
    called = [part(ARGUMENTS, index, id=f"call_{n}", name="run") for n, index in enumerate(indices)]
    with Provider(streams(*map(piece, called), END)) as server:
        assert [each.id for each in ask(server).calls] == ["call_0", "call_1"]


NONSENSE = {
    "too many": streams(*(piece(part("x", n, id=str(n))) for n in range(40)), END),
    "empty": streams(piece(part("", id="1", name="run")), END),
    "a number": streams({"choices": [{"delta": {"tool_calls": 3}}]}, END),
    "numbers": streams(piece(1, 2), END),
    "endless": streams(*(piece(part("x" * 50_000)) for _ in range(10)), END),
}


@pytest.mark.parametrize("answer", NONSENSE.values(), ids=NONSENSE)
def test_calls_of_nonsense_are_a_fault(answer):
    with Provider(answer) as server, pytest.raises(BackboneUnavailable):
        ask(server, attempts=1)


def test_who_watches_is_told_of_a_call_under_way():
    told = []
    with Provider(FORMS["in pieces"]) as server:
        ask(server, emit=told.append)
    assert any("writes a function call" in each.what for each in told if isinstance(each, StatusNote))


def test_a_call_behind_the_words_of_before_is_no_repetition():
    before = (*TASK, Message("assistant", ("So.",)), Message("user", ("Go on.",)))
    with Provider(streams(piece(WHOLE, content="So."), END)) as server:
        assert ask(server, before).calls == (CALL,)
    assert len(server.asked) == 1


def test_a_called_program_runs_is_recorded_and_gives_the_same_conversation_again():
    concluded = json.dumps({"description": RED_BALLS.description, "label": RED_BALLS.labels[0]})
    last = streams(piece(part(concluded, id="call_2", name="end")), END)
    with Provider(FORMS["in pieces"], last) as it:
        run_log = play(backbone(it, prices=PRICES), Lab(logged(3.5)))
    assert kinds(run_log)[-1] == "concluded"
    assert end(run_log).conclusion == RED_BALLS
    events = run_log.events()
    replied = events[1].payload
    assert (replied.code, replied.calls, replied.readings) == (CODE, (CALL,), (READ,))
    assert decode("reply", json.loads(json.dumps(encode(replied)))) == replied
    said = it.asked[1]["messages"]
    assert [each["content"] for each in said if each["role"] == "assistant"] == [f"[CODE]:\n```python\n{CODE}\n```"]
    assert READ in json.dumps(said, ensure_ascii=False).replace('\\"', '"')
    asked = [each for each in messages(events[:-2]) if each.role == "assistant"]
    assert asked[0].parts == (f"[CODE]:\n```python\n{CODE}\n```",)


def test_a_call_that_means_nothing_has_the_agent_told_how_to_write():
    lost = streams(piece(part('{"query": "red"}', id="1", name="find")), END)
    with Provider(lost, says(CONCLUSION)) as it:
        run_log = play(backbone(it, prices=PRICES), Lab())
    assert kinds(run_log)[-1] == "concluded"
    told = json.dumps(it.asked[1]["messages"])
    assert "There are no functions to call here" in told
    assert "held neither a program nor a conclusion" in told
