"""Pages of units: the models, a model as layers of units, a layer, and one unit with dataset figures, runs, labels
and evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import Count, Q, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_POST, require_safe

from experiments.core import access, compatibility, worker_status
from experiments.core.access import HtmxRequest
from experiments.core.actors import Actor
from experiments.core.errors import ActionRefused
from experiments.core.system_names import SystemNameMasker
from experiments.core.visibility import visible_to
from experiments.display import verdicts
from experiments.display.answers import read_answer
from experiments.display.evidence import read_evidence
from experiments.display.form_fields import add_refusal
from experiments.display.image_cards import ImageCard
from experiments.display.label_checks import fetch_checks
from experiments.display.plots import Scale
from experiments.models import Dataset, Exemplar, Label, Layer, LayerIndex, Role, Run, Unit, UnitProfile, VisionModelRow
from experiments.runs.asking.form import read_profile
from experiments.units import actions, causal, drawing, lists
from experiments.units.forms import AskCausalCheck
from experiments.units.states import UnitState, find_dead_units, state_of
from workers.record.circuits import ACTIVATION_LAYER, CIRCUIT
from workers.record.statuses import Status

RUNS = 10
"""Newest runs of a unit that its page lists and uses as evidence."""
LABELS, MAX_LABELS = 10, 1_000
"""Newest labels that it lists, and the maximum if the address says `labels=all`."""
# JSON columns that this page does not show: not loading them makes the query smaller.
UNSHOWN = ("options", "limits", "versions")
MEASURED, CAUSAL = "measured", "causal"
"""The parts of the page that wait for a worker; htmx requests them by these ids."""
TYPED = 10_000
"""Maximum characters read of a form field."""


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """Show the models, and how much is known of each."""
    access.require(request)
    models = VisionModelRow.objects.annotate(
        layer_count=Count("layers", filter=~Q(layers__kind=CIRCUIT)), units=Sum("layers__units")
    ).order_by("pk")
    runs = dict(Run.objects.order_by().values_list("model").annotate(Count("unit")))
    units = Unit.objects.filter(labels__isnull=False, members__isnull=True).order_by()
    labelled = dict(units.values_list("layer__model").annotate(Count("pk", distinct=True)))
    rows = [
        {"model": model, "runs": runs.get(model.name, 0), "labelled": labelled.get(model.pk, 0)}
        for model in models
        # A model that only has circuits has no layer to show.
        if model.layer_count
    ]
    return render(request, "units/index.html", {"models": rows})


# --- one unit ---------------------------------------------------------------------------------------


@require_safe
def unit(request: HtmxRequest, name: str, layer_name: str, number: int) -> HttpResponse:
    """Show the whole page; htmx gets the dataset figures, or the causal check, while a worker computes them."""
    access.require(request)
    # Circuits are stored as units of a layer of their own, and have their own pages.
    if layer_name == ACTIVATION_LAYER:
        return redirect("circuit-studied", name, number)
    return _render_unit(request, lists.find_layer(name, layer_name, number), number)


@require_POST
def causal_check(request: HtmxRequest, name: str, layer_name: str, number: int) -> HttpResponse:
    """Ask a worker to change the unit, alone or with others, and measure the effect on the model's output."""
    actor = Actor.of(request, Role.RESEARCHER)
    row = lists.find_layer(name, layer_name, number)
    # A form may be sent with fields of any length.
    typed = {each: value[:TYPED] for each, value in request.POST.items() if isinstance(value, str)}
    try:
        question = causal.read_question(row, number, typed)
        check = actions.ask_for_causal_check(actor, row, typed.get("dataset", ""), question)
    except ActionRefused as refusal:
        form = AskCausalCheck(row, typed)
        add_refusal(form, refusal)
        return _render_unit(request, row, number, form, status=400)
    query = urlencode([("dataset", check.dataset.key), ("causal", str(check.pk))])
    return redirect(f"{reverse('unit', args=[name, layer_name, number])}?{query}#causal")


def _render_unit(
    request: HtmxRequest, row: Layer, number: int, form: AskCausalCheck | None = None, status: int = 200
) -> HttpResponse:
    """Render the page, with a refused form of a causal check if there is one."""
    role = access.role_in(request) or Role.VIEWER
    names = SystemNameMasker(request.user)
    context: dict[str, Any] = {
        "layer": row,
        "model": row.model,
        "number": number,
        "name": row.name_of(number),
        "may_ask": role >= Role.RESEARCHER,
        "worker": worker_status.has_worker(),
        **(_read_measured(request, row, number, names) if row.takes_images else {"exemplar_mean": None}),
    }
    # htmx polls for one part: the rest of the page is not computed then.
    if request.htmx.target == MEASURED:
        return render(request, "units/measured.html", context)
    asked, may_ask = request.GET.get("causal", ""), role >= Role.RESEARCHER
    form, dataset = form or AskCausalCheck(row), context.get("dataset")
    context["causal"] = causal.read_section(row, number, dataset, asked, may_ask=may_ask, form=form)
    if request.htmx.target == CAUSAL:
        return render(request, "units/causal.html", context)
    known = _read_known(request, row, number, context["exemplar_mean"], names)
    return render(request, "units/unit.html", context | known, status=status)


