"""Units (one channel, neuron, logit or synthetic neuron of a layer): figures, exemplars, similar units, labels."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Annotated, Any

from django.db import transaction
from django.db.models import Avg, Prefetch, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Field, Query, Router, Schema, Status
from pydantic import StringConstraints

from experiments.api.auth import authorize
from experiments.api.cursors import ListPage, Paging, page
from experiments.api.fields import NO_NUL, Body, Id, Name, Number, RowNumber, RowOut, UnitNumber, Words, find
from experiments.api.filters import read_filters, with_filters
from experiments.api.idempotency import answer_once
from experiments.api.problems import Refusal
from experiments.api.versions import must_match
from experiments.core.actors import Actor
from experiments.core.system_names import SystemNameMasker
from experiments.core.visibility import visible_to
from experiments.models import Exemplar, Label, Layer, Role, Run, TokenScope, Unit, UnitProfile
from experiments.units import actions, lists
from experiments.units.lists import SimilarUnits, find_similar
from workers.record.experiments import ActivationMap

router = Router(tags=["Units"])
LABELLED = ["Labels"]
MAX_LABEL_CHARS = 500
Text = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_LABEL_CHARS, pattern=NO_NUL)
]


class NamedUnit(Schema):
    """A unit, and its labels."""

    model: str
    layer: str
    layer_id: int
    number: int
    name: str
    labels: list[str]


class UnitOut(NamedUnit):
    """A unit that was asked about."""

    id: int


class ProfileOut(RowOut):
    """What a unit does over a dataset. `written` is null until a worker has measured it."""

    dataset: str = Field(validation_alias="dataset.key")
    quantile: float | None
    mean: float | None
    maximum: float | None
    active: float | None
    exemplar_mean: float | None
    histogram: dict[str, Any]
    written: datetime | None
    problem: str


class UnitDetail(NamedUnit):
    """A unit, asked about or not."""

    runs: int
    profiles: list[ProfileOut]


class ExemplarOut(RowOut):
    """A dataset image with a maximal activation of the unit, raw and masked."""

    dataset: str = Field(validation_alias="profile.dataset.key")
    rank: int
    activation: float
    image: str = Field(validation_alias="image_id")
    masked: str = Field(validation_alias="masked_id")
    map: ActivationMap | None = Field(
        validation_alias="activation_map", description="where it drives the unit; null where it was not kept"
    )


@with_filters(lists.UNIT_FILTERS)
class UnitFilters(Schema):
    """The filters of units."""


class Over(Body):
    """A dataset, by its key."""

    dataset: Name


def _name_unit(layer: Layer, number: int, unit: Unit | None, *, is_hidden: bool) -> dict[str, Any]:
    """Return the unit's place and labels; without labels of runs if the caller has yet to judge the unit blind."""
    labels = unit.labels.all() if unit else ()
    return {
        "model": layer.model.name,
        "layer": layer.name,
        "layer_id": layer.pk,
        "number": number,
        "name": layer.name_of(number),
        "labels": [label.text for label in labels if not (is_hidden and label.run_id)],
    }


def _list_units_with_labels() -> QuerySet[Unit]:
    # The prefetch applies visibility too: a unit is public, but labels from private projects are not.
    labels = Prefetch("labels", queryset=visible_to(Label.objects.all()))
    return Unit.objects.filter(members__isnull=True).select_related("layer__model").prefetch_related(labels)


def _unit_out(names: SystemNameMasker, unit: Unit) -> UnitOut:
    is_hidden = names.masks_unit(unit.layer.model.name, unit.layer.name, unit.number)
    return UnitOut(id=unit.pk, **_name_unit(unit.layer, unit.number, unit, is_hidden=is_hidden))


@router.get("/units", response=ListPage[UnitOut], summary="Find units")
def list_units(request: HttpRequest, filters: Query[UnitFilters], paging: Query[Paging]) -> ListPage[UnitOut]:
    """List units that were asked about, by model, layer, number and words of their labels."""
    names = SystemNameMasker(authorize(request))
    rows = lists.units_from(_list_units_with_labels(), read_filters(filters), names).require_sense()
    return page(request, rows.distinct(), ["pk"], paging, partial(_unit_out, names))


