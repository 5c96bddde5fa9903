"""How servers frame a reply: a JSON body, an end without a reason, errors with status 200, thoughts alone."""

from __future__ import annotations

import json
import re

import pytest

from tests.support.openai_backbone import ask
from tests.support.provider import Handler, Provider, says, sends, starts, streams
from workers.backbones.openai import framing
from workers.errors import BackboneRefused, BackboneUnavailable, ContentRefused

TEXT = "A toy.\n[LABEL]: réd"


def completion(finish="stop", content=TEXT, **message):
    return {
        "id": "x",
        "object": "chat.completion",
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
        "choices": [
            {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content, **message}}
        ],
    }


BODIES = {
    "plain": sends(completion()),
    "named a stream": sends(completion(), "text/event-stream"),
    "of no named type": sends(completion(), "text/plain"),
    "behind blank lines": sends(" \n\n" + json.dumps(completion(), indent=1)),
    "without a reason": sends(completion(finish=None)),
}


@pytest.mark.parametrize("answer", BODIES.values(), ids=BODIES)
def test_a_json_body_is_the_reply_and_its_tokens_count(answer):
    pieces = []
    with Provider(answer) as server:
        reply = ask(server, emit=pieces.append, prices={"gpt-4o": (1.0, 1.0)})
    assert "".join(piece for piece in pieces if isinstance(piece, str)) == reply.text == TEXT
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (100, 10)
    assert reply.provider_errors == ()
    assert len(server.asked) == 1


def test_a_stream_that_is_named_json_is_still_a_stream():
    def mislabelled(handler):
        handler.begin("application/json")
        for word in ("red ", "balls"):
            handler.piece(word)
        handler.piece(None, finish="stop")
        handler.end()

    pieces = []
    with Provider(mislabelled) as server:
        assert ask(server, emit=pieces.append).text == "red balls"
    assert [piece for piece in pieces if piece] == ["red ", "balls"]


def test_a_body_is_judged_as_a_stream_is():
    with Provider(sends(completion("length")), says("whole")) as server:
        assert ask(server).text == "whole"
    assert server.asked[1]["max_tokens"] > 0
    with Provider(sends(completion("content_filter"))) as server, pytest.raises(ContentRefused):
        ask(server)
    thought = sends(completion(reasoning_content="It is warm."))
    with Provider(thought) as server:
        assert ask(server).reasoning == "It is warm."


@pytest.mark.parametrize(
    "body", ["{", "[]", "[1, 2]", '{"choices": 5}', '{"choices": ["x"]}', '{"choices": [{}]}', "{}"]
)
def test_a_body_of_nonsense_is_tried_again(body):
    with Provider(sends(body), says("red")) as server:
        assert ask(server).text == "red"
    assert len(server.asked) == 2


def test_a_body_without_end_is_left(monkeypatch):
    monkeypatch.setattr(framing, "MAX_BODY_BYTES", 100_000)

    def endless(handler):
        handler.begin("application/json")
        while not handler.provider.over.is_set():
            handler.raw("[" * 10_000)

    with Provider(endless, says("red")) as server:
        assert ask(server).text == "red"
        assert server.hung_up.wait(60)


def test_done_after_words_is_an_end_and_a_cut_line_is_none():
    with Provider(starts("red ", "balls", then=Handler.end)) as server:
        assert ask(server).text == "red balls"
    assert len(server.asked) == 1
    with Provider(starts("red ba", then=Handler.cut)) as server, pytest.raises(BackboneUnavailable, match="broke off"):
        ask(server)
    assert len(server.asked) == 3


def test_done_changes_no_reason_that_was_named():
    with Provider(says("half", finish="length")) as server, pytest.raises(BackboneRefused, match="limit of tokens"):
        ask(server)


QUOTA = "Provider returned error: quota of the day is used up"
ERRORS = {
    "out of credit": ({"error": {"message": QUOTA, "code": 402}}, "no credit left for this key: “Provider returned"),
    "its code in words": ({"error": {"message": QUOTA, "code": "insufficient_quota"}}, QUOTA),
    "a bad key": ({"object": "error", "message": "No such api key", "code": 401}, "does not accept the key"),
    "a parameter": ({"detail": "No API key", "code": 401}, "No API key"),
}


@pytest.mark.parametrize(("body", "told"), ERRORS.values(), ids=ERRORS)
@pytest.mark.parametrize("frame", [sends, streams])
def test_an_error_with_status_200_is_the_providers(frame, body, told):
    with Provider(frame(body)) as server, pytest.raises(BackboneRefused, match=re.escape(told)):
        ask(server)
    assert len(server.asked) == 1


def test_an_error_in_a_list_of_its_own_is_the_providers():
    listed = [{"error": {"message": QUOTA, "code": 402}}]
    with Provider(sends(listed)) as server, pytest.raises(BackboneRefused, match=QUOTA):
        ask(server)


def test_an_error_that_may_pass_is_quoted_and_tried_again():
    for error in ({"error": "model is loading"}, {"error": {"message": "model is loading"}}):
        with Provider(sends(error), says("red")) as server:
            reply = ask(server)
        assert reply.text == "red"
        assert "“model is loading”" in reply.provider_errors[0]


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_a_reply_that_came_as_reasoning_is_told_with_its_beginning(name):
    pieces = [{"choices": [{"delta": {"content": None, name: f"word{n} "}}]} for n in range(200)]
    end = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
    with Provider(streams(*pieces, end)) as server, pytest.raises(BackboneUnavailable) as caught:
        ask(server, attempts=1)
    words = str(caught.value)
    assert "all of its reply as reasoning" in words
    assert "“word0 word1 " in words
    assert "reasoning parser" in words
    assert "word150" not in words
