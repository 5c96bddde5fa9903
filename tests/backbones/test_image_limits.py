"""Providers that take few images: images give way, as many as they must, and the run keeps what it learnt."""

from __future__ import annotations

import json

import pytest

from tests.support import image_rounds
from tests.support.image_rounds import INSTRUCTIONS, PICTURE, at_most, count_images, play_rounds
from tests.support.openai_backbone import backbone
from tests.support.playback import CONCLUSION, PROGRAM, kinds, new_run_log
from tests.support.provider import Provider, refuses, says, unless
from workers.agent.conversation import messages
from workers.agent.loop import ProgramOutcome, run_agent
from workers.backbones.openai.image_limits import read_limit
from workers.backbones.openai.provider_errors import redact
from workers.errors import BackboneRefused
from workers.jobs.console import format_event
from workers.protocols import ExperimentResult, Message
from workers.protocols import Provider as Settings
from workers.record.experiments import LogEntry, Observation
from workers.record.origins import Origin
from workers.record.replies import ImageLimit

STATED = {
    "vLLM": "At most {limit} image(s) may be provided in one prompt.",
    "vLLM, newer": "You set or defaulted to '{\"image\": {limit}}' in `--limit-mm-per-prompt`, but passed {sent} image "
    "items in the same prompt.",
    "xinference": "[address=0.0.0.0:1, pid=1] You set image={limit} (or defaulted to 1) in `--limit-mm-per-prompt`, "
    "but passed {sent} image items in the same prompt.",
    "Claude": "Too much media: 0 document pages + {sent} images > {limit}",
    "Mistral": "Too many images in the request: {sent}. The maximum is {limit}.",
    "gateway": "This model takes up to {limit} images per request.",
    "gateway, the number first": "{limit} images allowed per request, received {sent}",
}
UNSEEN = {
    "vLLM's length": (400, "The decoder prompt (length 42781) is longer than the maximum model length of 40960."),
    "attachments": (422, "That is more media than this deployment permits."),
    "bytes": (413, "<html>Request Entity Too Large</html>"),
    "items": (400, "messages.1.content: List is limited in size"),
}


def conversation(images=15):
    return (INSTRUCTIONS, Message("user", image_rounds.result(0).parts[: 1 + 2 * images]))


def look(answer, told, **changes):
    """A reply to the conversation, and how many images each request held."""
    with Provider(answer) as server:
        reply = tell(backbone(server, **changes), told)
        return reply, [count_images(body) for body in server.asked]


def tell(it, told):
    return it.reply(told, lambda key: PICTURE, lambda piece: None, 1)


# --- how many are sent ------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", STATED.values(), ids=STATED)
def test_a_number_in_the_refusal_is_how_many_images_are_sent(words):
    reply, sent = look(at_most(14, words), conversation(), attempts=1)
    assert sent == [15, 14]
    assert (reply.captions, reply.captions_reason) == (1, "the provider takes at most 14 images in a request")
    assert (reply.image_limit.images, reply.image_limit.stated) == (14, True)
    assert "refused 15 images" in reply.provider_errors[0]
    assert "asked again with 14" in reply.provider_errors[0]


@pytest.mark.parametrize(("status", "words"), UNSEEN.values(), ids=UNSEEN)
@pytest.mark.parametrize("limit", [1, 5])
def test_in_whatever_words_images_give_way_and_one_stays_if_it_may(status, words, limit):
    few = unless(says("red"), refuses(status, words), lambda body: count_images(body) <= limit)
    reply, sent = look(few, conversation(), attempts=1)
    assert sent == [15, 7, 3, *([1] if limit == 1 else [])]
    assert (reply.image_limit.images, reply.image_limit.stated) == (sent[-1], False)
    assert reply.captions_reason.startswith("the provider refused a request with more")


def test_a_single_image_goes_only_if_the_conversation_is_too_long_with_it():
    none = {"answer": says("red"), "check": lambda body: count_images(body) == 0}
    _, sent = look(unless(otherwise=refuses(400, "maximum context length is 512 tokens"), **none), conversation(1))
    assert sent == [1, 0]
    with pytest.raises(BackboneRefused, match="could not process image"):
        look(unless(otherwise=refuses(400, "could not process image"), **none), conversation(3))


def test_exemplars_and_the_newest_images_stay():
    told = (*conversation(), Message("assistant", ("Go on.",)), image_rounds.result(1))
    with Provider(at_most(20)) as server:
        tell(backbone(server), told)
        first, last = server.asked[-1]["messages"][1], server.asked[-1]["messages"][3]
    shown = [part["text"] for part in last["content"] if part["type"] == "text"]
    assert [count_images({"messages": [each]}) for each in (first, last)] == [10, 10]
    assert json.dumps(first).index("image_url") < json.dumps(first).index("left out")
    assert "left out" in shown[0]
    assert shown[-1].startswith("32. ")


@pytest.mark.parametrize(
    "words", ["detail: image exceeds 5 MB maximum", "max image side 8 pixels", "12.5 images > 1.5"]
)
def test_sizes_are_no_numbers_of_images(words):
    assert read_limit(words, 15) is None


