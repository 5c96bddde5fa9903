"""Find the picture of a run in a list: its image with the highest activation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.db.models import OuterRef, Subquery
from django.urls import reverse

from experiments.models import Observation, Run
from workers.record.figures import figure

THUMBNAIL = 64


@dataclass(frozen=True)
class RunPicture:
    """The picture. `key` is the raw image's, not the masked one's: it is shown small."""

    key: str
    title: str
    activation: float

    @property
    def url(self) -> str:
        return reverse("thumbnail", args=[self.key, THUMBNAIL])

    @property
    def words(self) -> str:
        return f"{self.title or 'untitled image'}, {figure(self.activation)}"


def find_pictures(runs: Iterable[int]) -> Mapping[int, RunPicture]:
    """Return pictures by key of the run; none for a run that logged no image. Two queries for any number of runs."""
    strongest = Observation.objects.filter(run=OuterRef("pk")).order_by("-activation", "-pk").values("pk")[:1]
    asked = Run.objects.filter(pk__in=list(runs)).order_by().annotate(strongest=Subquery(strongest))
    by_run = {run: pk for run, pk in asked.values_list("pk", "strongest") if pk}
    # A subquery returns one column; the rest comes by key.
    rows = Observation.objects.only("image", "title", "activation").in_bulk(by_run.values())
    return {
        run: RunPicture(row.image_id, row.title, row.activation) for run, pk in by_run.items() if (row := rows.get(pk))
    }
