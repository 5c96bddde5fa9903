"""A collector of spans on the loopback: it reads what it is sent as OpenTelemetry's protobuf has it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.support.webhook_receiver import Receiver, receiving
from workers.jobs.spans import sender
from workers.jobs.spans.otlp import Collector
from workers.jobs.spans.sender import SpanSender


@dataclass
class SpanCollector:
    receiver: Receiver

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.receiver.port}"

    @property
    def body(self) -> bytes:
        return b"".join(each.body for each in self.receiver.received)

    @property
    def spans(self) -> list[Any]:
        """All that came, in order."""
        return read_spans(*(each.body for each in self.receiver.received))


def read_spans(*bodies: bytes) -> list[Any]:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    requests = [ExportTraceServiceRequest.FromString(each) for each in bodies]
    groups = [group for request in requests for group in request.resource_spans]
    return [span for group in groups for scope in group.scope_spans for span in scope.spans]


def read_attributes(span: Any) -> dict[str, Any]:
    """Name -> value, as plain Python."""
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes}


@contextmanager
def collecting(port: int = 0) -> Iterator[SpanCollector]:
    with receiving(port) as receiver:
        yield SpanCollector(receiver)


@contextmanager
def sending(address: str, retry_seconds: float = 0.05) -> Iterator[SpanSender]:
    """The thread of a worker that sends spans, within the block."""
    here = SpanSender(Collector(address, {"authorization": "Basic a key"}, {"service.name": "maia-web"}), retry_seconds)
    sender.senders[:] = [here]
    here.start()
    try:
        yield here
    finally:
        sender.stop_sender()
