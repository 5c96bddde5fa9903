"""Which tables a dataset holds: of chosen runs or observations also what belongs to them, each as pages show it."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.db.models import QuerySet

from experiments.core.visibility import visible_to
from experiments.exchange.export_query import told_whole
from experiments.models import ExportSubject, Label, Observation, Run


def list_tables(chosen: QuerySet[Any]) -> list[tuple[ExportSubject, QuerySet[Any]]]:
    """The tables that have rows, the first of which opens by itself."""
    if chosen.model is Label:
        found: list[tuple[ExportSubject, QuerySet[Any]]] = [(ExportSubject.LABELS, chosen)]
    else:
        runs = _runs_of(chosen)
        keys = runs.order_by().values("pk")
        of_runs = visible_to(Observation.objects.filter(run__in=keys)).order_by("pk")
        found = [
            (ExportSubject.OBSERVATIONS, chosen if chosen.model is Observation else of_runs),
            (ExportSubject.RUNS, runs),
            (ExportSubject.LABELS, visible_to(Label.objects.filter(run__in=keys)).order_by("pk")),
        ]
    return [(what, rows) for what, rows in found if rows.exists()]


def whole_runs(chosen: QuerySet[Any], viewer: User | None) -> list[int]:
    """Keys of the runs that a dataset carries whole. Raises ExchangeError where a run names what this person is still
    to judge."""
    return list(told_whole(_runs_of(chosen), viewer).values_list("pk", flat=True))


def _runs_of(chosen: QuerySet[Any]) -> QuerySet[Run]:
    if chosen.model is Run:
        return chosen
    return visible_to(Run.objects.filter(pk__in=chosen.order_by().values("run"))).order_by("pk")
