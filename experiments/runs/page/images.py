"""All images of a run: in the order in which they were logged or by strength, of every origin or of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import Count, QuerySet

from experiments.core.paging import Page
from experiments.display import events
from experiments.display.image_cards import LoggedImage
from experiments.models import Observation, Run
from workers.record.origins import Origin

PER_PAGE = 60

ORDERS = {"logged": "As logged", "strongest": "Strongest first", "weakest": "Weakest first"}


def read_images(run: Run, params: Mapping[str, str]) -> dict[str, Any]:
    origin = params.get("origin", "") if params.get("origin") in set(Origin) else ""
    order = params.get("order", "") if params.get("order") in ORDERS else "logged"
    rows = run.observations.all()
    chosen = rows.filter(origin=origin) if origin else rows
    counts = dict(rows.order_by().values_list("origin").annotate(Count("pk")))
    total = counts.get(origin, 0) if origin else sum(counts.values())
    page = Page.of(params, total, PER_PAGE, "tab", "origin", "order")
    return {
        "page": page,
        "origin": origin,
        "order": order,
        "orders": ORDERS.items(),
        "origins": [(name, label, counts[name]) for name, label in Origin.choices() if name in counts],
        "all": sum(counts.values()),
        "logged": [LoggedImage.from_row(row) for row in sort_images(chosen, order)[page.start : page.end]],
        "scale": events.scale_of(run),
    }


def sort_images(rows: QuerySet[Observation], order: str) -> QuerySet[Observation]:
    by = {
        "logged": ("experiment__number", "position"),
        "strongest": ("-activation", "-id"),
        "weakest": ("activation", "id"),
    }
    rows = rows.order_by(*by[order]).select_related("experiment")
    return rows.defer("experiment__state", "experiment__code", "experiment__output")
