"""The list of experiments of all runs, each with its strongest images."""

from __future__ import annotations

from typing import Any

from django.db.models import F, QuerySet

from experiments.core.paging import Page, count
from experiments.display.plots import Scale
from experiments.gallery import observations
from experiments.gallery.lists import LIST_SORTS, Filters
from experiments.models import Experiment
from experiments.runs.page.experiments import list_experiments

PER_PAGE = 20
ORDERS = {"recent": ("-run_id", "-number"), "strongest": ("-best_activation", "-pk")}


def find(filters: Filters, number: int) -> dict[str, Any]:
    """A page of the list; `common` as in the gallery."""
    rows, common = select_experiments(filters)
    page = Page(number, PER_PAGE, count(rows), filters.params())
    keys = list(rows.values_list("pk", flat=True)[page.start : page.end])
    rows = Experiment.objects.select_related("run").defer("state", "output", "calls", "run__versions").order_by()
    found = rows.in_bulk(keys)
    shown = list_experiments([found[key] for key in keys if key in found])
    return {"page": page, "common": common, "listed": [(each, scale_of(each.experiment)) for each in shown]}


def select_experiments(filters: Filters) -> tuple[QuerySet[Experiment], bool]:
    """The experiments in order; by words and origin, those that logged such an image."""
    keys, common = observations.find_titled(filters) if filters.terms else (None, False)
    rows = Experiment.objects.filter(filters.on_experiments(keys))
    sort = filters.sorted_by if filters.sorted_by in LIST_SORTS else "recent"
    if sort == "strongest":
        rows = rows.filter(best_activation__isnull=False)
    if (runs := filters.runs()) is not None:
        rows = rows.filter(run__in=runs.values("pk"))
    return rows.order_by(*ORDERS[sort]), common


def scale_of(experiment: Experiment) -> Scale:
    run = experiment.run
    return Scale.of([run.best_activation, experiment.best_activation], run.exemplar_mean)


def find_neighbours(experiment: Experiment) -> dict[str, Experiment | None]:
    """The experiments of the run before and after this one."""
    rows = experiment.run.experiments.only("number", "run")
    return {
        "before": rows.filter(number__lt=experiment.number).order_by("-number").first(),
        "after": rows.filter(number__gt=experiment.number).order_by(F("number").asc()).first(),
    }