@router.get("/layers/{pk}/units/{number}", response=UnitDetail, summary="Read a unit")
def read_unit(request: HttpRequest, pk: Id, number: Number) -> UnitDetail:
    """Read any unit of the layer, with its figures over each requested dataset."""
    names = SystemNameMasker(authorize(request))
    layer = find_layer(pk, number)
    is_hidden = names.masks_unit(layer.model.name, layer.name, number)
    unit = _list_units_with_labels().filter(layer=layer, number=number).first()
    runs = visible_to(Run.objects.filter(model=layer.model.name, layer=layer.name, unit=number)).count()
    return UnitDetail(
        runs=0 if is_hidden else runs,
        profiles=profiles(unit) if unit else [],
        **_name_unit(layer, number, unit, is_hidden=is_hidden),
    )


def find_layer(pk: int, number: int) -> Layer:
    """Return the layer, if it has such a unit."""
    layer = find(Layer.objects.select_related("model"), pk=pk)
    if number >= layer.units:
        raise Refusal("missing", f"There is no unit {number}: {layer.name} has units 0 to {layer.units - 1}.")
    return layer


def profiles(unit: Unit) -> list[ProfileOut]:
    """Return the profiles over each requested dataset."""
    rows = UnitProfile.objects.filter(unit=unit).select_related("dataset")
    return [ProfileOut.from_orm(row) for row in rows.annotate(exemplar_mean=Avg("exemplars__activation"))]


@router.get(
    "/layers/{pk}/units/{number}/exemplars", response=ListPage[ExemplarOut], summary="List the exemplars of a unit"
)
def list_exemplars(
    request: HttpRequest, pk: Id, number: Number, paging: Query[Paging], dataset: Words | None = None
) -> ListPage[ExemplarOut]:
    """Strongest first. Empty until a worker has written them: request that with POST."""
    authorize(request)
    layer = find_layer(pk, number)
    rows = Exemplar.objects.filter(profile__unit__layer=layer, profile__unit__number=number)
    if dataset is not None:
        rows = rows.filter(profile__dataset__key=dataset)
    return page(request, rows.select_related("profile__dataset"), ["profile_id", "rank"], paging, ExemplarOut.from_orm)


@router.post(
    "/layers/{pk}/units/{number}/exemplars", response={202: ProfileOut}, summary="Ask for the exemplars of a unit"
)
def ask_for_exemplars(request: HttpRequest, pk: Id, number: Number, over: Over) -> Status[ProfileOut]:
    """Ask a worker to measure the unit over a dataset. Asking again is harmless; read the unit to see when it is
    done."""
    actor = Actor.behind(request, authorize(request, Role.RESEARCHER, TokenScope.RUN))
    profile = actions.ask_for_exemplars(actor, find_layer(pk, number), number, over.dataset)
    # Read it again: the response has the mean of the exemplars, which the query annotates.
    return Status(202, next(each for each in profiles(profile.unit) if each.dataset == over.dataset))


# --- similar units ----------------------------------------------------------------------------------


class SimilarUnitOut(RowOut):
    """Another unit, with its similarity."""

    layer_id: int = Field(validation_alias="layer.pk")
    layer: str = Field(validation_alias="layer.name")
    number: int
    similarity: float
    shared: int = Field(description="exemplars that both have")
    labels: list[str]


class SimilarUnitsOut(Schema):
    """`looking` is true while a worker compares the units: read it again in a moment."""

    looking: bool
    measure: str
    images: int = Field(description="that the units were compared over")
    same: list[SimilarUnitOut] = Field(description="of the same layer, the most similar first")
    others: list[SimilarUnitOut] = Field(description="of other layers")
    problem: str


NOTHING_YET = SimilarUnits("", 0, 0, (), ())


@router.get(
    "/layers/{pk}/units/{number}/similar", response=SimilarUnitsOut, summary="Read the units most similar to one"
)
def read_similar_units(request: HttpRequest, pk: Id, number: Number, dataset: Name) -> SimilarUnitsOut:
    """Needs the unit's exemplars over the dataset: request those first."""
    names = SystemNameMasker(authorize(request))
    layer = find_layer(pk, number)
    profile = UnitProfile.objects.filter(
        unit__layer=layer, unit__number=number, dataset__key=dataset, written__isnull=False
    ).first()
    if profile is None:
        raise Refusal("missing", f"Unit {number} was not measured over {dataset!r}. Ask for its exemplars with POST.")
    found = find_similar(profile, {each.pk: each for each in layer.model.layers.select_related("model")}, names)
    return SimilarUnitsOut(looking=found is None, **vars(found or NOTHING_YET))


