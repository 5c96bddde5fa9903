"""All images of a run: in the order in which they were logged or by strength, of every origin or of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import Count

from experiments.core.paging import Page
from experiments.display import events
from experiments.display.image_cards import LoggedImage
from experiments.models import Run
from workers.record.origins import Origin

PER_PAGE = 60
ORDERS = {
    "logged": ("As logged", ("experiment__number", "position")),
    "strongest": ("Strongest first", ("-activation", "-id")),
    "weakest": ("Weakest first", ("activation", "id")),
}


def read_images(run: Run, params: Mapping[str, str]) -> dict[str, Any]:
    origin = params.get("origin", "") if params.get("origin") in set(Origin) else ""
    order = params.get("order", "") if params.get("order") in ORDERS else "logged"
    rows = run.observations.all()
    counts = dict(rows.order_by().values_list("origin").annotate(Count("pk")))
    total = sum(counts.values())
    page = Page.of(params, counts.get(origin, 0) if origin else total, PER_PAGE, "tab", "origin", "order")
    chosen = (rows.filter(origin=origin) if origin else rows).order_by(*ORDERS[order][1]).select_related("experiment")
    shown = chosen.defer("experiment__state", "experiment__code", "experiment__output")[page.start : page.end]
    return {
        "page": page,
        "origin": origin,
        "order": order,
        "orders": [(name, label) for name, (label, _) in ORDERS.items()],
        "origins": [(name, label, counts[name]) for name, label in Origin.choices() if name in counts],
        "all": total,
        "logged": [LoggedImage.from_row(row) for row in shown],
        "scale": events.scale_of(run),
    }
