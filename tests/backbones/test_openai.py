"""The OpenAI-compatible backbone, against a real server: replies, streaming, accounts, and how it is had."""

from __future__ import annotations

import asyncio
import base64
import re
import threading
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from tests.support.openai_backbone import KEY, TASK, ask, backbone
from tests.support.provider import Handler, Provider, refuses, says, starts, streams, unless
from workers import registry
from workers.backbones.openai import pricing
from workers.backbones.openai.retry import RetryPolicy
from workers.errors import Cancelled, MissingPart, UnknownName
from workers.protocols import ImagePart, LabSettings, Message
from workers.protocols import Provider as Settings
from workers.record.limits import Usage

# --- a reply that goes well ---------------------------------------------------------------------------


def test_a_reply_is_streamed_and_counted():
    pieces = []
    with Provider(says("[LABEL]: ", "red ", "balls", usage=(1200, 30))) as server:
        reply = ask(server, emit=pieces.append, prices={"gpt-4o": (2.5, 10.0)})
    assert "".join(pieces) == reply.text == "[LABEL]: red balls"
    assert [piece for piece in pieces if piece] == ["[LABEL]: ", "red ", "balls"]
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (1200, 30)
    assert reply.usage.cost == pytest.approx(1200 * 2.5e-6 + 30 * 10e-6)
    assert reply.captions == 0


def test_what_is_asked_is_plain_chat_completions():
    with Provider(says("red")) as server:
        ask(server, seed=7)
    (asked,), (headers,) = server.asked, server.headers
    assert asked["path"] == "/v1/chat/completions"
    assert asked["messages"] == [
        {"role": "system", "content": "You experiment."},
        {"role": "user", "content": "What drives it?"},
    ]
    assert (asked["model"], asked["seed"], asked["stream"]) == ("gpt-4o", 7, True)
    assert asked["stream_options"] == {"include_usage": True}
    assert not {"max_tokens", "max_completion_tokens", "temperature"} & asked.keys()
    assert headers["authorization"] == f"Bearer {KEY}"


def test_a_seed_fits_into_what_servers_take():
    with Provider(says("red")) as server:
        ask(server, seed=2**40 + 5)
    assert server.asked[0]["seed"] == 5


def test_words_of_all_tongues_arrive_whole_and_half_characters_do_no_harm():
    half = {"choices": [{"index": 0, "delta": {"content": "\ud83d"}, "finish_reason": "stop"}]}
    with Provider(says("Ära ", "日本", " 🙂"), streams(half)) as server:
        assert ask(server).text == "Ära 日本 🙂"
        assert ask(server).text == "?"


def test_emit_is_called_outside_any_event_loop_as_databases_want():
    def emit(piece):
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()

    with Provider(says("red", " ball")) as server:
        assert ask(server, emit=emit).text == "red ball"


def test_the_usage_is_estimated_where_the_provider_tells_none():
    with Provider(says("word " * 100, usage=None)) as server:
        reply = ask(server, prices={"gpt-4o": (1.0, 1.0)})
    assert reply.usage.completion_tokens == 125
    assert 5 < reply.usage.prompt_tokens < 30
    assert reply.usage.cost > 0


def test_the_usage_counts_what_was_thought_and_takes_the_last_figures():
    def counts_as_it_goes(handler):
        handler.begin()
        handler.usage(50, 0)
        handler.piece("red", finish="stop")
        handler.usage(50, 4, total_tokens=90)
        handler.end()

    with Provider(counts_as_it_goes) as server:
        usage = ask(server).usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (50, 40)


@pytest.mark.parametrize("usage", [{"prompt_tokens": {"a": 1}}, {"total_tokens": "many"}, "x", [], 3])
def test_figures_that_cannot_be_read_are_estimated(usage):
    finished = {"choices": [{"index": 0, "delta": {"content": "red"}, "finish_reason": "stop"}], "usage": usage}
    with Provider(streams(finished)) as server:
        assert ask(server).usage.completion_tokens == 1
    assert len(server.asked) == 1


def test_a_finished_reply_stands_whatever_comes_after_it():
    for then in (Handler.stall, Handler.drop, lambda handler: handler.event("{broken")):
        finished = {"choices": [{"index": 0, "delta": {"content": "red"}, "finish_reason": "stop"}]}
        with Provider(streams(finished, then=then)) as server:
            assert ask(server).text == "red"
            assert len(server.asked) == 1