# --- labels -----------------------------------------------------------------------------------------


class UnitPlace(Body):
    """A unit, by its layer and number."""

    layer_id: RowNumber
    number: UnitNumber


class LabelText(Body):
    text: Text


class LabelIn(LabelText):
    """A label for one or several units."""

    units: list[UnitPlace] = Field(min_length=1, max_length=100)


class LabelOut(Schema):
    """A short text that says what units respond to, with its source."""

    id: int
    text: str
    source: str
    run: int | None
    scores: dict[str, Any]
    units: list[UnitPlace] = Field(description="none while you are to judge a run on them unseen")


@with_filters(lists.LABEL_FILTERS)
class LabelFilters(Schema):
    """The filters of labels."""


LABELS = Label.objects.select_related("run").prefetch_related("units")


def _label_out(row: Label, names: SystemNameMasker | None = None) -> LabelOut:
    is_hidden = bool(names and row.run and names.is_masked(row.run))
    places = [] if is_hidden else sorted((unit.layer_id, unit.number) for unit in row.units.all())
    return LabelOut(
        id=row.pk,
        text=row.text,
        source=row.source,
        run=row.run_id,
        scores=row.scores,
        units=[UnitPlace(layer_id=layer, number=number) for layer, number in places],
    )


@router.get("/labels", response=ListPage[LabelOut], summary="List labels", tags=LABELLED)
def list_labels(request: HttpRequest, filters: Query[LabelFilters], paging: Query[Paging]) -> ListPage[LabelOut]:
    """Newest first."""
    names = SystemNameMasker(authorize(request))
    rows = lists.labels_from(LABELS.all(), read_filters(filters), names).require_sense()
    return page(request, rows, ["-pk"], paging, partial(_label_out, names=names))


@router.get("/labels/{pk}", response=LabelOut, summary="Read a label", tags=LABELLED)
def read_label(request: HttpRequest, pk: Id) -> LabelOut:
    names = SystemNameMasker(authorize(request))
    return _label_out(find(visible_to(LABELS.all()), pk=pk), names)


@router.post("/labels", response={201: LabelOut}, summary="Create a label", tags=LABELLED)
def create_label(request: HttpRequest, label: LabelIn, response: HttpResponse) -> Status[dict[str, Any]]:
    """Create your own label, beside those of runs and imports."""
    user = authorize(request, Role.RESEARCHER, TokenScope.WRITE)

    def make() -> tuple[LabelOut, str]:
        places = [(find_layer(place.layer_id, place.number), place.number) for place in label.units]
        row = actions.create_label(Actor.behind(request, user), label.text, places)
        return _label_out(find(visible_to(LABELS.all()), pk=row.pk)), reverse("api:read_label", args=[row.pk])

    return Status(201, answer_once(request, response, user, make))


@router.patch("/labels/{pk}", response=LabelOut, summary="Edit a label", tags=LABELLED)
def edit_label(request: HttpRequest, pk: Id, changed: LabelText) -> LabelOut:
    """Edit your own label; admins may edit any. Needs the label's ETag in If-Match, so that no other edit is lost."""
    actor = Actor.behind(request, authorize(request, Role.RESEARCHER, TokenScope.WRITE))
    with transaction.atomic():
        row = actions.lock_label(actor, pk)
        must_match(request, _label_out(row))
        actions.edit_label(actor, row, changed.text)
    return _label_out(find(visible_to(LABELS.all()), pk=pk))


@router.delete("/labels/{pk}", response={204: None}, summary="Delete a label", tags=LABELLED)
def delete_label(request: HttpRequest, pk: Id) -> Status[None]:
    """Delete your own label; admins may delete any. Needs its ETag too."""
    actor = Actor.behind(request, authorize(request, Role.RESEARCHER, TokenScope.WRITE))
    with transaction.atomic():
        row = actions.lock_label(actor, pk)
        must_match(request, _label_out(row))
        actions.delete_label(actor, row)
    return Status(204, None)
