"""Experiments and what they logged: programs, observations, images by the key of their pixels."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any, Literal

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Field, Query, Router, Schema

from experiments.api.auth import authorize
from experiments.api.cursors import ListPage, Paging, page
from experiments.api.fields import (
    Given,
    Id,
    ImageKey,
    Number,
    RowOut,
    Words,
    binary,
    find,
)
from experiments.api.filters import read_filters, with_filters
from experiments.api.problems import Refusal
from experiments.core.errors import InvalidFilters
from experiments.core.system_names import SystemNameMasker
from experiments.core.visibility import list_images
from experiments.gallery import observations
from experiments.gallery.images import serve_image, serve_thumbnail
from experiments.gallery.lists import FILTERS, Filters
from experiments.models import Experiment, Image, Observation
from workers.record.experiments import ActivationMap

router = Router(tags=["Experiments"])


@with_filters(FILTERS)
class GalleryFilters(Schema):
    """The filters of the page Experiments; for experiments, those that logged a matching image."""


def _check_filters(asked: GalleryFilters, names: SystemNameMasker) -> Filters:
    """Return the filters as the page reads them. Raises Refusal for invalid ones."""
    filters = Filters(read_filters(asked), names)
    if not filters.is_valid():
        raise InvalidFilters({name: [str(each) for each in found] for name, found in filters.errors.items()})
    return filters


# --- experiments ---


class ExperimentOut(RowOut):
    """One program and its outcome."""

    id: int
    run: int = Field(validation_alias="run_id")
    number: int
    round: int
    status: str
    code: str
    output: str
    error: str
    seconds: float
    tool_seconds: float


class ExperimentDetail(ExperimentOut):
    calls: list[dict[str, Any]] = Field(description="of the tools, with arguments, seeds and seconds")


class ExperimentFilters(GalleryFilters):
    """The page's filters, and how the program ended."""

    status: Words | None = None
    order: Literal["newest", "oldest"] = "newest"


@router.get("/experiments", response=ListPage[ExperimentOut], summary="List experiments")
def list_experiments(
    request: HttpRequest, filters: Query[ExperimentFilters], paging: Query[Paging]
) -> ListPage[ExperimentOut]:
    """List experiments of all runs or of one, newest first."""
    names = SystemNameMasker(authorize(request))
    rows, _ = observations.select_experiments(_check_filters(filters, names))
    if filters.status:
        rows = rows.filter(status=filters.status)
    # By key, which continues pages of a list that grows meanwhile.
    order = ["-pk"] if filters.order == "newest" else ["pk"]
    # The state of a program may be megabytes, and no answer contains it.
    return page(request, rows.defer("state", "calls"), order, paging, ExperimentOut.from_orm)


@router.get("/runs/{pk}/experiments/{number}", response=ExperimentDetail, summary="Read an experiment")
def read_experiment(request: HttpRequest, pk: Id, number: Number) -> ExperimentDetail:
    """Read an experiment by its number in the run, with the calls it made."""
    authorize(request)
    row = Experiment.objects.filter(run_id=pk, number=number).defer("state").first()
    if row is None:
        raise Refusal("missing", f"Run {pk} has no experiment {number}, or there is no such run.")
    return ExperimentDetail.from_orm(row)


# --- observations ---

OBSERVATIONS = ["Observations"]


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
    activation: float = Field(description="what the system returned; what the program claimed if it was not measured")
    claimed: float | None = Field(description="what the program logged; null if it named no number")
    measured: bool = Field(description="whether the system returned `activation`")
    differs: bool = Field(description="whether the claim is another number, beyond rounding")
    change: float | None = Field(description="what the edit did to the activation; null for all but edits")
    origin: str
    prompt: str
    seed: int | None
    parameters: dict[str, float] | None = Field(description="what the game engine drew it with; null for other images")
    image: str
    masked: str | None
    map: ActivationMap | None = Field(description="where the image drives the unit; null where it was not kept")
    original: str | None = Field(description="key of the image that this one was edited from")


class ObservationFilters(GalleryFilters):
    """The page's filters."""

    sort: Literal["recent", "strongest", "weakest", "rise", "drop"] = "recent"


SAME_OF_OBSERVATIONS = (
    *("id", "position", "title", "activation", "claimed", "measured", "differs", "change"),
    *("origin", "prompt", "seed", "parameters"),
)


def _observation_out(names: SystemNameMasker, row: Observation) -> ObservationOut:
    return ObservationOut(
        run=row.run_id,
        experiment=row.experiment.number,
        **names.place(row.run),
        image=row.image_id,
        masked=row.masked_id,
        map=row.activation_map,
        original=row.original or None,
        **{name: getattr(row, name) for name in SAME_OF_OBSERVATIONS},
    )


@router.get("/observations", response=ListPage[ObservationOut], summary="List observations", tags=OBSERVATIONS)
def list_observations(
    request: HttpRequest, filters: Query[ObservationFilters], paging: Query[Paging]
) -> ListPage[ObservationOut]:
    """List images of all runs, filtered and sorted as on the page Experiments. A filter for words searches the
    newest images."""
    names = SystemNameMasker(authorize(request))
    rows = observations.select_observations(_check_filters(filters, names))[0].select_related("run", "experiment")
    # Beside the fields of the page, those that only the API returns.
    shown = rows.only(*observations.SHOWN_FIELDS, "position", "parameters")
    return page(request, shown, observations.ORDERS[filters.sort], paging, partial(_observation_out, names))


# --- images ---

IMAGES = ["Images"]


class ImageOut(RowOut):
    """What is stored about an image."""

    key: str
    width: int
    height: int
    created: datetime
    origin: str
    prompt: str
    seed: int | None
    scene: dict[str, Any] | None
    raw: Given
    original: Given


@router.get("/images/{key}", response=ImageOut, summary="Read an image", tags=IMAGES)
def read_image(request: HttpRequest, key: ImageKey) -> ImageOut:
    """`raw` is the unmasked image of a masked one, `original` the image it was edited from. Judges can read images
    that people judge only after they have judged them."""
    user = authorize(request)
    return ImageOut.from_orm(find(list_images(Image.objects.all(), user), key=key))


@router.get(
    "/images/{key}/file", response=None, openapi_extra=binary("image/png"), summary="Fetch an image", tags=IMAGES
)
def fetch_image(request: HttpRequest, key: ImageKey) -> HttpResponseBase:
    """The PNG file. Its bytes never change."""
    authorize(request)
    return serve_image(request, find(Image.objects.all(), key=key).key)


class Size(Schema):
    size: Literal[64, 160, 320] = Field(160, description="pixels")


@router.get(
    "/images/{key}/thumbnail",
    response=None,
    openapi_extra=binary("image/webp", "image/png"),
    summary="Fetch a small version of an image",
    tags=IMAGES,
)
def fetch_thumbnail(request: HttpRequest, key: ImageKey, asked: Query[Size]) -> HttpResponseBase:
    """A WebP file; until a worker has made it, the whole image."""
    authorize(request)
    return serve_thumbnail(request, find(Image.objects.all(), key=key).key, asked.size)
