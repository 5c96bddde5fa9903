"""API of label checks: list, read, start."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any, Literal

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Field, Query, Router, Schema, Status

from experiments.api.auth import authorize
from experiments.api.cursors import ListPage, Paging, page
from experiments.api.fields import Body, Id, RowNumber, RowOut, binary, find
from experiments.api.filters import read_filters, with_filters
from experiments.api.problems import Refusal
from experiments.core.actors import Actor
from experiments.core.system_names import SystemNameMasker
from experiments.core.visibility import visible_to
from experiments.display.label_checks import read_check, read_reading
from experiments.label_checks import actions, lists
from experiments.label_checks.evidence import hide_truth
from experiments.label_checks.questions import MAX_JUDGES, serve_question
from experiments.models import Label, LabelCheck, Role, Run, TokenScope, Unit
from workers.record.decoding import encode
from workers.record.evaluations import CAVEAT
from workers.record.label_checks import LabelReading, NaturalResult
from workers.record.other_tests import OtherTests

router = Router(tags=["Label checks"])
CheckState = Literal["queued", "running", "done", "unfinished", "untestable", "failed"]


class CheckIn(Body):
    """What to check: a run's conclusion, an existing label, or any text for a unit."""

    run: RowNumber | None = None
    label: RowNumber | None = None
    unit: RowNumber | None = Field(None, description="id of a unit; with `text`")
    text: str = Field("", max_length=actions.LABEL_CHARS, examples=["red balls"])
    judge: Literal["", "people"] = Field("", description="who judges natural images; empty for the default judge")
    judges: int = Field(1, ge=1, le=MAX_JUDGES, description="number of people per image, if people judge")


class CheckOut(RowOut):
    """The main scores of a check: r and AUPRC on images that the label's author never saw."""

    id: int
    text: str
    model: str | None
    layer: str | None
    unit: int | None
    dataset: str
    split: str = Field(
        description="of the dataset's images: probe; development for labels tried during a run; empty for old checks"
    )
    status: str
    reason: str
    created: datetime
    measured: datetime | None
    seconds: float
    cost: float
    pearson: float | None
    pearson_low: float | None
    pearson_high: float | None
    p_value: float | None = Field(description="of r = 0, by a permutation test")
    auprc: float | None
    auprc_low: float | None
    auprc_high: float | None
    base_rate: float | None
    generated_auc: float | None
    reading: LabelReading | None = Field(description="how the label was read; null if it was taken literally")


class CheckResultOut(CheckOut):
    """A check with all its results."""

    options: dict[str, Any]
    natural: dict[str, Any] | None
    other_tests: OtherTests | None = Field(
        description="detection by decile, hard negatives, fuzzing, intruder test and simulation score on the natural "
        "images; null for old checks"
    )
    generated: dict[str, Any] | None
    caveat: str


R, AUPRC = ("pearson", "pearson_low", "pearson_high", "p_value"), ("auprc", "auprc_low", "auprc_high")
NAMED = (*R, *AUPRC, "base_rate", "generated_auc")
SHARED = ("id", "text", "dataset", "split", "status", "reason", "created", "measured", "seconds", "cost", *NAMED)


def _describe(row: LabelCheck, names: SystemNameMasker) -> dict[str, Any]:
    """Return the main scores, and the unit if the viewer may know it."""
    place = lists.place_of(row)
    # Without the place, the label can be read but not linked to the hidden system
    if place is None or names.masks_unit(*place):
        model, layer, unit = None, None, None
    else:
        model, layer, unit = place
    return {name: getattr(row, name) for name in SHARED} | {
        "model": model,
        "layer": layer,
        "unit": unit,
        "reading": read_reading(row),
    }


@with_filters(lists.FILTERS)
class CheckFilters(Schema):
    """The filters of label checks."""


@router.get("/checks", response=ListPage[CheckOut], summary="List label checks")
def list_label_checks(request: HttpRequest, filters: Query[CheckFilters], paging: Query[Paging]) -> ListPage[CheckOut]:
    """Newest first. With `run`, all checks of its conclusion."""
    names = SystemNameMasker(authorize(request))
    rows = lists.checks_from(read_filters(filters), names).require_sense()
    return page(request, rows, ["-pk"], paging, lambda row: CheckOut(**_describe(row, names)))


@router.get("/checks/{pk}", response=CheckResultOut, summary="Read a label check")
def read_label_check(request: HttpRequest, pk: Id, full: bool = False) -> CheckResultOut:
    """`full` adds activation and answer for each natural image."""
    user = authorize(request)
    return _shape(_find(pk), SystemNameMasker(user), full=full)


def _find(pk: int) -> LabelCheck:
    return find(visible_to(LabelCheck.objects.select_related("unit__layer__model")), pk=pk)


def _shape(row: LabelCheck, names: SystemNameMasker, *, full: bool = False) -> CheckResultOut:
    found = hide_truth(read_check(row), lists.place_of(row), names)
    natural = found.natural
    tests = natural.other_tests if natural else None
    if natural is not None and not full:
        # Thousands of numbers that few callers need
        natural = replace(natural, activations=(), expected=())
    return CheckResultOut(
        **_describe(row, names),
        options=row.options,
        natural=_encode_natural(natural) if natural else None,
        other_tests=tests,
        generated=encode(found.generated) if found.generated else None,
        caveat=CAVEAT,
    )


def _encode_natural(natural: NaturalResult) -> dict[str, Any]:
    """Return the result without the other tests, which another field holds."""
    told = dict(encode(natural))
    told.pop("other_tests", None)
    return told


@router.post("/checks", response={202: CheckResultOut}, summary="Ask for a label check")
def ask_for_check(request: HttpRequest, wanted: CheckIn) -> Status[CheckResultOut]:
    """Needs the role researcher. A label of a unit is tested once, however often it is requested."""
    user = authorize(request, actions.STARTS, TokenScope.RUN)
    by, people = Actor.behind(request, user), wanted.judges if wanted.judge else 0
    if wanted.run is not None:
        check = actions.check_run(by, find(visible_to(Run.objects.all()), pk=wanted.run), people)
    elif wanted.label is not None:
        label = find(visible_to(Label.objects.all()), pk=wanted.label)
        unit = label.units.select_related("layer__model").order_by("pk").first()
        if unit is None:
            raise Refusal("invalid", f"Label {label.pk} has no unit in the catalogue any more.")
        check = actions.check_label(by, unit, label.text, people)
    elif wanted.unit is not None:
        unit = find(Unit.objects.select_related("layer__model"), pk=wanted.unit)
        check = actions.check_label(by, unit, wanted.text, people)
    else:
        raise Refusal("invalid", "Choose what to check: a run, a label, or a unit with a text.")
    return Status(202, _shape(_find(check.pk), SystemNameMasker(user)))


@router.get(
    "/checks/{pk}/images/{number}",
    response=None,
    openapi_extra=binary("image/png"),
    summary="Fetch an image to judge",
)
def fetch_judged_image(request: HttpRequest, pk: Id, number: Id) -> HttpResponseBase:
    """Needs the role reviewer. Returns a PNG while people are asked. Its key is not revealed."""
    authorize(request, Role.REVIEWER)
    return serve_question(request, pk, number)
