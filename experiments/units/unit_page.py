"""The page of one unit: what a dataset says of it, neighbours, runs and labels, what speaks for and against."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from experiments.core import access, compatibility, worker_status
from experiments.core.access import HtmxRequest
from experiments.core.system_names import Names
from experiments.display import verdicts
from experiments.display.image_cards import ImageCard
from experiments.display.plots import Scale
from experiments.models import Dataset, Exemplar, Label, Layer, LayerIndex, Run, UnitProfile, VisionModelRow
from experiments.models.member import Role
from experiments.runs.asking import pages
from experiments.units.distribution import distribution
from experiments.units.evidence import evidence, last_hypotheses
from experiments.units.pages import crumbs, find_layer
from experiments.units.similar import neighbours
from experiments.units.states import State, dead, state_of
from workers.record import tasks

RUNS = 10
"""Runs of a unit that its page lists and takes evidence from, the newest."""
LABELS, MOST_LABELS = 10, 1_000
"""Labels that it lists, the newest; all of them, or so many, where the address says `labels=all`."""
UNSHOWN = ("options", "limits", "versions", "conclusion")
MEASURED = "measured"
"""The part of the page that waits for a worker; htmx asks for it by this id."""


@require_safe
def page(request: HtmxRequest, name: str, layer_name: str, number: int) -> HttpResponse:
    """The whole page; htmx is sent what the dataset says, while a worker finds that out."""
    role = access.role_of(access.require(request)) or Role.VIEWER
    row = find_layer(name, layer_name, number)
    context: dict[str, Any] = {"layer": row, "model": row.model, "number": number, "name": row.name_of(number)}
    context |= {"may_ask": role >= Role.RESEARCHER, "worker": worker_status.is_here()}
    names = Names(request.user)
    context |= measured(request, row, number, names)
    if request.htmx.target == MEASURED:
        return render(request, "units/measured.html", context)
    return render(request, "units/unit.html", context | known(request, row, number, context["threshold"], names))


# --- what a dataset says ----------------------------------------------------------------------------


def measured(request: HttpRequest, layer: Layer, number: int, names: Names) -> dict[str, Any]:
    """The unit over the dataset that is asked for, or the one that says most."""
    datasets = list(Dataset.objects.all())
    profiles = UnitProfile.objects.filter(unit__layer=layer, unit__number=number).select_related("unit", "dataset")
    by_dataset = {profile.dataset_id: profile for profile in profiles}
    indexed = set(LayerIndex.objects.filter(layer=layer).values_list("dataset_id", flat=True))
    asked = request.GET.get("dataset", "")
    dataset = next((each for each in datasets if each.key == asked), None)
    no_dataset = asked if dataset is None else ""
    dataset = dataset or telling(datasets, by_dataset, indexed, layer.model)
    context: dict[str, Any] = {
        "datasets": [each for each in datasets if each.available or each.pk in by_dataset],
        "dataset": dataset,
        "no_dataset": no_dataset,
        "raw": request.GET.get("shown") == "raw",
        "threshold": None,
    }
    if dataset is None:
        return context
    context["indexed"] = dataset.pk in indexed
    if dataset.pk not in indexed and dataset.pk not in by_dataset:
        return context  # a whole layer would have to be indexed: somebody has to want that
    context |= pages.profiled(layer, number, dataset, again=False)
    return context | shown(context["profile"], context["exemplars"], layer, names, context)


def telling(
    datasets: Sequence[Dataset], profiles: dict[int, UnitProfile], indexed: set[int], model: VisionModelRow
) -> Dataset | None:
    """The dataset that a page shows unasked: one with its exemplars, one that is indexed, one that suits the model."""
    written = {pk for pk, profile in profiles.items() if profile.written}
    fitting = compatibility.dataset_for(model.name)

    def rank(each: Dataset) -> tuple[bool, bool, bool, bool]:
        return each.pk not in written, each.pk not in indexed, each.key != fitting, not each.available

    return min(datasets, key=rank, default=None)


def shown(
    profile: UnitProfile, exemplars: Sequence[Exemplar], layer: Layer, names: Names, context: dict[str, Any]
) -> dict[str, Any]:
    """Exemplars, histogram and neighbours; None where they are not known yet."""
    threshold = context["threshold"]
    if not profile.written:
        return {"waiting": not profile.problem}
    near = neighbours(profile, {each.pk: each for each in layer.model.layers.select_related("model")}, names)
    return {
        "cards": [
            ImageCard.exemplar(
                each.rank, each.activation, each.image_id, each.image_id if context["raw"] else each.masked_id
            )
            for each in exemplars
        ],
        "scale": Scale.of([each.activation for each in exemplars], threshold),
        "distribution": distribution(profile.histogram, threshold, profile.quantile),
        "near": near,
        "waiting": near is None,
    }


# --- what runs and people say --------------------------------------------------------------------------


def known(request: HttpRequest, layer: Layer, number: int, threshold: float | None, names: Names) -> dict[str, Any]:
    """Runs, labels, evidence and hypotheses."""
    viewer = access.require(request)
    of_unit = Run.objects.filter(model=layer.model.name, layer=layer.name, unit=number)
    is_hidden = names.holds_back(layer.model.name, layer.name, number)
    of_unit = of_unit.none() if is_hidden else of_unit
    runs = list(of_unit.select_related("owner").defer(*UNSHOWN)[:RUNS])
    statuses = dict(of_unit.order_by().values_list("status").annotate(Count("pk")))
    labels = labelled(request, layer, number, without_runs=is_hidden)
    if threshold is None:
        threshold = next((run.threshold for run in runs if run.threshold is not None), None)
    is_dead = number in dead([layer.pk]).get(layer.pk, set())
    label: Label | None = labels["label"]
    return labels | {
        "runs": runs,
        "verdicts": verdicts.of(runs, viewer),
        "corrections": [] if is_hidden else verdicts.of_unit(layer.model.name, layer.name, number, viewer)[:LABELS],
        "run_count": sum(statuses.values()),
        "state": state(statuses, is_labelled=label is not None, is_dead=is_dead),
        "evidence": evidence(runs, label.text if label else "", threshold),
        "hypotheses": last_hypotheses(runs),
        "before": number - 1 if number else None,
        "after": number + 1 if number + 1 < layer.units else None,
        "crumbs": crumbs(layer.model, layer, number),
    }


def labelled(request: HttpRequest, layer: Layer, number: int, *, without_runs: bool) -> dict[str, Any]:
    """The newest labels of the unit, and the one that evidence is sorted by: the one asked for, or the current one."""
    every = request.GET.get("labels") == "all"
    most = MOST_LABELS if every else LABELS
    rows = Label.objects.filter(units__layer=layer, units__number=number).order_by("-pk")
    rows = rows.filter(run=None) if without_runs else rows
    rows = rows.select_related("run").only("text", "source", "position", "scores", "run__task")
    labels = list(rows[: most + 1])
    asked = request.GET.get("label", "")
    label = next((each for each in labels if str(each.pk) == asked), None) or current(labels)
    return {"labels": labels[:most], "more_labels": len(labels) > most, "every_label": every, "label": label}


def current(labels: Sequence[Label]) -> Label | None:
    """The label that stands for the unit: the first of the newest run that describes it, else the newest of all.

    What other tasks conclude are verdicts, not what the unit responds to.
    """
    of_runs = [label for label in labels if label.run and tasks.named(label.run.task).tells_units]
    newest = max((label.run_id or 0 for label in of_runs), default=0)
    first = min((each for each in of_runs if each.run_id == newest), key=lambda each: each.position, default=None)
    return first or (labels[0] if labels else None)


def state(statuses: Iterable[str], *, is_labelled: bool, is_dead: bool) -> State:
    found = [state_of(status) for status in statuses]
    found += [State.LABELLED] if is_labelled else []
    found += [State.DEAD] if is_dead else []
    return min(found, key=tuple(State).index, default=State.NEW)