@pytest.mark.parametrize("limit", [4, 8, 14])
def test_a_small_limit_is_used_to_the_full(limit):
    told = [INSTRUCTIONS]
    for number in range(1, 6):
        told += [Message("user", image_rounds.result(number).parts[:9]), Message("assistant", ("Go on.",))]
    _, sent = look(at_most(limit), told[:-1])
    assert sent == [20, limit]


# --- what is kept of it -----------------------------------------------------------------------------------


def test_one_process_asks_rightly_from_the_second_reply_on():
    with Provider(at_most(14)) as server:
        it = backbone(server)
        for _ in range(3):
            tell(it, conversation())
        assert [count_images(body) for body in server.asked] == [15, 14, 14, 14]


def test_a_limit_is_that_of_its_provider_and_model():
    with Provider(says("red")) as server:
        for host, model, sent in [(server.host, "gpt-4o", 3), (server.host, "b", 15), ("other.example", "gpt-4o", 15)]:
            told = (*conversation(), Message("assistant", ("Hm.",), ImageLimit(host, model, 3)))
            tell(backbone(server), (*told, Message("user", ("Go on.",))))
            assert count_images(server.asked[-1]) == sent


def run_program(code, number, state):
    """Fifteen exemplars, then eight images a round."""
    kind, count = (Origin.EXEMPLAR, 15) if number == 1 else (Origin.GENERATED, 8)
    images = tuple(Observation(f"image {n}", 1.0, f"{number}.{n}", origin=kind) for n in range(count))
    return ProgramOutcome(ExperimentResult("ok"), (LogEntry(images),))


def test_a_run_keeps_the_limit_in_its_events_and_says_what_was_left_out():
    replies = iter([*map(PROGRAM.format, (1, 2, 3)), CONCLUSION])

    def answer(handler):
        says(next(replies))(handler)

    limited, run_log = at_most(12), new_run_log()
    with Provider(unless(answer, limited, lambda body: count_images(body) <= 12)) as server:
        # Each round by a backbone of its own, as in another process
        while run_agent(run_log, backbone(server, prices={"gpt-4o": (2.5, 10.0)}), run_program, lambda key: PICTURE):
            pass
        assert [count_images(body) for body in server.asked] == [0, 15, 12, 12, 12]
        host = server.host
    assert kinds(run_log)[-1] == "concluded"
    replied = [event.payload for event in run_log.events() if event.kind == "reply"]
    assert [each.captions for each in replied] == [0, 3, 11, 19]
    assert replied[-1].image_limit == ImageLimit(host, "gpt-4o", 12, stated=True)
    assert "19 earlier images were left out: the provider takes at most 12 images" in " ".join(
        format_event(replied[-1], "reply").replace("|", "").split()
    )
    assert messages(run_log.events())[-1].image_limit == replied[-1].image_limit


@pytest.mark.parametrize(
    ("limit", "kept", "exemplars", "cached"), [(10, 10, 5, 0.8), (20, 19, 10, 0.75), (100, 70, 15, 0.6)]
)
def test_twenty_rounds_keep_images_and_caches(limit, kept, exemplars, cached):
    played = play_rounds(at_most(limit), context_tokens=1_000_000)
    assert sum(each.requests for each in played) == 21
    assert sum(each.images for each in played) / 20 >= kept
    assert min(each.exemplars for each in played) == exemplars
    assert sum(each.cached for each in played[1:]) / 19 >= cached


def test_a_full_context_window_loses_the_cache_in_few_rounds():
    played = play_rounds(says("red"), context_tokens=128_000)
    assert sum(each.cached < 0.5 for each in played[2:]) <= 2
    assert min(each.exemplars for each in played) == 15
    assert min(each.images for each in played[8:]) > 200


# --- what people are told ---------------------------------------------------------------------------------


def test_a_server_for_text_alone_is_told_from_one_that_takes_few_images():
    loc = {"type": "string_type", "loc": ["body", "messages", 1, "content"], "msg": "Input should be a valid string"}
    texts = unless(
        says("red"),
        refuses(422, body=json.dumps({"detail": [loc]})),
        lambda body: all(isinstance(each["content"], str) for each in body["messages"]),
    )
    with pytest.raises(BackboneRefused, match=r"does not look at images.*Choose a model that sees"):
        look(texts, conversation())
    none_allowed = refuses(400, STATED["vLLM, newer"].replace("{limit}", "0"))
    with pytest.raises(BackboneRefused, match="does not look at images"):
        look(none_allowed, conversation())


@pytest.mark.parametrize("key", ["none", "ollama", "token", "x", "EMPTY", "a", "tokens"])
def test_a_word_that_serves_as_key_stays_in_what_is_quoted(key):
    words = "The maximum model length; an ollama context of none or EMPTY, token by token, x tokens a time"
    assert redact(words, Settings(key=key)) == words


@pytest.mark.parametrize("key", ["abcdefghijkl", "s3cret", "pass-word"])
def test_a_key_that_is_no_word_is_taken_out(key):
    assert redact(f"You sent {key}.", Settings(key=key)) == "You sent [key]."
    assert (redact(f"You sent z{key}z.", Settings(key=key)) == "You sent z[key]z.") == (len(key) >= 12)
