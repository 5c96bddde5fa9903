"""Send the spans of runs to the collector again: what it missed while it was down, or runs from before it was there."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.db.models import QuerySet

from experiments.core.clock import database_now
from experiments.core.otel_package import explain_missing_package
from experiments.management.options import positive
from experiments.management.prepared import PreparedCommand
from experiments.models import Run

# A hundred years: larger numbers overflow the date.
MAX_DAYS = 36_500


class Command(PreparedCommand):
    help = "Send the spans of runs to the collector that OTEL_EXPORTER_OTLP_ENDPOINT names; their ids stay the same."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("runs", nargs="*", type=int, metavar="RUN", help="numbers of the runs")
        parser.add_argument("--days", type=_days, metavar="N", help="runs that ended in the last N days")

    def handle(self, **options: Any) -> None:
        from workers.jobs.spans.otlp import Collector, CollectorDown, SpansRefused
        from workers.jobs.spans.sender import send_spans

        if not settings.OTEL_ENDPOINT:
            raise CommandError("No collector is named. Set OTEL_EXPORTER_OTLP_ENDPOINT, such as http://127.0.0.1:6006.")
        if problem := explain_missing_package():
            raise CommandError(problem)
        collector = Collector.of_settings()
        for run in _find_runs(options["runs"], options["days"]):
            try:
                count, size = send_spans(collector, run)
            except (CollectorDown, SpansRefused) as error:
                raise CommandError(f"{collector.name} did not take the spans of run {run.pk}: {error}.") from error
            self.stdout.write(f"Run {run.pk}: {count:,} spans, {size:,} bytes")


def _find_runs(keys: list[int], days: float | None) -> QuerySet[Run]:
    """Return the runs. Raises CommandError if one does not exist."""
    # Neither, or both.
    if bool(keys) == (days is not None):
        raise CommandError("Name runs by their numbers, or give --days N.")
    if days is not None:
        # By the clock of the database, which wrote the times.
        return Run.objects.filter(ended__gte=database_now() - timedelta(days=days)).order_by("pk")
    if unknown := sorted(set(keys) - set(Run.objects.filter(pk__in=keys).values_list("pk", flat=True))):
        raise CommandError(f"There is no run {unknown[0]}.")
    return Run.objects.filter(pk__in=keys).order_by("pk")


def _days(text: str) -> float:
    return min(positive(float, text), MAX_DAYS)