def test_a_server_that_refuses_an_optional_parameter_is_asked_without_it_ever_after():
    picky = unless(says("red"), refuses(400, "Unknown name 'seed': Cannot find field."), lambda it: "seed" not in it)
    picky = unless(picky, refuses(422, "stream_options: extra fields"), lambda it: "stream_options" not in it)
    with Provider(picky) as server:
        it = backbone(server, attempts=1)
        assert it.reply(TASK, {}.__getitem__, lambda piece: None, 1).text == "red"
        assert len(server.asked) == 3
        assert it.reply(TASK, {}.__getitem__, lambda piece: None, 1).text == "red"
    assert len(server.asked) == 4


# --- several at once, and a person who stops one --------------------------------------------------------


def test_backbones_in_one_process_never_mix():
    def echo(handler):
        words = f"{handler.headers['Authorization']} {handler.provider.asked[0]['model']}"
        handler.begin()
        for word in words.split(" "):
            handler.piece(word + " ")
        handler.piece(None, finish="stop")
        handler.end()

    heard: dict[int, str] = {}

    def one(number, server):
        heard[number] = ask(server, key=f"sk-number-{number}", model=f"model-{number}").text

    servers = [Provider(echo) for _ in range(6)]
    threads = [threading.Thread(target=one, args=pair) for pair in enumerate(servers)]
    for server in servers:
        server.__enter__()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for server in servers:
        server.__exit__()
    assert heard == {number: f"Bearer sk-number-{number} model-{number} " for number in range(6)}


