"""Observations: each image that an experiment logged, with its activation."""

from __future__ import annotations

from functools import partial
from typing import Literal

from django.http import HttpRequest
from ninja import Field, Query, Router, Schema

from experiments.api.cursors import Page, Paging, page
from experiments.api.entry import allow
from experiments.api.fields import Finite, RowNumber, UnitNumber, Words
from experiments.api.problems import FieldError, Refusal
from experiments.core.system_names import Names
from experiments.gallery import observations as gallery
from experiments.gallery.lists import Filters
from experiments.models import Observation
from workers.record.origins import Origin

router = Router(tags=["Observations"])


class ObservationOut(Schema):
    """One logged image."""

    id: int
    run: int
    experiment: int = Field(description="its number in the run")
    position: int
    model: str
    layer: str
    unit: int | None = Field(description="null, and the others empty, while you are to judge a synthetic neuron unseen")
    title: str
    activation: float = Field(description="what the system returned; what the program claimed if nobody measured it")
    claimed: float | None = Field(description="what the program logged; null if it named no number")
    measured: bool = Field(description="whether the system returned `activation`")
    differs: bool = Field(description="whether the claim is another number, beyond rounding")
    change: float | None = Field(description="what the edit did to the activation; null for all but edits")
    origin: str
    prompt: str
    seed: int | None
    image: str
    masked: str | None
    original: str | None = Field(description="key of the image that this one was edited from")


class ObservationFilters(Schema):
    """As on the page Experiments."""

    q: Words | None = Field(None, description="words of title or prompt")
    origin: Origin | None = None
    low: Finite | None = Field(None, description="lowest activation")
    high: Finite | None = Field(None, description="highest activation")
    model: Words | None = None
    layer: Words | None = None
    unit: UnitNumber | None = None
    run: RowNumber | None = None
    owner: Words | None = None
    differs: bool = Field(False, description="true: only those whose claim is another number")
    sort: Literal["recent", "strongest", "weakest", "rise", "drop"] = "recent"


SAME = ("id", "position", "title", "activation", "claimed", "measured", "differs", "change", "origin", "prompt", "seed")


def observation_out(names: Names, row: Observation) -> ObservationOut:
    return ObservationOut(
        run=row.run_id,
        experiment=row.experiment.number,
        **names.place(row.run),
        image=row.image_id,
        masked=row.masked_id,
        original=row.original or None,
        **{name: getattr(row, name) for name in SAME},
    )


@router.get("/observations", response=Page[ObservationOut], summary="List observations")
def list_observations(
    request: HttpRequest, filters: Query[ObservationFilters], paging: Query[Paging]
) -> Page[ObservationOut]:
    """Images of all runs, filtered and sorted as on the page Experiments. Of words, the newest images are looked at."""
    names = Names(allow(request))
    asked = Filters({name: str(value) for name, value in filters.model_dump(exclude_none=True).items()}, names)
    if not asked.is_valid():
        errors = [FieldError(field=name, message=str(each)) for name, found in asked.errors.items() for each in found]
        raise Refusal("invalid", "The filters make no sense: see errors.", errors)
    rows = gallery.chosen(asked)[0].select_related("run", "experiment").only(*gallery.SHOWN, "position")
    return page(request, rows, gallery.ORDERS[filters.sort], paging, partial(observation_out, names))
