"""Models and their layers, datasets, backbones and toolsets: what there is to study, and with what."""

from __future__ import annotations

from datetime import datetime
from typing import TypeVar

from django.db import transaction
from django.db.models import Count, Sum
from django.http import HttpRequest
from ninja import Field, Query, Router, Schema, Status

from experiments.api.cursors import Page, Paging, page
from experiments.api.entry import allow
from experiments.api.fields import Id, Words, find
from experiments.api.problems import Refusal
from experiments.installation import dataset_pages, model_pages
from experiments.models import Backbone, Dataset, Layer, Toolset, VisionModelRow
from experiments.models.api_token import Scope
from experiments.models.member import Role

router = Router(tags=["What there is"])

Added = TypeVar("Added", VisionModelRow, Dataset)


class PartOut(Schema):
    """Something that workers use, and what it lacks where they cannot."""

    key: str
    label: str
    available: bool
    remedy: str
    model_names: list[str]


class ModelOut(Schema):
    """A trained network."""

    id: int
    name: str
    label: str
    available: bool
    remedy: str
    revision: str
    added: datetime | None


class LayerOut(Schema):
    """A named place in a model."""

    id: int
    model: str
    position: int
    name: str
    path: str
    kind: str
    units: int
    scale: str = Field(description="How logits become probabilities: softmax or sigmoid; empty for other layers.")


class DatasetOut(Schema):
    """Images that exemplars come from."""

    id: int
    key: str
    label: str
    available: bool
    remedy: str
    revision: str
    images: int
    broken_count: int
    indexed_layers: int
    added: datetime | None


class ModelDetail(ModelOut):
    """With how many layers and units workers have found."""

    layers: int
    units: int


class ModelFilters(Schema):
    name: Words | None = None
    available: bool | None = None


def layer_out(layer: Layer) -> LayerOut:
    names = ("id", "position", "name", "path", "kind", "scale", "units")
    return LayerOut(model=layer.model.name, **{name: getattr(layer, name) for name in names})


@router.get("/models", response=Page[ModelOut], summary="List models")
def list_models(request: HttpRequest, filters: Query[ModelFilters], paging: Query[Paging]) -> Page[ModelOut]:
    """Networks of the registry and those that somebody added, by name."""
    allow(request)
    chosen = {name: value for name, value in filters.model_dump().items() if value is not None}
    return page(request, VisionModelRow.objects.filter(**chosen), ["name"], paging, ModelOut.from_orm)


@router.get("/models/{pk}", response=ModelDetail, summary="Read a model")
def read_model(request: HttpRequest, pk: Id) -> ModelDetail:
    allow(request)
    row = find(VisionModelRow.objects.all(), pk=pk)
    found = Layer.objects.filter(model=row).aggregate(layers=Count("pk"), units=Sum("units", default=0))
    return ModelDetail(**ModelOut.from_orm(row).model_dump(), **found)


@router.delete("/models/{pk}", response={204: None}, summary="Remove a model")
def delete_model(request: HttpRequest, pk: Id) -> Status[None]:
    """One that somebody added; its runs stay."""
    allow(request, Role.ADMIN, Scope.WRITE)
    with transaction.atomic():
        model_pages.take_off(request, added(find(VisionModelRow.objects.all(), pk=pk)))
    return Status(204, None)


@router.delete("/datasets/{pk}", response={204: None}, summary="Remove a dataset")
def delete_dataset(request: HttpRequest, pk: Id) -> Status[None]:
    """One that somebody added; its images stay."""
    allow(request, Role.ADMIN, Scope.WRITE)
    with transaction.atomic():
        dataset_pages.take_off(request, added(find(Dataset.objects.all(), pk=pk)))
    return Status(204, None)


def added(row: Added) -> Added:
    """The row, if somebody added it. Raises Refusal: what belongs to the program stays."""
    if row.added is None:
        raise Refusal("conflict", f"“{row}” belongs to the program and stays.")
    return row


@router.get("/models/{pk}/layers", response=Page[LayerOut], summary="List the layers of a model")
def list_layers(request: HttpRequest, pk: Id, paging: Query[Paging]) -> Page[LayerOut]:
    """In the order of the network."""
    allow(request)
    model = find(VisionModelRow.objects.all(), pk=pk)
    rows = Layer.objects.filter(model=model).select_related("model").defer("names")
    return page(request, rows, ["position", "pk"], paging, layer_out)


@router.get("/layers/{pk}", response=LayerOut, summary="Read a layer")
def read_layer(request: HttpRequest, pk: Id) -> LayerOut:
    allow(request)
    return layer_out(find(Layer.objects.select_related("model").defer("names"), pk=pk))


def dataset_out(row: Dataset) -> DatasetOut:
    names = ("id", "key", "label", "available", "remedy", "revision", "images", "broken_count", "added")
    indexed = getattr(row, "indexed_layers", 0)
    return DatasetOut(indexed_layers=indexed, **{name: getattr(row, name) for name in names})


@router.get("/datasets", response=Page[DatasetOut], summary="List datasets")
def list_datasets(request: HttpRequest, paging: Query[Paging]) -> Page[DatasetOut]:
    allow(request)
    return page(request, Dataset.objects.annotate(indexed_layers=Count("indexes")), ["pk"], paging, dataset_out)


@router.get("/backbones", response=Page[PartOut], summary="List backbones")
def list_backbones(request: HttpRequest, paging: Query[Paging]) -> Page[PartOut]:
    """What writes the agent's replies."""
    allow(request)
    return page(request, Backbone.objects.all(), ["pk"], paging, PartOut.from_orm)


@router.get("/toolsets", response=Page[PartOut], summary="List toolsets")
def list_toolsets(request: HttpRequest, paging: Query[Paging]) -> Page[PartOut]:
    """A generator, an editor and a describer that go together."""
    allow(request)
    return page(request, Toolset.objects.all(), ["pk"], paging, PartOut.from_orm)
