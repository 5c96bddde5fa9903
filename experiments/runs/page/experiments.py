"""The experiments of a run as a list: how each went, its strongest images, its program folded; and all images of the
run, in the order in which they were logged or by strength, of every origin or of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, F, Window
from django.db.models.functions import RowNumber

from experiments.core.paging import Page
from experiments.display import events
from experiments.display.image_cards import ImageCard, LoggedCard, find_originals, gather_edits
from experiments.models import Experiment, Observation, Run
from workers.record.origins import Origin

PER_PAGE, IMAGES_PER_PAGE = 30, 60
STRONGEST = 8
"""Images shown of each."""
ORDERS = {
    "logged": ("As logged", ("experiment__number", "position")),
    "strongest": ("Strongest first", ("-activation", "-id")),
    "weakest": ("Weakest first", ("activation", "id")),
}


@dataclass(frozen=True)
class Listed:
    experiment: Experiment
    cards: Sequence[ImageCard]

    @property
    def error(self) -> str:
        """Return the last line of the error."""
        # Python puts the message of an exception last.
        return (self.experiment.error.strip().splitlines() or [""])[-1]

    @property
    def seconds(self) -> float:
        return self.experiment.seconds + self.experiment.tool_seconds


def read_experiments(run: Run, params: Mapping[str, str]) -> dict[str, Any]:
    page = Page.of(params, run.experiment_count, PER_PAGE, "tab")
    rows = run.experiments.defer("state", "output").order_by("number")[page.start : page.end]
    return {"page": page, "listed": list_experiments(list(rows)), "scale": events.scale_of(run)}


def list_experiments(rows: Sequence[Experiment]) -> list[Listed]:
    """Return the experiments with the strongest images that they logged, in one query."""
    logged = Observation.objects.filter(experiment__in=rows)
    place = Window(RowNumber(), partition_by=F("experiment"), order_by=[F("activation").desc(), F("position")])
    cards: dict[int, list[ImageCard]] = {}
    for row in logged.annotate(place=place).filter(place__lte=STRONGEST).order_by("experiment_id", "place"):
        cards.setdefault(row.experiment_id, []).append(ImageCard.from_row(row))
    return [Listed(row, cards.get(row.pk, [])) for row in rows]


def read_images(run: Run, params: Mapping[str, str]) -> dict[str, Any]:
    origin = params.get("origin", "") if params.get("origin") in set(Origin) else ""
    order = params.get("order", "") if params.get("order") in ORDERS else "logged"
    rows = run.observations.all()
    counts = dict(rows.order_by().values_list("origin").annotate(Count("pk")))
    total = sum(counts.values())
    page = Page.of(params, counts.get(origin, 0) if origin else total, IMAGES_PER_PAGE, "tab", "origin", "order")
    chosen = (rows.filter(origin=origin) if origin else rows).order_by(*ORDERS[order][1]).select_related("experiment")
    shown = chosen.defer("experiment__state", "experiment__code", "experiment__output")[page.start : page.end]
    listed = [LoggedCard.from_row(row) for row in shown]
    # By strength, an edit may lie far from its original.
    logged = gather_edits(listed, find_originals(listed)) if order == "logged" else listed
    return {
        "page": page,
        "origin": origin,
        "order": order,
        "orders": [(name, label) for name, (label, _) in ORDERS.items()],
        "origins": [(name, label, counts[name]) for name, label in Origin.choices() if name in counts],
        "all": total,
        "logged": logged,
        "scale": events.scale_of(run),
    }
