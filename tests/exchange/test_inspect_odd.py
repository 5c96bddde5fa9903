"""Logs of Inspect AI of long runs, of hostile words, of broken rows, of runs that failed or were stopped."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from inspect_ai.log import (
    EvalSample,
    read_eval_log_sample,
)

from experiments.core import transcript
from experiments.models import Event
from tests.support.builders import experiment, make_run, replied, started
from tests.support.bundles import HOSTILE, full_run
from tests.support.inspect_logs import logged, read
from tests.support.long_run import long_run
from workers.jobs.inspect_logs import sample as samples
from workers.jobs.inspect_logs.pieces import chunks
from workers.jobs.inspect_logs.transcript import MAX_INPUT
from workers.record.events import Ended

pytestmark = pytest.mark.usefixtures("redis_url")


@pytest.mark.more
@pytest.mark.django_db
def test_ten_thousand_events_are_read(owner: User, tmp_path: Path) -> None:
    run = long_run(owner, 3_333)
    assert run.last_seq > 10_000
    path = logged(run, path=tmp_path / "long.eval")
    # In the main thread Python 3.11 writes out all that was read, since asyncio looks at a handler of signals
    with ThreadPoolExecutor(1) as pool:
        sample = pool.submit(read_eval_log_sample, str(path), id=run.pk).result()
    assert [seq for each in sample.events if (seq := (each.metadata or {}).get("seq"))] == list(
        range(1, run.last_seq + 1)
    )
    assert sample.turn_count == 3_333
    results = [row.content for row in run.events.filter(kind="result").iterator()]
    assert len(sample.attachments) == len({key_of(each) for result in results for each in result.observations})
    *_, last = (each for each in sample.events if each.event == "model")
    assert last.metadata is not None
    assert len(last.input) == MAX_INPUT
    assert last.metadata["input_left_out"] == len(sample.messages) - 2 - MAX_INPUT
    assert [each.id for each in last.input[:2]] == ["message-1", "message-2"]


def key_of(observation: Any) -> str:
    return observation.masked or observation.image


@pytest.mark.django_db
@pytest.mark.parametrize(
    "words", [HOSTILE, "attachment://0123", "NaN \u2028 \ufffe \x7f", '"},{"id":1', "\x1b[31m\t\r\n"]
)
def test_whatever_a_model_writes_stays_words(words: str, owner: User, tmp_path: Path) -> None:
    run = full_run(owner, words)
    (sample,) = read(logged(run, path=tmp_path / "run.eval")).samples or ()
    (text,) = [each.text for each in sample.messages if each.role == "assistant"][:1]
    assert text == words
    assert sample.scores is not None
    assert sample.scores["label"].metadata["labels"][0] == words


@pytest.mark.django_db
def test_surrogates_and_nuls_in_rows_do_not_break_a_log(owner: User, tmp_path: Path) -> None:
    """Transcripts strip them; a row may be older, or changed by hand."""
    run = full_run(owner)
    reply = run.events.filter(kind="reply").earliest("seq")
    reply.payload |= {"text": "half \ud83d of\x00 it", "code": "print('\udc00')"}
    reply.save()
    Event.objects.filter(run=run, kind="experiment").update(payload={"round": 1, "number": "no number"})
    Event.objects.filter(run=run, seq=2).update(kind="of-tomorrow", payload={"what": "?"})
    data = b"".join(chunks(samples.build_sample(run).fields()))
    read_back = EvalSample.model_validate(json.loads(data))
    assert {each.metadata["seq"] for each in read_back.events if each.metadata} == set(range(1, run.last_seq + 1))


@pytest.mark.django_db
def test_a_run_that_failed_says_why(owner: User, tmp_path: Path) -> None:
    run = make_run(owner)
    transcript.append(run.pk, "started", started())
    transcript.append(run.pk, "reply", replied(1))
    transcript.append(run.pk, "experiment", experiment(1))
    transcript.append(run.pk, "failed", Ended("The disk is full."))
    run.refresh_from_db()
    log = read(logged(run, path=tmp_path / "run.eval"))
    assert log.error is not None
    assert (log.status, log.error.message) == ("error", "The disk is full.")
    (sample,) = log.samples or ()
    assert sample.error is not None
    assert [each.event for each in sample.events] == ["sample_init", "model", "span_begin", "error", "span_end"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("The limit of 3 rounds is reached: 3 rounds used.", "custom"),
        ("The limit of 10 tokens is reached: 12 tokens used.", "token"),
        ("The limit of 1 US dollars is reached: 1.2 US dollars used.", "cost"),
        ("The limit of 60 seconds is reached: 61 seconds used.", "working"),
    ],
)
def test_a_limit_is_named_as_inspect_does(reason: str, kind: str, owner: User, tmp_path: Path) -> None:
    run = make_run(owner, limits={"rounds": 3, "tokens": 10, "cost": 1.0, "seconds": 60})
    transcript.append(run.pk, "started", started())
    transcript.append(run.pk, "limit_reached", Ended(reason))
    run.refresh_from_db()
    (sample,) = read(logged(run, path=tmp_path / "run.eval")).samples or ()
    assert sample.limit is not None
    assert (sample.limit.type, sample.limit.reason) == (kind, reason)
    assert sample.events[-1].event == "sample_limit"
