"""What a provider may do instead of replying: every refusal has a remedy, and no failure becomes a reply."""

from __future__ import annotations

import json
import logging
import re
import traceback
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from tests.support.openai_backbone import HASTY, KEY, TASK, ask, backbone
from tests.support.provider import Handler, Provider, page, refuses, says, starts, streams
from workers.backbones.openai.retry import RetryPolicy, parse_retry_after
from workers.backbones.openai.stream import is_repetitive
from workers.errors import BackboneRefused, BackboneUnavailable, ContentRefused, MachineryError
from workers.protocols import Message, StatusNote


def chunk(content, finish=None, **delta):
    return {"choices": [{"index": 0, "delta": {"content": content, **delta}, "finish_reason": finish}]}


# --- a person must act --------------------------------------------------------------------------------

REFUSALS = {
    "bad key": (refuses(401, f"Incorrect API key provided: {KEY}"), "does not accept the key", "OPENAI_API_KEY"),
    "bad key, Gemini": (
        refuses(400, body='[{"error": {"code": 400, "message": "API key not valid."}}]'),
        "API key not valid",
        "Set OPENAI_API_KEY",
    ),
    "forbidden": (refuses(403, "Organization must be verified"), "must be verified", "administrator"),
    "payment": (refuses(402, "Insufficient Balance"), "no credit left", "Top up"),
    "quota": (refuses(429, "You exceeded your quota", code="insufficient_quota"), "no credit left", "Top up"),
    "credit, Claude": (refuses(400, "Your credit balance is too low"), "no credit left", "Top up"),
    "no such model": (refuses(404, "The model does not exist"), "knows no model 'gpt-4o'", "MAIA_OPENAI_MODELS"),
    "wrong address": (refuses(404, body="<html>404</html>"), "knows no model", "OPENAI_BASE_URL"),
    "a web page": (page, "web page", "/v1"),
    "blind model": (
        refuses(400, "Invalid content type. image_url is only supported by certain models."),
        "only supported",
        "sees",
    ),
    "no images": (refuses(400, "At most 0 image(s) may be provided"), "does not look", "sees"),
    "nonsense asked": (refuses(400, "messages: bad"), "messages: bad", "Check the model"),
    "elsewhere": (refuses(307, headers={"Location": "http://other.example/v1"}), "other.example", "OPENAI_BASE_URL"),
    "too many words": (refuses(400, "x", code="context_length_exceeded"), "without any image", "Fork the run"),
    "too large": (refuses(413, "too large"), "without any image", "larger context window"),
    "too large for the tier": (refuses(429, "Request too large for gpt-4o"), "without any image", "Fork"),
    "quota within the stream": (streams({"error": {"message": "x", "code": "insufficient_quota"}}), "credit", "Top up"),
}


@pytest.mark.parametrize(("answer", "what", "remedy"), REFUSALS.values(), ids=REFUSALS)
def test_a_refusal_is_told_with_its_remedy_and_not_asked_again(answer, what, remedy):
    with Provider(answer) as server, pytest.raises(BackboneRefused, match=re.escape(what)) as caught:
        ask(server)
    assert remedy in str(caught.value)
    assert not isinstance(caught.value, ContentRefused)
    assert KEY not in str(caught.value)
    assert len(server.asked) == 1


FILTERED = {
    "asked, OpenAI": refuses(400, "Your request was rejected by our safety system", code="content_policy_violation"),
    "asked, Azure": refuses(400, "The response was filtered", code="content_filter"),
    "reply": says("some wor", finish="content_filter"),
    "within the stream": streams({"error": {"message": "filtered", "code": "content_filter"}}),
    "the model's refusal": streams(chunk(None, "stop", refusal="I will not.")),
}


@pytest.mark.parametrize("answer", FILTERED.values(), ids=FILTERED)
def test_a_content_filter_has_its_own_name(answer):
    with Provider(answer) as server, pytest.raises(ContentRefused, match="Reword the question"):
        ask(server)
    assert len(server.asked) == 1