def _read_measured(request: HttpRequest, layer: Layer, number: int, names: SystemNameMasker) -> dict[str, Any]:
    """Return the unit over the requested dataset, or the one that says most."""
    datasets = list(Dataset.objects.all())
    profiles = UnitProfile.objects.filter(unit__layer=layer, unit__number=number).select_related("unit", "dataset")
    by_dataset = {profile.dataset_id: profile for profile in profiles}
    indexed = set(LayerIndex.objects.filter(layer=layer).values_list("dataset_id", flat=True))
    asked = request.GET.get("dataset", "")
    dataset = next((each for each in datasets if each.key == asked), None)
    no_dataset = asked if dataset is None else ""
    if dataset is None:  # by default one with its exemplars, one that is indexed, one that suits the model
        written = {pk for pk, profile in by_dataset.items() if profile.written}
        fitting = compatibility.dataset_for(layer.model.name)

        def rank(each: Dataset) -> tuple[bool, ...]:
            return each.pk not in written, each.pk not in indexed, each.key != fitting, not each.available

        dataset = min(datasets, key=rank, default=None)
    context: dict[str, Any] = {
        "datasets": [each for each in datasets if each.available or each.pk in by_dataset],
        "dataset": dataset,
        "no_dataset": no_dataset,
        "exemplar_mean": None,
    }
    if dataset is None:
        return context
    context["indexed"] = dataset.pk in indexed
    if dataset.pk not in indexed and dataset.pk not in by_dataset:
        return context  # a whole layer would have to be indexed: only on request
    context |= read_profile(layer, number, dataset, again=False)
    return context | _describe_profile(context, layer, names)


def _describe_profile(context: Mapping[str, Any], layer: Layer, names: SystemNameMasker) -> dict[str, Any]:
    """Return exemplars, histogram and neighbours of the profile; None if unknown."""
    profile: UnitProfile = context["profile"]
    exemplars: Sequence[Exemplar] = context["exemplars"]
    if not profile.written:
        return {"waiting": not profile.problem}
    near = lists.find_similar(profile, {each.pk: each for each in layer.model.layers.select_related("model")}, names)
    return {
        "cards": [ImageCard.exemplar(each) for each in exemplars],
        "scale": Scale.of([each.activation for each in exemplars], context["exemplar_mean"]),
        "distribution": drawing.distribution(profile.histogram, context["exemplar_mean"], profile.quantile),
        "near": near,
        "waiting": near is None,
    }


def _read_known(
    request: HttpRequest, layer: Layer, number: int, exemplar_mean: float | None, names: SystemNameMasker
) -> dict[str, Any]:
    """Return runs, labels, evidence and hypotheses."""
    viewer = access.require(request)
    of_unit = visible_to(Run.objects.filter(model=layer.model.name, layer=layer.name, unit=number))
    is_hidden = names.masks_unit(layer.model.name, layer.name, number)
    of_unit = of_unit.none() if is_hidden else of_unit
    runs = list(of_unit.select_related("owner").defer(*UNSHOWN)[:RUNS])
    statuses = dict(of_unit.order_by().values_list("status").annotate(Count("pk")))
    labels = _read_labels(request, layer, number, without_runs=is_hidden)
    # Without a profile, the threshold of a run serves as the scale.
    if exemplar_mean is None:
        exemplar_mean = next((run.exemplar_mean for run in runs if run.exemplar_mean is not None), None)
    label: Label | None = labels["label"]
    known = {state_of(status) for status in statuses}
    if label is not None:
        known.add(UnitState.LABELLED)
    if number in find_dead_units([layer.pk]).get(layer.pk, set()):
        known.add(UnitState.DEAD)
    # Functions take no images, so they have no evidence in pictures.
    evidence = read_evidence(runs, label.text if label else "", exemplar_mean) if layer.takes_images else None
    by_run = next((run for run in runs if label and run.pk == label.run_id), None)
    return labels | {
        "answer": read_answer(by_run, names, evidence=evidence) if by_run else None,
        "runs": runs,
        "verdicts": verdicts.find_verdicts(runs, viewer),
        "corrections": [] if is_hidden else verdicts.of_unit(layer.model.name, layer.name, number, viewer)[:LABELS],
        "run_count": sum(statuses.values()),
        "state": min(known, key=tuple(UnitState).index, default=UnitState.NEW),
        "evidence": evidence,
        "concluded": None if layer.takes_images else of_unit.filter(status=Status.CONCLUDED).first(),
        "hypotheses": lists.list_last_hypotheses(runs),
        "neighbours": [
            way
            for way in (("Previous", "prev", "k", number - 1), ("Next", "next", "j", number + 1))
            if 0 <= way[-1] < layer.units
        ],
        "breadcrumbs": lists.list_breadcrumbs(layer.model, layer, number),
    }


def _read_labels(request: HttpRequest, layer: Layer, number: int, *, without_runs: bool) -> dict[str, Any]:
    """Return the newest labels of the unit, and the label that sorts the evidence: the requested one, or the
    current one."""
    every = request.GET.get("labels") == "all"
    most = MAX_LABELS if every else LABELS
    rows = visible_to(Label.objects.filter(units__layer=layer, units__number=number)).order_by("-pk")
    rows = rows.filter(run=None) if without_runs else rows
    rows = rows.select_related("run").only("text", "source", "position", "scores", "label_check", "run__id")
    rows = rows.prefetch_related(fetch_checks())
    # One more than is shown tells whether there are more.
    labels = list(rows[: most + 1])
    asked = request.GET.get("label", "")
    label = next((each for each in labels if str(each.pk) == asked), None) or current(labels)
    return {"labels": labels[:most], "more_labels": len(labels) > most, "every_label": every, "label": label}


def current(labels: Sequence[Label]) -> Label | None:
    """Return the unit's current label: the first of its newest run, else the newest of all."""
    of_runs = [label for label in labels if label.run]
    newest = max((label.run_id or 0 for label in of_runs), default=0)
    # Runs may end with several labels: the first is the agent's main one.
    first = min((each for each in of_runs if each.run_id == newest), key=lambda each: each.position, default=None)
    return first or (labels[0] if labels else None)
