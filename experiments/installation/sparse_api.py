"""API of sparse auto-encoders: list, train and measure."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Field, Query, Status
from pydantic import StringConstraints

from experiments.api.auth import authorize
from experiments.api.cursors import ListPage, Paging, page
from experiments.api.fields import NO_NUL, Body, Id, Name, RowOut, Whole, Words, find
from experiments.core.actors import Actor
from experiments.installation import actions
from experiments.installation.api import WORK, JobOut, ask_once, router
from experiments.installation.sparse import SparseWish
from experiments.models import Role, SparseAutoencoderRow, TokenScope
from workers.record.sparse import DEFAULT_STEPS, MAX_IMAGES, MAX_LATENTS, MAX_STEPS, TOPK

DatasetKey = Annotated[str, StringConstraints(max_length=500, pattern=NO_NUL)]


class AutoencoderOut(RowOut):
    """A sparse auto-encoder that was trained or added; its model's units are the latents."""

    id: int
    model: str = Field(validation_alias="model.name", description="its key as a model: sae:NAME")
    available: bool = Field(validation_alias="model.available")
    remedy: str = Field(validation_alias="model.remedy")
    added: datetime | None = Field(validation_alias="model.added")
    card: dict[str, Any] = Field(
        description="model_key, layer and dataset that it was trained on, its recipe, and its quality on held-out "
        "images: unexplained (share of the variance), active (latents at a position, L0), dead (share of latents). "
        "source says where a published one comes from; its dataset is the one that it was measured on"
    )
    report: dict[str, Any] = Field(description="what was measured of its latents; empty until then")
    measured: datetime | None


class AutoencoderIn(Body):
    """A sparse auto-encoder to train on the activations of a layer."""

    model: Name
    layer: Name
    dataset: DatasetKey = Field("", description="whose images; empty for the one that suits the model")
    latents: int = Field(ge=1, le=MAX_LATENTS, description="4 to 32 times the units of the layer", examples=[512])
    k: int = Field(ge=1, le=MAX_LATENTS, description="active latents at a position", examples=[8])
    kind: Words = Field(TOPK, description="topk, batchtopk or matryoshka")
    name: Words = Field("", description="of the model sae:NAME; empty for one made of model, layer and recipe")
    steps: int = Field(
        0, ge=0, le=MAX_STEPS, description=f"of 4,096 positions each; {DEFAULT_STEPS:,} where images is 0 too"
    )
    images: int = Field(0, ge=0, le=MAX_IMAGES, description="images to show, in place of steps")
    seed: Whole = 0


@router.get("/autoencoders", response=ListPage[AutoencoderOut], summary="List sparse auto-encoders")
def list_autoencoders(request: HttpRequest, paging: Query[Paging]) -> ListPage[AutoencoderOut]:
    """Lists those that were trained or added here, newest first."""
    authorize(request)
    rows = SparseAutoencoderRow.objects.select_related("model")
    return page(request, rows, ["-pk"], paging, AutoencoderOut.from_orm)


@router.post("/autoencoders", response={202: JobOut}, summary="Train a sparse auto-encoder", tags=WORK)
def train_autoencoder(request: HttpRequest, wish: AutoencoderIn, response: HttpResponse) -> Status[Any]:
    """A worker trains it. Its latents are then the units of the model sae:NAME."""
    actor = Actor.behind(request, authorize(request, Role.RESEARCHER, TokenScope.WRITE))
    return ask_once(request, response, actor, lambda: actions.train_sparse(actor, SparseWish(**wish.model_dump())))


@router.post(
    "/autoencoders/{pk}/measure",
    response={202: JobOut},
    summary="Measure a sparse auto-encoder",
    tags=WORK,
)
def measure_autoencoder(request: HttpRequest, pk: Id, response: HttpResponse) -> Status[Any]:
    """A worker writes its report on images that training here never saw."""
    actor = Actor.behind(request, authorize(request, Role.RESEARCHER, TokenScope.WRITE))
    row = find(SparseAutoencoderRow.objects.select_related("model"), pk=pk)
    return ask_once(request, response, actor, lambda: actions.measure_autoencoder(actor, row))
