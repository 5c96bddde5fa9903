"""What a vision-language model is shown: each image once, the newest first when room is short, and whole rounds."""

from __future__ import annotations

import base64
import json
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from tests.support.openai_backbone import ask, backbone
from tests.support.playback import CONCLUSION, PROGRAM, Lab, kinds, logged, play
from tests.support.provider import Handler, Provider, refuses, says, starts, unless
from workers.backbones.openai.encoding import (
    SIDE,
    EncodedImage,
    count_image_tokens,
    count_text_tokens,
    encode_image,
)
from workers.backbones.openai.image_selection import Room
from workers.backbones.openai.messages import build_messages, image_keys
from workers.errors import BackboneRefused
from workers.protocols import ImagePart, Message

EACH = 255
"""Tokens of a small image."""


def result(number, *names):
    """What the agent is told of an experiment with these images."""
    parts = [f"Experiment {number}: ok"]
    for place, name in enumerate(names, 1):
        line = f"{place}. {name} — activation {place}.00"
        parts += [line, ImagePart(f"key of {name}", line)]
    return Message("user", tuple(parts))


def pictures(*messages):
    return {key: EncodedImage(f"data:{key}", EACH) for key in image_keys(messages)}


def shown(message):
    """Names of the images that are in a rendered message."""
    parts = message["content"] if isinstance(message["content"], list) else []
    return [part["image_url"]["url"].removeprefix("data:key of ") for part in parts if part["type"] == "image_url"]


def words(message):
    content = message["content"]
    return content if isinstance(content, str) else "\n".join(each["text"] for each in content if "text" in each)


# --- once -----------------------------------------------------------------------------------------------


def test_an_image_that_stands_again_is_pointed_to():
    told = (result(1, "red", "blue"), Message("assistant", ("Hm.",)), result(2, "blue", "green", "green"))
    sent = build_messages(told, pictures(*told), Room(10_000))
    assert [shown(message) for message in sent.messages] == [["red", "blue"], [], ["green"]]
    again = words(sent.messages[2])
    assert '[the same image as above, under "Experiment 1: ok": 2. blue — activation 2.00]' in again
    assert "[the same image as above: 2. green — activation 2.00]" in again
    assert (sent.images, sent.captions) == (3, 0)


def test_only_a_user_shows_images():
    told = (Message("assistant", ("I saw", ImagePart("a", "1. a"))), Message("user", ("Yes.",)))
    assert image_keys(told) == []
    (said, _) = build_messages(told, {}, Room(1000)).messages
    assert said["content"] == "I saw\n[an image that is left out for want of room: 1. a]"


def test_neighbouring_turns_of_one_role_become_one_since_some_servers_want_them_to_alternate():
    told = (Message("user", ("one",)), Message("user", ("two",)))
    assert [message["content"] for message in build_messages(told, {}, Room(1000)).messages] == ["one\n\ntwo"]


# --- room -------------------------------------------------------------------------------------------------


def long_talk(rounds=10):
    said = Message("assistant", ("Go on.",))
    return [each for number in range(rounds) for each in (result(number, f"{number}a", f"{number}b"), said)]


@pytest.mark.parametrize("room", [300, 1000, 2000, 4000, 6000])
def test_the_oldest_images_give_way_to_their_captions(room):
    told = long_talk()
    sent = build_messages(told, pictures(*told), Room(room))
    names = [name for message in sent.messages for name in shown(message)]
    every = [f"{number}{letter}" for number in range(10) for letter in "ab"]
    assert names == every[len(every) - len(names) :]
    assert (sent.images, sent.captions) == (len(names), len(every) - len(names))
    assert sent.tokens <= room or not names
    left_out = "\n".join(words(message) for message in sent.messages).count("left out for want of room")
    assert left_out == sent.captions
    assert (sent.captions == 0) == (room == 6000)


def test_the_estimate_is_that_of_what_is_sent():
    told = long_talk()
    for room in (1000, 3000, 9000):
        sent = build_messages(told, pictures(*told), Room(room))
        sum_of_parts = sum(4 + count_text_tokens(words(each)) + EACH * len(shown(each)) for each in sent.messages)
        assert abs(sent.tokens - sum_of_parts) < 0.05 * sum_of_parts


def test_an_old_image_that_stands_again_is_shown_where_it_stands_last():
    told = [*long_talk(6), result(6, "0a")]
    sent = build_messages(told, pictures(*told), Room(1200))
    assert shown(sent.messages[-1]) == ["0a"]
    assert "[an image that is shown further below: 1. 0a" in words(sent.messages[0])
    assert "0a" not in shown(sent.messages[0])
    assert sent.captions == 12 - sent.images


