"""Select the tables of a dataset: the chosen rows, and the rows that belong to their runs."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.db.models import QuerySet

from experiments.core.visibility import visible_to
from experiments.exchange.export_query import require_named_systems
from experiments.models import ExportSubject, Label, Observation, Run


def list_tables(chosen: QuerySet[Any]) -> list[tuple[ExportSubject, QuerySet[Any]]]:
    """Return the tables that have rows. `load_dataset` opens the first by default."""
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


def list_whole_runs(chosen: QuerySet[Any], viewer: User | None) -> list[int]:
    """Return the keys of the runs that a dataset includes in full. Raises ExchangeError if this person still has to
    review one without knowing its system."""
    return list(require_named_systems(_runs_of(chosen), viewer).values_list("pk", flat=True))


def _runs_of(chosen: QuerySet[Any]) -> QuerySet[Run]:
    if chosen.model is Run:
        return chosen
    return visible_to(Run.objects.filter(pk__in=chosen.order_by().values("run"))).order_by("pk")
