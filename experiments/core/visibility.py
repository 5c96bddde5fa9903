"""Hide rows from people who still have to answer for themselves. Pages, API, search, sockets and files all use
`visible_to`; nothing else decides.

People write labels of some units of an evaluation. Until they have finished, what others found of these units is
hidden from everyone, since every researcher may write them: runs with all that they logged, labels, checks, items.

People judge images for the label check. Until they have finished, the sources of these images are hidden from those
who may judge; otherwise they could recognise control images.

`blindness` decides who may review which run and whose opinions they read; `system_names` decides how a system is
named.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import Exists, Model, OuterRef, Q, QuerySet
from django.http import HttpRequest

from experiments.core.compatibility import PERSON
from experiments.models import (
    ConceptQuestion,
    EvaluationItem,
    Experiment,
    Hypothesis,
    Image,
    Label,
    LabelCheck,
    Member,
    Observation,
    Pair,
    Review,
    ReviewItem,
    Role,
    Run,
    SearchText,
    Thread,
    Unit,
    WebhookDelivery,
)
from experiments.models.search_text import TextKind
from workers.record.statuses import ENDED

Row = TypeVar("Row", bound=Model)
RUN_OF: Mapping[type[Model], str] = {
    Run: "pk",
    Experiment: "run",
    Observation: "run",
    Hypothesis: "run",
    Thread: "run",
    SearchText: "run",
    ReviewItem: "run",
    Review: "item__run",
    Label: "run",
    WebhookDelivery: "run",
}
"""Table -> the path to the run of its rows."""
UNIT_OF: Mapping[type[Model], str] = {
    Label: "units",
    Label.units.through: "unit",
    LabelCheck: "unit",
    EvaluationItem: "unit",
    Pair: "unit",
    Unit: "pk",
}
"""Table -> the path to the unit of its rows. Units themselves are hidden in lists that are chosen by labels."""
RUN_IN_ROUTE = re.compile(r"(?:^|/)runs/<(?:int:)?(\w+)>")


@dataclass(frozen=True)
class _Written:
    """A run in which a person writes a label of a unit for an evaluation."""

    run: int
    unit: int | None
    place: tuple[str, str, int]


def list_images(rows: QuerySet[Image], viewer: User) -> QuerySet[Image]:
    """Return the images whose source this person may see: none that they may still be asked to judge."""
    is_judge = Exists(Member.objects.filter(user=viewer, role__gte=Role.REVIEWER))
    asked = ConceptQuestion.objects.filter(image=OuterRef("pk"), label_check__waits_for_people=True)
    return rows.exclude(is_judge & Exists(asked))


def visible_to(rows: QuerySet[Row]) -> QuerySet[Row]:
    """Return the rows without those of units that people write labels of. If no person writes, the query is
    unchanged; the check costs one query."""
    # Hardly ever does a person write: all lists keep their plain queries.
    if not (written := _read_written()):
        return rows
    if way := RUN_OF.get(rows.model):
        rows = rows.exclude(**{f"{way}__in": _list_hidden_runs(written)})
    units = [each.unit for each in written if each.unit]
    # Labels of a unit need not have a run: their passages are found by the label.
    if rows.model is SearchText:
        labels = Label.objects.filter(units__in=units).order_by().values("pk")
        rows = rows.exclude(kind=TextKind.LABEL, anchor__in=labels)
    if way := UNIT_OF.get(rows.model):
        hidden = Q(**{f"{way}__in": units})
        if rows.model is EvaluationItem:  # the items that people write are listed, so that they find them
            hidden &= ~Q(run__in=[each.run for each in written])
        rows = rows.exclude(hidden)
    return rows


def list_written() -> QuerySet[Run]:
    """Return the runs in which people write labels for an evaluation, until they have ended."""
    return Run.objects.filter(pk__in=_list_open_items().order_by().values("run")).order_by()


def list_written_units() -> list[int]:
    """Return the keys of the units that people write labels of."""
    return [each.unit for each in _read_written() if each.unit]


def _list_open_items() -> QuerySet[EvaluationItem]:
    return EvaluationItem.objects.filter(source=PERSON, run__isnull=False).exclude(run__status__in=ENDED)


def _read_written() -> list[_Written]:
    columns = ("run_id", "unit_id", "run__model", "run__layer", "run__unit")
    rows = _list_open_items().order_by().values_list(*columns)
    return [_Written(run, unit, (model, layer, number)) for run, unit, model, layer, number in rows]


def _list_hidden_runs(written: Sequence[_Written]) -> list[int]:
    """Return the runs on the systems that people write about, without the runs in which they write."""
    places = {each.place for each in written}
    models, layers, units = (set(each) for each in zip(*places, strict=True))
    near = Run.objects.filter(model__in=models, layer__in=layers, unit__in=units)
    found = near.exclude(pk__in=[each.run for each in written]).order_by().values_list("pk", "model", "layer", "unit")
    # The query matches every mix of these values; keep the places themselves.
    return [pk for pk, *place in found if tuple(place) in places]


def check_route(request: HttpRequest) -> None:
    """Raise PermissionDenied if the address names a hidden run, on any page or API call."""
    match = request.resolver_match
    found = RUN_IN_ROUTE.search(match.route) if match else None
    if match is None or found is None:
        return
    run: Any = match.kwargs[found[1]]
    written = _read_written()
    if written and int(run) in _list_hidden_runs(written):
        raise PermissionDenied(
            f"People write labels of the unit of run {run} for an evaluation. What others found of it is shown once "
            "they have finished."
        )