def test_the_same_images_give_way_for_some_rounds_so_that_caches_stay_good():
    last, left = [], []
    for rounds in range(30, 60):
        told = long_talk(rounds)
        sent = build_messages(told, pictures(*told), Room(12_000))
        last, now = [shown(message) for message in sent.messages[: 2 * (rounds - 1)]], last
        left.append(now == last[: len(now)])
    assert left.count(True) > 15


def test_room_is_kept_for_the_reply_and_the_reply_tells_how_many_gave_way():
    told = tuple(long_talk())
    images = {key: Image.new("RGB", (64, 64)) for key in image_keys(told)}
    with Provider(says("red")) as server:
        reply = ask(server, told, images=images, context_tokens=4000)
    sent = sum(len(shown(message)) for message in server.asked[0]["messages"])
    assert reply.captions == 20 - sent
    assert 0 < sent * EACH < 3000


def test_a_provider_that_takes_less_than_it_said_gets_half_until_it_fits():
    def few(body):
        return sum(len(shown(message)) for message in body["messages"]) <= 3

    told = tuple(long_talk())
    images = {key: Image.new("RGB", (64, 64)) for key in image_keys(told)}
    full = refuses(400, "This model's maximum context length is 8192 tokens", code="context_length_exceeded")
    for refusal in (full, refuses(400, "At most 3 image(s) may be provided in one request."), refuses(413)):
        with Provider(unless(says("red"), refusal, few)) as server:
            reply = ask(server, told, images=images, attempts=1)
        assert (reply.text, len(server.asked) < 6) == ("red", True)
        assert 17 <= reply.captions < 20


def test_words_that_are_too_many_ask_nobody():
    told = (Message("user", ("word " * 4000, ImagePart("a", "1. a"))),)
    with Provider(says("red")) as server:
        with pytest.raises(BackboneRefused, match=r"about 5,0\d\d tokens.*MAIA_OPENAI_CONTEXT_TOKENS=4000.*Fork"):
            ask(server, told, images={"a": Image.new("RGB", (8, 8))}, context_tokens=4000)
        assert server.asked == []


def test_tokens_are_estimated_by_letters_and_tiles():
    assert [count_text_tokens(text) for text in ("", "word", "word " * 8, "日本語")] == [0, 1, 10, 3]
    assert count_image_tokens(256, 256) == 85 + 170
    assert count_image_tokens(512, 513) == 85 + 2 * 170
    assert count_image_tokens(768, 768) == 85 + 4 * 170


# --- sizes ------------------------------------------------------------------------------------------------


def received(sent: EncodedImage):
    head, _, data = sent.url.partition(",")
    return head, Image.open(BytesIO(base64.b64decode(data)))


def test_a_large_photograph_is_sent_small_and_as_jpeg():
    noise = np.random.default_rng(0).integers(0, 256, (1500, 2000, 3), np.uint8)
    sent = encode_image(Image.fromarray(noise))
    head, image = received(sent)
    assert (head, image.format, image.size) == ("data:image/jpeg;base64", "JPEG", (SIDE, SIDE * 3 // 4))
    assert sent.tokens == count_image_tokens(*image.size)
    assert len(sent.url) < 1_000_000


@pytest.mark.parametrize("size", [(1, 1), (1, 3000), (224, 224), (8, 8)])
def test_a_small_image_is_sent_as_it_is_and_a_thin_one_survives(size):
    head, image = received(encode_image(Image.new("RGB", size, (200, 30, 40))))
    assert head == "data:image/png;base64"
    assert max(image.size) == min(max(size), SIDE)
    assert image.getpixel((0, 0)) == (200, 30, 40)


# --- whole rounds -----------------------------------------------------------------------------------------


def test_a_run_is_played_to_its_conclusion():
    with Provider(
        refuses(503), says(*PROGRAM.format(1).split(" ")), starts("garbled", then=Handler.cut), says(CONCLUSION)
    ) as it:
        run_log = play(backbone(it, prices={"gpt-4o": (2.5, 10.0)}), Lab(logged(3.5, 7.25)))
    assert [kind for kind in kinds(run_log) if kind != "retrying"][-1] == "concluded"
    assert run_log.events()[1].payload.author == "gpt-4o"
    results = json.dumps(it.asked[-1]["messages"])
    assert "activation 7.25" in results
    assert "garbled" not in results
    assert results.count("image_url") >= 1
