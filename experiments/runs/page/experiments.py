"""The experiments of a run as a list: how each went, its strongest images, its program folded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import F, Window
from django.db.models.functions import RowNumber

from experiments.core.paging import Page
from experiments.display import events
from experiments.display.image_cards import ImageCard
from experiments.models import Experiment, Observation, Run

PER_PAGE = 30
STRONGEST = 8
"""Images shown of each."""


@dataclass(frozen=True)
class Listed:
    experiment: Experiment
    cards: Sequence[ImageCard]

    @property
    def error(self) -> str:
        """The last line of what went wrong."""
        return (self.experiment.error.strip().splitlines() or [""])[-1]

    @property
    def seconds(self) -> float:
        return self.experiment.seconds + self.experiment.tool_seconds


def read_experiments(run: Run, params: Mapping[str, str]) -> dict[str, Any]:
    page = Page.of(params, run.experiment_count, PER_PAGE, "tab")
    rows = run.experiments.defer("state", "output").order_by("number")[page.start : page.end]
    return {"page": page, "listed": list_experiments(list(rows)), "scale": events.scale_of(run)}


def list_experiments(rows: Sequence[Experiment]) -> list[Listed]:
    """The experiments with the strongest of what they logged, in one query."""
    logged = Observation.objects.filter(experiment__in=rows)
    place = Window(RowNumber(), partition_by=F("experiment"), order_by=[F("activation").desc(), F("position")])
    cards: dict[int, list[ImageCard]] = {}
    for row in logged.annotate(place=place).filter(place__lte=STRONGEST).order_by("experiment_id", "place"):
        cards.setdefault(row.experiment_id, []).append(ImageCard.from_row(row))
    return [Listed(row, cards.get(row.pk, [])) for row in rows]
