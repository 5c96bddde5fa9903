"""What servers differ in: parameters they refuse, roles, thoughts beside the reply, silence, what is paid for."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from PIL import Image

from tests.support.openai_backbone import HASTY, TASK, ask
from tests.support.provider import Handler, Provider, refuses, says, starts, streams, unless
from workers.backbones.openai.backbone import OpenAIChat
from workers.backbones.openai.retry import RetryPolicy
from workers.backbones.openai.stream import ReplyStream
from workers.errors import BackboneRefused, BackboneUnavailable
from workers.protocols import ImagePart, Message, StatusNote
from workers.protocols import Provider as Settings
from workers.record.limits import Usage

RED = Image.new("RGB", (8, 8), "red")
MISTRAL = {"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]}


def forbids(name, answer, refusal):
    return unless(answer, refusal, lambda it: name not in it)


def test_a_refusal_that_names_its_field_apart_is_understood_and_told():
    with Provider(forbids("seed", says("red"), refuses(422, body=json.dumps({"message": MISTRAL})))) as server:
        reply = ask(server, attempts=1)
    assert reply.text == "red"
    assert reply.provider_errors == (f"{server.host} does not take 'seed': asked again without it.",)
    other = refuses(422, body=json.dumps(MISTRAL).replace("seed", "tools"))
    with Provider(other) as server, pytest.raises(BackboneRefused, match=r"body\.tools: Extra inputs"):
        ask(server)


def test_a_limit_of_tokens_goes_by_the_name_that_the_server_takes():
    newer = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    whole = forbids("max_tokens", says("whole"), refuses(400, newer, param="max_tokens"))
    with Provider(says("half", finish="length", usage=(10, 16_000)), whole) as server:
        assert ask(server).text == "whole"
    assert [asked.get("max_completion_tokens") for asked in server.asked] == [None, None, 32_000]


def test_user_and_assistant_take_turns_whatever_the_conversation_is():
    told = (*TASK, Message("user", ("And why?", ImagePart("a", "1. a"))), Message("assistant", ("Hm.",)))
    with Provider(says("red")) as server:
        ask(server, (*told, Message("assistant", ("So.",)), Message("user", ("Go on.",))), images={"a": RED})
    roles = [each["role"] for each in server.asked[0]["messages"]]
    assert roles == ["system", "user", "assistant", "user"]
    assert [part["type"] for part in server.asked[0]["messages"][1]["content"]] == ["text", "text", "image_url"]
    assert server.asked[0]["messages"][2]["content"] == "Hm.\n\nSo."


def test_a_server_without_system_messages_reads_them_from_the_user():
    refused = refuses(400, "System role not supported")
    with Provider(unless(says("red"), refused, lambda it: it["messages"][0]["role"] == "user")) as server:
        assert ask(server, attempts=1).text == "red"
    assert server.asked[1]["messages"] == [{"role": "user", "content": "You experiment.\n\nWhat drives it?"}]


def delta(**fields):
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": fields.pop("finish", None)}]}


MISTRAL_THOUGHT = [{"type": "thinking", "thinking": [{"type": "text", "text": "It is warm."}]}]
THOUGHTS = {
    "DeepSeek, vLLM": (delta(reasoning_content="It is "), delta(reasoning_content="warm."), delta(content="red")),
    "OpenRouter, Ollama": (delta(reasoning="It is warm."), delta(content="red")),
    "between marks": (delta(content="<th"), delta(content="ink>It is warm.</th"), delta(content="ink>\n\nred")),
    "first mark swallowed": (delta(content="It is warm.\n"), delta(content="</think>\n"), delta(content="red")),
    "Mistral": (delta(content=MISTRAL_THOUGHT), delta(content=[{"type": "text", "text": "red"}])),
}


@pytest.mark.parametrize("chunks", THOUGHTS.values(), ids=THOUGHTS)
def test_what_a_model_thought_is_kept_beside_its_reply(chunks):
    pieces = []
    with Provider(streams(*chunks, delta(content="", finish="stop"))) as server:
        reply = ask(server, emit=pieces.append)
    assert (reply.text, reply.reasoning) == ("red", "It is warm.")
    words = [piece for piece in pieces if piece is None or isinstance(piece, str)]
    assert "".join(words[words.index(None) + 1 if None in words else 0 :]) == "red"
    assert any(isinstance(piece, StatusNote) and "thinking: 3 words" in piece.what for piece in pieces)


def test_the_words_of_a_long_thought_are_not_counted_again_for_each_of_them():
    def chunk(finish=None, **fields):
        delta = SimpleNamespace(**{"content": None, "refusal": None} | fields)
        return SimpleNamespace(usage=None, choices=[SimpleNamespace(delta=delta, finish_reason=finish)])

    heard, told = ReplyStream(), []
    thought = [chunk(reasoning=f"word{number} ") for number in range(4000)]
    heard.listen(iter([*thought, chunk("stop", content="red")]), told.append, RetryPolicy())
    counts = [each.what for each in told if isinstance(each, StatusNote)]
    assert all(f"{number + 1} words" in counts[number] for number in range(20))
    assert len(counts) < 1000
    assert (heard.reply, len(heard.reasoning.split())) == ("red", 4000)


def test_a_thought_without_a_reply_is_no_reply_and_marks_in_a_reply_stay():
    with Provider(says("<think>Hm."), says("Write <think> as it is.")) as server:
        assert ask(server).text == "Write <think> as it is."
    assert len(server.asked) == 2


def test_silence_is_told_while_it_lasts_and_in_the_reply():
    heard = []
    with Provider(starts("gre", then=Handler.stall), says("red")) as server:
        policy = replace(HASTY, silence=0.6, murmur=0.1)
        reply = ask(server, emit=heard.append, policy=policy)
    told = [each for each in heard if isinstance(each, StatusNote)]
    assert told[0].what == f"{server.host} has been silent, in seconds"
    assert any("request 2 of 3 follows" in each.what for each in told)
    assert f"{server.host} sent nothing for" in reply.provider_errors[0]
    assert OpenAIChat(Settings(silence=7.0), "m")._policy.silence == 7.0


@pytest.mark.parametrize(
    ("answer", "error", "spent"),
    [
        (says("", usage=(1000, 7)), BackboneUnavailable, Usage(3000, 21, 0.003021)),
        (says("half", finish="length", usage=(1000, 7)), BackboneRefused, Usage(2000, 14, 0.002014)),
        (says("some", finish="content_filter", usage=(1000, 7)), BackboneRefused, Usage(1000, 7, 0.001007)),
    ],
)
def test_what_a_reply_took_that_never_came_about_is_told_with_the_error(answer, error, spent):
    with Provider(answer) as server, pytest.raises(error) as caught:
        ask(server, prices={"gpt-4o": (1.0, 1.0)})
    assert caught.value.spent.prompt_tokens == spent.prompt_tokens
    assert caught.value.spent.completion_tokens == spent.completion_tokens
    assert caught.value.spent.cost == pytest.approx(spent.cost)
