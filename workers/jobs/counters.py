"""Metrics of this worker for `/metrics`, sent with each heartbeat. Counters start at 0 with the process, as Prometheus
expects."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

REGISTRY = CollectorRegistry()
ROUND_SECONDS = Histogram(
    "maia_round_seconds",
    "Duration of rounds, whatever their result.",
    buckets=(0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600),
    registry=REGISTRY,
)
EVENTS = Counter(
    "maia_events", "Events recorded, by kind: concluded, blocked, retrying, failed, ….", ["kind"], registry=REGISTRY
)
PROVIDER_ERRORS = Counter(
    "maia_provider_errors", "Errors of language-model providers after which a retry succeeded.", registry=REGISTRY
)
OUTAGES = Counter(
    "maia_outages", "Rounds delayed because a disk, the store or the database was not available.", registry=REGISTRY
)
SPANS = Counter("maia_spans", "Spans of runs that the collector accepted.", registry=REGISTRY)
SPAN_FAILURES = Counter("maia_span_failures", "Times that the spans of a run could not be sent.", registry=REGISTRY)
MODEL_LOADS = Gauge("maia_model_loads", "Times that this worker loaded weights.", registry=REGISTRY)
IMAGE_BYTES = Counter("maia_image_bytes", "Bytes of images written.", registry=REGISTRY)


def read_counters() -> list[dict[str, Any]]:
    """Return every metric as plain data: `name`, `about`, `type` and `samples` of name, labels and value."""
    return [
        {
            "name": family.name,
            "about": family.documentation,
            "type": family.type,
            "samples": [
                [each.name, each.labels, each.value] for each in family.samples if not each.name.endswith("_created")
            ],
        }
        for family in REGISTRY.collect()
    ]