def test_one_backbone_answers_several_threads():
    def echo(handler):
        says(handler.headers["Content-Length"])(handler)

    with Provider(echo) as server:
        it, heard = backbone(server), {}

        def one(number):
            heard[number] = it.reply((Message("user", ("x" * number,)),), {}.__getitem__, lambda piece: None, 1).text

        threads = [threading.Thread(target=one, args=(number,)) for number in range(1, 9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    lengths = [int(heard[number]) for number in range(1, 9)]
    assert lengths == list(range(lengths[0], lengths[0] + 8))


@pytest.mark.parametrize("answer", [Handler.stall, starts("red", then=Handler.stall)], ids=["no answer", "mid-reply"])
def test_a_stop_passes_at_once_and_closes_the_connection(answer):
    with Provider(answer) as server:

        def emit(piece):
            if server.stalled.is_set():
                raise Cancelled("stopped")

        with pytest.raises(Cancelled):
            ask(server, emit=emit, policy=RetryPolicy())
        assert server.hung_up.wait(60)
    assert len(server.asked) == 1


def test_who_must_not_ask_any_more_asks_nothing():
    def emit(piece):
        raise Cancelled("stopped")

    with Provider(says("red")) as server, pytest.raises(Cancelled):
        ask(server, emit=emit)
    assert server.asked == []


def test_a_stop_while_words_come_closes_the_connection():
    def endless(handler):
        handler.begin()
        while not handler.provider.over.is_set():
            handler.piece("and on ")

    def emit(piece):
        if piece:
            raise Cancelled("stopped")

    with Provider(endless) as server:
        with pytest.raises(Cancelled):
            ask(server, emit=emit)
        assert server.hung_up.wait(60)


def test_a_stop_passes_while_the_provider_wants_to_be_left_alone():
    with Provider(refuses(429, "slow down", headers={"Retry-After": "200"})) as server:

        def emit(piece):
            if server.asked:
                raise Cancelled("stopped")

        with pytest.raises(Cancelled):
            ask(server, emit=emit, policy=RetryPolicy())
    assert len(server.asked) == 1


def test_a_stop_while_images_are_made_ready_asks_nothing():
    def emit(piece):
        raise Cancelled("stopped")

    message = Message("user", (ImagePart("a", "1. a"),))
    with Provider(says("red")) as server, pytest.raises(Cancelled):
        ask(server, (message,), emit, images={"a": Image.new("RGB", (8, 8))})
    assert server.asked == []


# --- what it costs ------------------------------------------------------------------------------------

PRICES = {"gpt-4": (30.0, 60.0), "gpt-4o": (2.5, 10.0), "gpt-4o-mini": (0.15, 0.6), "local": (0.0, 0.0)}


@pytest.mark.parametrize(
    ("model", "price"),
    [
        ("gpt-4o", 2.5),
        ("gpt-4o-2024-08-06", 2.5),
        ("gpt-4o-mini-2024-07-18", 0.15),
        ("gpt-4o@20240806", 2.5),
        ("gpt-4o:latest", 2.5),
        ("gpt-4-0613", 30.0),
        ("gpt-4.1", None),
        ("gpt-4o-audio", None),
        ("other", None),
    ],
)
def test_a_dated_model_costs_what_the_model_does_and_of_an_unknown_one_nobody_knows(model, price):
    assert (pricing.find_price(PRICES, model) or (None,))[0] == price
    found = pricing.find_price(PRICES, model)
    assert pricing.price_usage(found, 1_000_000, 0) == Usage(1_000_000, 0, price or 0.0, price is not None)


def test_failed_attempts_that_were_paid_for_are_counted():
    with Provider(starts("word " * 8, then=Handler.cut), says("red", usage=(100, 10))) as server:
        usage = ask(server).usage
    assert usage.completion_tokens == 10 + 10
    assert usage.prompt_tokens > 100


# --- how it is had --------------------------------------------------------------------------------------


def lab(**changes):
    return LabSettings(state=Path("state"), provider=Settings(**changes))


def load(model="", **changes):
    return registry.load(registry.BACKBONES, "openai")(lab(**changes), model)


def test_without_a_key_it_is_missing_and_says_what_to_do():
    with pytest.raises(MissingPart, match=r"OPENAI_API_KEY.*OPENAI_BASE_URL"):
        load("gpt-4o")
    assert "OPENAI_API_KEY" in registry.missing(registry.BACKBONES, "openai", lab(), "")


def test_with_a_key_or_an_address_it_is_there():
    it = load("gpt-5", key=KEY)
    assert (it.label, it.sees) == ("gpt-5", True)
    assert load(base_url="http://127.0.0.1:11434/v1", models=("qwen", "other")).label == "qwen"
    assert registry.missing(registry.BACKBONES, "openai", lab(key=KEY), "") == ""


def test_a_server_without_a_key_is_asked_without_the_keys_of_others(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    with Provider(says("red")) as server:
        ask(server, key="")
    assert "sk-of" not in str(server.headers)


def test_a_server_on_this_machine_is_asked_without_a_proxy(monkeypatch):
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with Provider(says("red")) as server:
        assert ask(server, attempts=1).text == "red"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"key": "sk-a b"}, "OPENAI_API_KEY holds a space"),
        ({"key": "sk-abc\n"}, "OPENAI_API_KEY holds"),
        ({"key": "sk-…"}, "OPENAI_API_KEY holds"),
        ({"base_url": "localhost:11434"}, "OPENAI_BASE_URL='localhost:11434' is not an address"),
        ({"base_url": "http://"}, "is not an address"),
        ({"base_url": "http://host:99999/v1"}, "is not an address"),
        ({"base_url": "http://[::1/v1"}, "is not an address"),
    ],
)
def test_a_setting_that_cannot_work_is_named_before_anything_is_asked(given, told):
    with pytest.raises(MissingPart, match=re.escape(told)) as caught:
        load(**{"models": ("m",)} | given)
    assert "sk-" not in str(caught.value)


def test_a_model_must_be_named_somewhere():
    with pytest.raises(UnknownName, match="MAIA_OPENAI_MODELS"):
        load(key=KEY)


def test_the_key_is_in_no_representation():
    it = load("gpt-4o", key=KEY)
    assert KEY not in f"{it!r} {it} {vars(it)}"


# --- images on the wire ---------------------------------------------------------------------------------


def test_images_travel_as_data_urls_after_the_words_that_name_them():
    red = Image.new("RGB", (64, 48), "red")
    message = Message("user", ("Experiment 1: ok", ImagePart("a", "1. red"), "2. blue"))
    with Provider(says("red")) as server:
        ask(server, (message,), images={"a": red})
    words, image, rest = server.asked[0]["messages"][0]["content"]
    assert (words, rest) == ({"type": "text", "text": "Experiment 1: ok"}, {"type": "text", "text": "2. blue"})
    head, _, data = image["image_url"]["url"].partition(",")
    assert head == "data:image/png;base64"
    assert Image.open(BytesIO(base64.b64decode(data))).tobytes() == red.tobytes()
