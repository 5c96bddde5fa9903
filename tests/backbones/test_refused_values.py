"""A value that a provider refuses is lowered; only words about the name of a parameter say that it is not known."""

from __future__ import annotations

import pytest

from tests.support.image_rounds import INSTRUCTIONS, PICTURE, count_images, result
from tests.support.openai_backbone import TASK, backbone
from tests.support.provider import Provider, refuses, says, unless
from workers.backbones.openai.reply_limits import read_reply_limit
from workers.errors import BackboneRefused
from workers.protocols import Message

WINDOW = (
    "'max_tokens' or 'max_completion_tokens' is too large: {asked}. This model's maximum context length is 8192 tokens "
    "and your request has 6192 input tokens ({asked} > 8192 - 6192)."
)
TOO_LARGE = {
    "vLLM": (WINDOW.replace("{asked}", "8192"), 2000),
    "OpenAI": ("max_tokens is too large: 8192. This model supports at most 4096 completion tokens.", 4096),
    "Claude": ("max_tokens: 8192 > 4,096, which is the maximum allowed for claude-3-haiku-20240307", 4096),
    "a range": ("Invalid max_tokens value, the valid range of max_tokens is [1, 4096]", 4096),
    "without a name": (
        "This model's maximum context length is 9000 tokens. However, you requested 12192 tokens (4000 in the "
        "messages, 8192 in the completion). Please reduce the length of the messages or completion.",
        5000,
    ),
    "without a number": ("max_tokens is too large", 4096),
}


def reply(it, told=TASK):
    return it.reply(told, lambda key: PICTURE, lambda piece: None, 1)


def cut_unless_short(words, most):
    """A provider whose replies are cut, and that refuses more room than `most` tokens."""
    whole = unless(says("whole"), refuses(400, words), lambda body: body.get("max_tokens", 0) <= most)
    return unless(whole, says("half", finish="length"), lambda body: "max_tokens" in body)


@pytest.mark.parametrize(("words", "most"), TOO_LARGE.values(), ids=TOO_LARGE)
def test_a_limit_that_is_too_large_is_lowered_and_its_name_stays(words, most):
    with Provider(cut_unless_short(words, most)) as server:
        it = backbone(server, attempts=1)
        for _ in range(2):
            assert reply(it).text == "whole"
    assert [body.get("max_tokens") for body in server.asked] == [None, 8192, most] * 2
    assert not any("max_completion_tokens" in body for body in server.asked)


def test_images_give_way_where_the_window_has_no_room_for_the_reply():
    def answer(handler):
        images, limit = count_images(handler.body), handler.body.get("max_tokens", 0)
        large = refuses(400, WINDOW.replace("{asked}", str(limit)))
        (large if limit > 2000 else says("whole", finish="stop" if images <= 3 else "length"))(handler)

    told = (INSTRUCTIONS, Message("user", result(1).parts[: 1 + 2 * 12]))
    with Provider(answer) as server:
        replied = reply(backbone(server, attempts=1), told)
    asked = [(count_images(body), body.get("max_tokens")) for body in server.asked]
    assert asked == [(12, None), (12, 8192), (12, 2000), (6, None), (3, None)]
    assert (replied.text, replied.captions) == ("whole", 9)
    assert any("too little room for the reply beside 6 images" in each for each in replied.provider_errors)


def test_a_reply_longer_than_the_most_that_is_allowed_is_no_reply():
    most = refuses(400, "max_tokens is too large: 16384. This model supports at most 4096 completion tokens.")
    with Provider(says("half", finish="length", usage=(10, 8192)), most) as server:
        with pytest.raises(BackboneRefused, match="limit of tokens"):
            reply(backbone(server, attempts=1))
        assert len(server.asked) == 2


UNKNOWN = ["Unknown name 'seed'", "Unsupported parameter: seed", "seed: Extra inputs are not permitted"]
VALUES = ["Unsupported value: 'seed' does not support 1", "seed must be less than 100", "Invalid seed"]


@pytest.mark.parametrize(
    ("words", "learnt"), [*((each, True) for each in UNKNOWN), *((each, False) for each in VALUES)]
)
def test_a_name_is_learnt_only_from_words_about_the_name(words, learnt):
    picky = unless(says("red"), refuses(400, words), lambda body: "seed" not in body)
    with Provider(picky) as server:
        it = backbone(server, attempts=1)
        for _ in range(2):
            assert reply(it).text == "red"
    assert ["seed" in body for body in server.asked] == [True, False, *([False] if learnt else [True, False])]


def test_what_the_window_leaves_may_be_less_than_nothing():
    assert read_reply_limit("maximum context length is 8192, your request has 9000 input tokens", 100) == -808
    assert read_reply_limit("no number here", 100) is None