def test_a_redirect_never_carries_the_key_elsewhere():
    with Provider(says("stolen")) as thief:
        elsewhere = refuses(308, headers={"Location": thief.url})
        with Provider(elsewhere) as server, pytest.raises(BackboneRefused, match=re.escape(thief.host)):
            ask(server)
    assert thief.asked == []


# --- asking again may help ------------------------------------------------------------------------------

SILENT = (starts("[LABEL]: gre", then=Handler.stall), Handler.stall)
FAULTS = {
    "rate": refuses(429, "slow down"),
    "rate, at once": refuses(429, "slow down", headers={"Retry-After": "0"}),
    "server": refuses(500, body="<html>oops</html>"),
    "gateway": refuses(502, body=""),
    "unavailable": refuses(503, "loading"),
    "overloaded": refuses(529, "overloaded", type="overloaded_error"),
    "dropped before the answer": Handler.drop,
    "dropped in mid-reply": starts("[LABEL]: gre", then=Handler.drop),
    "ended without a finish": starts("[LABEL]: gre", then=Handler.cut),
    "ended without a word": streams(),
    "silent": SILENT[0],
    "not even a header": SILENT[1],
    "broken JSON": streams('{"choices": [', then=Handler.end),
    "no object": streams("[1, 2]"),
    "text": streams('"hello"'),
    "number": streams("17"),
    "choices of nonsense": streams({"choices": "nonsense"}),
    "delta of nonsense": streams({"choices": [{"delta": {"content": {"a": 1}}}]}),
    "empty": says(""),
    "blank": says(" \n"),
    "error within the stream": streams(chunk("gre"), {"error": {"message": "overloaded", "code": 529}}),
    "finish of an error": says("gre", finish="error"),
    "looping": says(*["and a red ball\n"] * 200),
    "endless": says(*[" ".join(str(n * n) for n in range(start, start + 3_000)) for start in range(0, 90_000, 3_000)]),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_tried_again_and_leaves_nothing_in_the_reply(name):
    pieces = []
    policy = replace(HASTY, silence=1.0) if FAULTS[name] in SILENT else HASTY
    with Provider(FAULTS[name], says("red")) as server:
        assert ask(server, emit=pieces.append, policy=policy).text == "red"
    assert len(server.asked) == 2
    assert server.asked[0]["seed"] != server.asked[1]["seed"]
    over = pieces.index(None) if None in pieces else -1
    assert "".join(piece for piece in pieces[over + 1 :] if isinstance(piece, str)) == "red"


@pytest.mark.parametrize("name", ["rate", "server", "ended without a finish", "broken JSON", "empty", "looping"])
def test_a_fault_that_stays_is_told_in_the_end(name):
    with Provider(FAULTS[name]) as server, pytest.raises(BackboneUnavailable, match="asked 3 times") as caught:
        ask(server)
    assert server.host in str(caught.value)
    assert len(server.asked) == 3


def test_a_server_that_is_not_there_is_told_with_what_to_check():
    with Provider(says("red")) as server:
        pass
    with pytest.raises(BackboneUnavailable, match=r"cannot be reached.*OPENAI_BASE_URL"):
        ask(server)


def test_a_draft_starts_over_only_where_there_was_one():
    pieces = []
    with Provider(refuses(500), starts("gre", then=Handler.cut), says("red")) as server:
        ask(server, emit=pieces.append)
    assert [piece for piece in pieces if piece != "" and not isinstance(piece, StatusNote)] == ["gre", None, "red"]


def test_a_long_wait_is_left_to_a_later_try():
    tomorrow = refuses(429, "tomorrow", headers={"Retry-After": "86400"})
    with Provider(tomorrow) as server, pytest.raises(BackboneUnavailable, match="left alone for 86400 s"):
        ask(server)
    assert len(server.asked) == 1


def test_the_wait_a_provider_asks_for_is_read_in_all_its_forms():
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    past = format_datetime(datetime.now(UTC) - timedelta(seconds=90), usegmt=True)
    assert parse_retry_after({"retry-after": "3.5"}) == 3.5
    assert parse_retry_after({"retry-after-ms": "1500", "retry-after": "9"}) == 1.5
    assert 60 < parse_retry_after({"retry-after": soon}) <= 90
    assert parse_retry_after({"retry-after": past}) == 0
    assert [parse_retry_after({"retry-after": bad}) for bad in ("", "soon", "-4", "nan", "inf")] == [None] * 5
    assert parse_retry_after({}) is None


def test_pauses_grow_with_jitter_up_to_a_cap_unless_the_provider_names_one():
    policy = RetryPolicy(first=1, most=60)
    pauses = [[policy.pause(failures, None) for _ in range(50)] for failures in (1, 2, 3, 20, 5000)]
    for some, top in zip(pauses, (1, 2, 4, 60, 60), strict=True):
        assert top / 2 <= min(some) < max(some) <= top
    assert policy.pause(9, 0.5) == 0.5


# --- replies that do not end as they should ---------------------------------------------------------------


def test_a_reply_cut_by_its_limit_is_asked_for_once_more_with_more_room():
    with Provider(says("half a rep", finish="length", usage=(10, 16_000)), says("whole")) as server:
        assert ask(server).text == "whole"
    assert [asked.get("max_tokens") for asked in server.asked] == [None, 32_000]


def test_a_reply_that_never_comes_to_its_end_is_no_result():
    with Provider(says("half", finish="length")) as server, pytest.raises(BackboneRefused, match="limit of tokens"):
        ask(server)
    assert len(server.asked) == 2


def test_a_reply_said_before_word_for_word_is_asked_for_once_more_then_taken():
    told = (*TASK, Message("assistant", ("red balls",)), Message("user", ("Go on.",)))
    with Provider(says("red balls"), says("blue cars")) as server:
        assert ask(server, told).text == "blue cars"
    with Provider(says("red balls")) as server:
        assert ask(server, told).text == "red balls"
    assert len(server.asked) == 2


def test_babble_is_told_from_tables_rulers_and_programs():
    program = "".join(f"images.append(tools.text2image(['a red ball {n}'])[0])\n" for n in range(100))
    table = "| a | b |\n|---|---|\n" + "".join(f"| {n} | {n * n} |\n" for n in range(200))
    assert not any(map(is_repetitive, ("", "red", "-" * 120, "=" * 300, program, table, "0, " * 100)))
    assert is_repetitive("It is so. " + "ha " * 300)
    assert is_repetitive(program + "the same line again\n" * 40)
    assert is_repetitive("one line\nanother line\na third, longer line than those\n" * 24)
    assert not is_repetitive("the same line again and again\n" * 10 + program)


# --- the key -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422, 429, 500])
def test_the_key_is_in_no_error_and_no_log(status, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    echo = refuses(status, json.dumps({"you sent": f"Authorization: Bearer {KEY}"}) + f" {KEY}")
    with Provider(echo) as server, pytest.raises(MachineryError) as caught:
        ask(server, attempts=2)
    told = "".join(traceback.format_exception(caught.value))
    assert "[key]" in str(caught.value)
    assert KEY not in told + caplog.text + "".join(capfd.readouterr())


def test_a_long_refusal_is_quoted_in_short():
    with Provider(refuses(400, "no\n" * 5000)) as server, pytest.raises(BackboneRefused) as caught:
        ask(server)
    assert len(str(caught.value)) < 600


def test_one_attempt_is_one_attempt():
    for attempts in (0, 1):
        with Provider(refuses(500)) as server, pytest.raises(BackboneUnavailable, match=r"asked 1 time\."):
            backbone(server, HASTY, attempts=attempts).reply(TASK, {}.__getitem__, lambda piece: None, 1)
        assert len(server.asked) == 1
