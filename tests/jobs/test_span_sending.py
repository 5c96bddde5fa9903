"""Workers send spans after each round, and no run waits for the collector, whatever it does."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from experiments.models import Run
from experiments.system_checks import spans_have_their_package
from tests.support.builders import make_run
from tests.support.function_runs import play
from tests.support.span_collector import SpanCollector, collecting, read_attributes, sending
from tests.support.tiny_run import CONCLUSION, LOOK, Seeing, install, tiny_run
from tests.support.webhook_receiver import Write, answer_with
from workers.jobs import counters, heartbeat
from workers.jobs import laboratory as place
from workers.jobs.spans import sender
from workers.jobs.spans.otlp import Collector, parse_pairs
from workers.jobs.spans.sender import SpanSender, send_spans

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_redis")]
PATIENCE = 20.0
"""Seconds in which what waits is sent."""


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> None:
    install(monkeypatch, settings, tmp_path)
    place.build_laboratory.cache_clear()


@pytest.fixture
def collector() -> Iterator[SpanCollector]:
    with collecting() as found:
        yield found


def begin(owner: User) -> Run:
    return tiny_run(owner, Seeing(LOOK, CONCLUSION, sentences=("A red square.", "A blue square.")))


def count(name: str) -> float:
    return counters.REGISTRY.get_sample_value(name) or 0.0


def trickle(write: Write) -> None:
    """A status line that never comes to its end, until the collector hangs up."""
    for _ in range(20):
        write(b"H")
        time.sleep(0.05)


@pytest.mark.usefixtures("on_toybox")
def test_a_real_run_arrives_round_by_round(owner: User, collector: SpanCollector) -> None:
    run = make_run(owner, limits={"rounds": 2})
    with sending(collector.address) as here:
        run = play(run, until=1)
        assert here.wait_until_idle(PATIENCE)
        first = [each.name for each in collector.spans]
        assert "chat Scripted scientist (no language model)" in first
        assert "invoke_agent MAIA" not in first
        run = play(run)
        assert here.wait_until_idle(PATIENCE)
    spans = collector.spans
    root = spans[-1]
    assert run.status in ("concluded", "limit_reached")
    assert root.name == "invoke_agent MAIA"
    assert len({each.span_id for each in spans}) == len(spans), "each came once"
    assert {each.trace_id for each in spans} == {root.trace_id}
    chats = [read_attributes(each) for each in spans if each.name.startswith("chat ")]
    assert len(chats) == run.rounds == read_attributes(root)["maia.rounds"]
    request = collector.receiver.received[0]
    assert (request.path, request.headers["content-type"]) == ("/v1/traces", "application/x-protobuf")
    assert request.headers["authorization"] == "Basic a key"
    assert run.question.encode() not in collector.body


@pytest.mark.usefixtures("tiny")
def test_content_is_sent_where_the_setting_says_so(owner: User, collector: SpanCollector, settings: Any) -> None:
    with sending(collector.address) as here:
        play(begin(owner))
        assert here.wait_until_idle(PATIENCE)
        assert b"crimson" not in collector.body
        settings.OTEL_CONTENT = True
        play(begin(owner))
        assert here.wait_until_idle(PATIENCE)
        assert b"crimson" in collector.body


@pytest.mark.usefixtures("tiny")
def test_a_run_concludes_though_the_collector_is_down_and_its_spans_come_later(
    owner: User, caplog: pytest.LogCaptureFixture
) -> None:
    with collecting() as gone:
        port, address = gone.receiver.port, gone.address
    failed = count("maia_span_failures_total")
    with sending(address) as here, caplog.at_level(logging.WARNING):
        assert play(begin(owner)).status == "concluded"
        while count("maia_span_failures_total") == failed:
            time.sleep(0.01)  # the first attempt fails
        (line,) = [each.getMessage() for each in caplog.records if each.name == sender.__name__]
        assert f"127.0.0.1:{port}" in line
        assert "refused" in line
        assert "runs continue" in line
        with collecting(port) as back:
            assert here.wait_until_idle(PATIENCE)
            names = [each.name for each in back.spans]
    assert names[-1] == "invoke_agent MAIA"
    assert sum(each.startswith("chat") for each in names) == 3, "two replies, and what describing images took"


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("answer", [answer_with(500), answer_with(401), answer_with(302, b"", "Location: /x"), trickle])
def test_a_run_concludes_whatever_the_collector_answers(owner: User, collector: SpanCollector, answer: Any) -> None:
    collector.receiver.answer = answer
    with sending(collector.address, retry_seconds=60):
        assert play(begin(owner)).status == "concluded"


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("code", [400, 413])
def test_spans_that_are_refused_are_given_up(
    owner: User, collector: SpanCollector, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    collector.receiver.answer = answer_with(code)
    with sending(collector.address) as here:
        run = play(begin(owner))
        assert here.wait_until_idle(PATIENCE)
    assert f"refused spans of run {run.pk}" in caplog.text
    assert str(code) in caplog.text


@pytest.mark.usefixtures("tiny")
def test_a_run_sent_again_has_the_same_spans(owner: User, collector: SpanCollector, settings: Any) -> None:
    with sending(collector.address) as here:
        run = play(begin(owner))
        assert here.wait_until_idle(PATIENCE)
    live = {each.span_id: each for each in collector.spans}
    collector.receiver.received.clear()
    settings.OTEL_ENDPOINT, settings.OTEL_HEADERS = collector.address, "authorization=Basic%20cGs6c2s="
    said = StringIO()
    call_command("export_spans", str(run.pk), stdout=said)
    assert {each.span_id: each for each in collector.spans}.keys() == live.keys()
    assert [each.name for each in collector.spans] == [each.name for each in live.values()]
    assert collector.receiver.received[0].headers["authorization"] == "Basic cGs6c2s="
    assert f"Run {run.pk}: {len(live)} spans, {len(collector.body):,} bytes" in said.getvalue()
    collector.receiver.received.clear()
    call_command("export_spans", "--days", "1", stdout=said)
    assert len(collector.spans) == len(live)


def test_the_command_says_what_is_missing(owner: User, settings: Any) -> None:
    with pytest.raises(CommandError, match="OTEL_EXPORTER_OTLP_ENDPOINT"):
        call_command("export_spans", "1")
    settings.OTEL_ENDPOINT = "http://127.0.0.1:1"
    with pytest.raises(CommandError, match="no run 12345"):
        call_command("export_spans", "12345")
    for arguments in ([], ["1", "--days", "2"]):
        with pytest.raises(CommandError, match="or give --days"):
            call_command("export_spans", *arguments)
    run = make_run(owner, status="failed")
    run.events.create(seq=1, kind="failed", payload={})
    with pytest.raises(CommandError, match=r"127\.0\.0\.1:1 did not take the spans of run"):
        call_command("export_spans", str(run.pk))


def test_runs_that_wait_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "MAX_WAITING", 3)
    here = SpanSender(Collector("http://127.0.0.1:1", {}, {}))
    for run in range(1, 6):
        here.add(run, 7)
    here.add(5, 9)
    assert here._waiting == {3: 7, 4: 7, 5: 7}


def test_a_run_that_is_gone_holds_nothing_up(collector: SpanCollector) -> None:
    with sending(collector.address) as here:
        here.add(12345, 0)
        assert here.wait_until_idle(PATIENCE)
    assert collector.spans == []


def test_without_the_package_the_check_and_the_workers_page_say_so(
    owner: User, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert spans_have_their_package() == []
    for name in [name for name in sys.modules if name.startswith("opentelemetry")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    assert spans_have_their_package() == [], "nothing asks for spans"
    settings.OTEL_ENDPOINT = "http://127.0.0.1:6006"
    (found,) = spans_have_their_package()
    assert "pip install opentelemetry-proto" in found.msg
    assert found.msg in heartbeat.list_problems()
    sender.start_sender()
    assert sender.senders == []
    with pytest.raises(CommandError, match="pip install opentelemetry-proto"):
        call_command("export_spans", "1")


def test_a_worker_sends_where_the_settings_say(settings: Any, collector: SpanCollector) -> None:
    sender.start_sender()
    assert sender.senders == []
    settings.OTEL_ENDPOINT, settings.OTEL_RESOURCE = collector.address, "openinference.project.name=my%20runs"
    sender.start_sender()
    assert len(sender.senders) == 1
    sender.stop_sender()
    resource = Collector.of_settings().resource
    assert resource == {"service.name": "maia-web", "openinference.project.name": "my runs"}


def test_pairs_are_read_as_opentelemetry_writes_them() -> None:
    assert parse_pairs("a=1, b = x%3Dy= ,broken,=2") == {"a": "1", "b": "x=y="}
    assert parse_pairs("") == {}


def test_the_log_does_not_show_a_key_in_the_address() -> None:
    assert Collector("https://user:s3cret@spans.example.org:8443/api?key=s3cret", {}, {}).name == (
        "spans.example.org:8443"
    )


@pytest.mark.usefixtures("tiny")
def test_a_run_of_many_spans_is_sent_in_batches(owner: User, collector: SpanCollector, monkeypatch: Any) -> None:
    run = play(begin(owner))
    monkeypatch.setattr("workers.jobs.spans.otlp.BATCH_SIZE", 2)
    sent, size = send_spans(Collector(collector.address, {}, {}), run)
    assert len(collector.spans) == sent > 4
    assert len(collector.receiver.received) == (sent + 1) // 2
    assert size == len(collector.body)
