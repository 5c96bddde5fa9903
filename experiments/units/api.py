"""Units: one channel, neuron, logit or synthetic neuron of a layer; its figures, exemplars and labels."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest
from ninja import Query, Router, Schema, Status

from experiments.api.cursors import Page, Paging, page
from experiments.api.entry import allow
from experiments.api.fields import Body, Id, Name, Number, UnitNumber, Words, find
from experiments.api.problems import Refusal
from experiments.core import audit, queue
from experiments.core.audit import Verb
from experiments.core.system_names import Names
from experiments.models import Dataset, Exemplar, Layer, Run, Unit, UnitProfile
from experiments.models.api_token import Scope
from experiments.models.member import Role

router = Router(tags=["Units"])
UNITS = Unit.objects.select_related("layer__model").prefetch_related("labels")


class UnitOut(Schema):
    """A unit that somebody has asked about."""

    id: int
    model: str
    layer: str
    layer_id: int
    number: int
    name: str
    labels: list[str]


class ProfileOut(Schema):
    """What a unit does over a dataset. `written` is null until a worker has looked."""

    dataset: str
    quantile: float | None
    mean: float | None
    maximum: float | None
    active: float | None
    threshold: float | None
    histogram: dict[str, Any]
    written: datetime | None
    problem: str


class UnitDetail(Schema):
    """A unit, whether or not somebody has asked about it."""

    model: str
    layer: str
    layer_id: int
    number: int
    name: str
    labels: list[str]
    runs: int
    profiles: list[ProfileOut]


class ExemplarOut(Schema):
    """A dataset image that activates the unit most, raw and masked."""

    dataset: str
    rank: int
    activation: float
    image: str
    masked: str


class UnitFilters(Schema):
    model: Words | None = None
    layer: Words | None = None
    number: UnitNumber | None = None
    labelled: bool | None = None
    label: Words | None = None


class Over(Body):
    """Which dataset is meant, by its key."""

    dataset: Name


def unit_out(names: Names, unit: Unit) -> UnitOut:
    return UnitOut(
        id=unit.pk,
        model=unit.layer.model.name,
        layer=unit.layer.name,
        layer_id=unit.layer_id,
        number=unit.number,
        name=unit.layer.name_of(unit.number),
        labels=labels_of(unit, is_hidden=names.holds_back(unit.layer.model.name, unit.layer.name, unit.number)),
    )


def labels_of(unit: Unit, *, is_hidden: bool) -> list[str]:
    """Its labels; of a unit that the caller is to judge unseen, those of no run."""
    return [label.text for label in unit.labels.all() if not (is_hidden and label.run_id)]


@router.get("/units", response=Page[UnitOut], summary="Find units")
def list_units(request: HttpRequest, filters: Query[UnitFilters], paging: Query[Paging]) -> Page[UnitOut]:
    """Units that somebody has asked about, by model, layer, number and the words of their labels."""
    names = Names(allow(request))
    return page(request, matching(filters, names), ["pk"], paging, partial(unit_out, names))


def matching(filters: UnitFilters, names: Names) -> QuerySet[Unit]:
    fields = {"model": "layer__model__name", "layer": "layer__name", "number": "number"}
    given = filters.model_dump(exclude_none=True)
    rows = UNITS.filter(**{field: given[name] for name, field in fields.items() if name in given})
    if filters.labelled is not None:
        rows = rows.filter(labels__isnull=not filters.labelled)
    if filters.label:
        rows = rows.filter(labels__text__icontains=filters.label)
    if filters.label or filters.labelled is not None:
        rows = rows.exclude(names.are_hidden_at("layer__model__name", "layer__name", "number"))
    return rows.distinct()


@router.get("/layers/{pk}/units/{number}", response=UnitDetail, summary="Read a unit")
def read_unit(request: HttpRequest, pk: Id, number: Number) -> UnitDetail:
    """Any unit of the layer; its figures over each dataset that somebody has asked for."""
    names = Names(allow(request))
    layer = within(pk, number)
    is_hidden = names.holds_back(layer.model.name, layer.name, number)
    unit = UNITS.filter(layer=layer, number=number).first()
    runs = Run.objects.filter(model=layer.model.name, layer=layer.name, unit=number).count()
    return UnitDetail(
        model=layer.model.name,
        layer=layer.name,
        layer_id=layer.pk,
        number=number,
        name=layer.name_of(number),
        labels=labels_of(unit, is_hidden=is_hidden) if unit else [],
        runs=0 if is_hidden else runs,
        profiles=profiles(unit) if unit else [],
    )


def within(pk: int, number: int) -> Layer:
    """The layer, if it has such a unit."""
    layer = find(Layer.objects.select_related("model"), pk=pk)
    if number >= layer.units:
        raise Refusal("missing", f"There is no unit {number}: {layer.name} has units 0 to {layer.units - 1}.")
    return layer


def profiles(unit: Unit) -> list[ProfileOut]:
    ranked = Prefetch("exemplars", queryset=Exemplar.objects.order_by("rank"))
    rows = UnitProfile.objects.filter(unit=unit).select_related("dataset").prefetch_related(ranked)
    names = ("quantile", "mean", "maximum", "active", "histogram", "written", "problem")
    return [
        ProfileOut(
            dataset=row.dataset.key,
            threshold=mean([each.activation for each in row.exemplars.all()]),
            **{name: getattr(row, name) for name in names},
        )
        for row in rows
    ]


def mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


@router.get("/layers/{pk}/units/{number}/exemplars", response=Page[ExemplarOut], summary="List the exemplars of a unit")
def list_exemplars(
    request: HttpRequest, pk: Id, number: Number, paging: Query[Paging], dataset: Words | None = None
) -> Page[ExemplarOut]:
    """The strongest first. Empty until a worker has written them: ask for that with POST."""
    allow(request)
    layer = within(pk, number)
    rows = Exemplar.objects.filter(profile__unit__layer=layer, profile__unit__number=number)
    if dataset is not None:
        rows = rows.filter(profile__dataset__key=dataset)
    return page(request, rows.select_related("profile__dataset"), ["profile_id", "rank"], paging, exemplar_out)


def exemplar_out(row: Exemplar) -> ExemplarOut:
    return ExemplarOut(
        dataset=row.profile.dataset.key,
        rank=row.rank,
        activation=row.activation,
        image=row.image_id,
        masked=row.masked_id,
    )


@router.post(
    "/layers/{pk}/units/{number}/exemplars", response={202: ProfileOut}, summary="Ask for the exemplars of a unit"
)
def ask_for_exemplars(request: HttpRequest, pk: Id, number: Number, over: Over) -> Status[ProfileOut]:
    """Have a worker measure the unit over a dataset. Asking again is harmless; read the unit to see it done."""
    allow(request, Role.RESEARCHER, Scope.RUN)
    layer = within(pk, number)
    dataset = Dataset.objects.filter(key=over.dataset, available=True).first()
    if dataset is None:
        raise Refusal("conflict", f"No worker can use a dataset {over.dataset!r}. List the datasets for its remedy.")
    with transaction.atomic():
        unit, _ = Unit.objects.get_or_create(layer=layer, number=number)
        profile, _ = UnitProfile.objects.get_or_create(unit=unit, dataset=dataset)
        if profile.written is None:
            UnitProfile.objects.filter(pk=profile.pk).update(problem="")
            audit.record(request, Verb.EXEMPLARS_ASKED, unit, dataset=dataset.key)
            queue.ask_for_exemplars(profile.pk)
    return Status(202, next(each for each in profiles(unit) if each.dataset == dataset.key))
