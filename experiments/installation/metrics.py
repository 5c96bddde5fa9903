"""Metrics for Prometheus: runs and queue from the database, work from each worker's report, listeners of this process.

No label holds free text or grows with the work: only statuses, ids of people, names of workers, kinds of events.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from django.db.models import Count, Sum
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from experiments.core import sockets, worker_status
from experiments.core.system_names import SystemNameMasker
from experiments.installation.queue_status import read_waiting
from experiments.models import Run
from workers.record.statuses import Status

_TOTALS = {
    "rounds": ("maia_rounds", "Rounds played."),
    "prompt_tokens": ("maia_prompt_tokens", "Tokens that language models were sent."),
    "completion_tokens": ("maia_completion_tokens", "Tokens that language models wrote."),
    "cost": ("maia_cost_dollars", "US dollars that language models cost, by the prices known here."),
    "observation_count": ("maia_observations", "Observations logged."),
}
"""Column of a run -> name and description of the counter that sums it."""
_TYPES = frozenset({"counter", "histogram", "gauge"})


def write_metrics() -> bytes:
    """Return the current metrics in Prometheus' text format."""
    # A registry of its own for each scrape; without `auto_describe`, which would collect once more.
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Installation())
    return generate_latest(registry)


class _Installation(Collector):
    """Reads the database and Redis at each scrape and stores nothing in between."""

    def collect(self) -> Iterator[Metric]:
        yield from _count_runs()
        yield from _describe_queue()
        yield from _read_workers()
        yield GaugeMetricFamily("maia_listeners", "Browsers that listen to this web process.", len(sockets.listening))


def _count_runs() -> Iterator[Metric]:
    runs = GaugeMetricFamily("maia_runs", "Runs, by status.", labels=["status"])
    counted = dict(Run.objects.order_by().values_list("status").annotate(count=Count("pk")))
    # Statuses without runs too: a missing series looks like an outage.
    for status in Status:
        runs.add_metric([status.value], counted.get(status.value, 0))
    yield runs
    sums = Run.objects.aggregate(**{f"sum_{column}": Sum(column) for column in _TOTALS})
    for column, (name, about) in _TOTALS.items():
        yield CounterMetricFamily(name, about, sums[f"sum_{column}"] or 0)


def _describe_queue() -> Iterator[Metric]:
    """Yield the queue by id of the person who asked, with their sweeps."""
    age = GaugeMetricFamily("maia_queue_age_seconds", "How long the first of a person's runs waits.", labels=["person"])
    length = GaugeMetricFamily("maia_queue_runs", "A person's runs that wait or are under way.", labels=["person"])
    waiting_reason = GaugeMetricFamily("maia_held_up_runs", "Runs that wait for the end of an outage.")
    waiting = read_waiting(SystemNameMasker(None))
    waits: dict[int, float] = defaultdict(float)
    runs: dict[int, int] = defaultdict(int)
    for line in waiting.lines:
        # A person may have several queues: one for each sweep.
        waits[line.run_queue.owner_id] = max(waits[line.run_queue.owner_id], line.waited or 0.0)
        runs[line.run_queue.owner_id] += line.queued + line.under_way
    for person, seconds in waits.items():
        age.add_metric([str(person)], seconds)
        length.add_metric([str(person)], runs[person])
    waiting_reason.add_metric([], sum(count for _, count in waiting.outages))
    yield from (age, length, waiting_reason)


def _read_workers() -> Iterator[Metric]:
    """Yield each worker's counters, labelled with its name. Counters of an unknown shape are left out."""
    present = worker_status.alive_workers() or []
    workers = GaugeMetricFamily("maia_workers", "Workers, by state.", labels=["state"])
    for state in ("ready", "busy", "refuses", "late"):
        workers.add_metric([state], sum(worker_status.state(each) == state for each in present))
    yield workers
    families: dict[str, Metric] = {}
    for report in present:
        for figure in report.get("counters", ()):
            _add_figure(families, figure, str(report["name"]))
    yield from families.values()


def _add_figure(families: dict[str, Metric], figure: dict[str, Any], worker: str) -> None:
    if figure["type"] not in _TYPES:
        return
    family = families.setdefault(figure["name"], Metric(figure["name"], figure["about"], figure["type"]))
    samples: Iterable[tuple[str, dict[str, str], float]] = figure["samples"]
    for name, labels, value in samples:
        family.add_sample(name, {**labels, "worker": worker}, value)
