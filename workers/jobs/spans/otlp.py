"""Encode spans in OpenTelemetry's protocol (OTLP 1.x, protobuf over HTTP), and send them to a collector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import requests
from django.conf import settings

from workers.jobs.spans.rows import SpanMark, SpanRow, Value

if TYPE_CHECKING:
    from opentelemetry.proto.common.v1.common_pb2 import KeyValue
    from opentelemetry.proto.trace.v1.trace_pb2 import Span

SERVICE = "maia-web"
BATCH_SIZE = 50
"""Number of spans per request."""
_MAX_COUNT = 2**53
"""Maximum of encoded counts, for imported values. The minimum is 0."""
CONNECT_TIMEOUT, ANSWER_TIMEOUT = 3.0, 10.0
_REFUSED = frozenset({400, 413})
"""Status codes after which the same bytes are not sent again."""


class CollectorDown(Exception):
    """Raised when the collector did not accept spans, but may do so later."""


class SpansRefused(Exception):
    """Raised when the collector rejects spans for good."""


@dataclass(frozen=True)
class Collector:
    """Destination of spans. `address` is the base address, as in OTEL_EXPORTER_OTLP_ENDPOINT."""

    address: str
    headers: Mapping[str, str]
    resource: Mapping[str, str]
    """Attributes of the sender, such as the project of the spans."""

    @classmethod
    def of_settings(cls) -> Collector:
        resource = {"service.name": SERVICE} | parse_pairs(settings.OTEL_RESOURCE)
        return cls(settings.OTEL_ENDPOINT, parse_pairs(settings.OTEL_HEADERS), resource)

    @property
    def name(self) -> str:
        """Return host and port. The address may contain secrets."""
        parts = urlsplit(self.address)
        return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)

    def send(self, rows: Sequence[SpanRow]) -> int:
        """Send spans in batches. Return the number of bytes. Raises CollectorDown, SpansRefused."""
        bodies = [encode(rows[at : at + BATCH_SIZE], self.resource) for at in range(0, len(rows), BATCH_SIZE)]
        for body in bodies:
            self._post(body)
        return sum(map(len, bodies))

    def _post(self, body: bytes) -> None:
        headers = {**self.headers, "Content-Type": "application/x-protobuf"}
        url = f"{self.address.rstrip('/')}/v1/traces"
        times = (CONNECT_TIMEOUT, ANSWER_TIMEOUT)
        try:
            # The body of the answer is not read, so its length does not matter. No redirects: headers may contain a key
            with requests.post(url, body, headers=headers, timeout=times, allow_redirects=False, stream=True) as answer:
                code = answer.status_code
        except requests.RequestException as error:
            raise CollectorDown(f"{type(error).__name__}: {_find_reason(error)}") from error
        if code in _REFUSED:
            raise SpansRefused(f"it answered {code}")
        if not 200 <= code < 300:
            raise CollectorDown(f"it answered {code}")


def _find_reason(error: BaseException) -> str:
    """Return the innermost message of an error."""
    # The outer messages repeat the address, which may be secret.
    while inner := error.__cause__ or error.__context__:
        error = inner
    return str(error)[:200]


def parse_pairs(text: str) -> dict[str, str]:
    """Parse `name=value,name=value` with percent-encoded values, as in OpenTelemetry's variables."""
    pairs = (each.partition("=") for each in text.split(",") if "=" in each)
    return {name.strip(): unquote(value.strip()) for name, _, value in pairs if name.strip()}


def encode(rows: Sequence[SpanRow], resource: Mapping[str, str]) -> bytes:
    """Return the body of one request."""
    # Imported here, so that installations without a collector do not need the package.
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    request = ExportTraceServiceRequest()
    group = request.resource_spans.add()
    group.resource.attributes.extend(_encode_attributes(resource))
    scope = group.scope_spans.add()
    scope.scope.name = SERVICE
    scope.spans.extend(_encode_span(each) for each in rows)
    return request.SerializeToString()


def _encode_span(row: SpanRow) -> Span:
    from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

    span = Span(
        trace_id=row.trace,
        span_id=row.span,
        parent_span_id=row.parent,
        name=row.name,
        kind=Span.SPAN_KIND_CLIENT if row.kind == "client" else Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=_count_nanoseconds(row.start),
        end_time_unix_nano=_count_nanoseconds(row.end),
        attributes=_encode_attributes(row.attributes),
        events=[_encode_mark(each) for each in row.marks],
    )
    if row.error:
        span.status.code = Status.STATUS_CODE_ERROR
        span.status.message = row.error
    return span


def _encode_mark(mark: SpanMark) -> Span.Event:
    from opentelemetry.proto.trace.v1.trace_pb2 import Span

    attributes = _encode_attributes(mark.attributes)
    return Span.Event(name=mark.name, time_unix_nano=_count_nanoseconds(mark.time), attributes=attributes)


def _encode_attributes(attributes: Mapping[str, Value]) -> list[KeyValue]:
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

    def wrap(value: Value) -> AnyValue:
        match value:
            # Before int: bool is an int to Python.
            case bool():
                return AnyValue(bool_value=value)
            case int():
                return AnyValue(int_value=min(max(value, 0), _MAX_COUNT))
            case float():
                return AnyValue(double_value=value)
        return AnyValue(string_value=value)

    return [KeyValue(key=key, value=wrap(value)) for key, value in attributes.items()]


def _count_nanoseconds(moment: datetime) -> int:
    # In whole microseconds: floats of nanoseconds lose digits.
    return max(0, int(moment.timestamp() * 1_000_000)) * 1_000
