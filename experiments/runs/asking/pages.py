"""New query: the form, and the parts of it that answer while one types."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from experiments.api import example
from experiments.core import access, compatibility, notify, unit_names, worker_status
from experiments.core.actors import Actor
from experiments.core.errors import InvalidFields, InvalidInput
from experiments.core.params import parse_key
from experiments.core.system_names import Names
from experiments.models import Backbone, Dataset, Layer, Role, Run, Toolset, VisionModelRow
from experiments.runs import actions
from experiments.runs.asking import form as forms
from experiments.runs.forks import lineage
from workers.record import tasks

EARLIER = 3
"""Runs on the same unit that are shown beside its exemplars."""


@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest) -> HttpResponse:
    """The form; a good one becomes a run, a bad one comes back with errors beside the fields."""
    actor = Actor.of(request, Role.RESEARCHER)
    if request.method == "POST":
        form = forms.QueryForm(request.POST)
        try:
            run = actions.ask(actor, form)
        except InvalidFields:
            return render(request, "runs/asking.html", build_context(request, form, form.data))
        notify.mark_watched(run.pk)  # whoever asks reads along, as soon as the page is there
        return redirect(run)
    initial = beginning(request)
    return render(request, "runs/asking.html", build_context(request, forms.QueryForm(initial=initial), initial))


def beginning(request: HttpRequest) -> dict[str, Any]:
    """The values an untouched form starts from: a run to ask again, or a system named in the address. Raises
    PermissionDenied for a run whose system the person is to judge unseen."""
    for way in ("from", "like"):
        if run := _run_named(request.GET.get(way, "")):
            if Names(request.user).hides(run):
                raise PermissionDenied(
                    f"You are still to judge run {run.pk} unseen, and the form names what it studies. "
                    "Submit or decline your review first, or fork the run."
                )
            return forms.copy_values(run) | ({"parent": run.pk} if way == "from" else {})
    values = forms.first_choice(request.GET.get("model", ""))
    named = ("model", "layer", "unit", "task", "dataset", "toolset", "backbone", "backbone_model")
    values |= {name: request.GET[name] for name in named if name in request.GET}
    if values.get("layer"):
        task = values["task"] if values.get("task") in tasks.TASKS else tasks.USUAL
        values["question"] = ""
        with suppress(InvalidInput):  # no question fits a unit that does not exist
            layer = forms.find_layer(values.get("model") or "", values["layer"])
            number = forms.find_unit(layer, str(values.get("unit", "")))
            values["question"] = forms.suggestions(layer, number)[task]
    return values


def _run_named(number: Any) -> Run | None:
    """The run with a number that stands in an address or a form."""
    return Run.objects.filter(pk=parse_key(str(number))).first()


def differing(values: Any, names: Names) -> dict[str, Any]:
    """The run that is asked again, and what the form asks otherwise: name, what was, what is."""
    parent = _run_named(values.get("parent") or "")
    if parent is None or names.hides(parent):
        return {}
    was, now = forms.copy_values(parent), dict(values.items())
    with suppress(InvalidInput):
        layer = forms.find_layer(now.get("model") or "", now.get("layer") or "")
        now["unit"] = forms.find_unit(layer, str(now.get("unit", "")))
    pairs = ((lineage.NAMES[name], _format_value(was[name]), _format_value(now[name])) for name in was if name in now)
    changed = [(name, old or "none", new or "none") for name, old, new in pairs if old != new]
    return {"parent": parent, "changed": changed}


def _format_value(value: Any) -> str:
    """A value as a form would send it; numbers that are equal are alike."""
    text = "" if value is None else str(value)
    return text.removesuffix(".0").replace("\r\n", "\n").strip()


def build_context(request: HttpRequest, form: forms.QueryForm, values: Any) -> dict[str, Any]:
    """What the template shows beside the form."""
    names = Names(request.user)
    chosen = {name: values.get(name) for name in form.fields if name in values}
    return {
        "form": form,
        "lines": {task.key: task.line for task in tasks.TASKS.values()},
        **_build_commands(request, chosen),
        **differing(values, names),
        **_read_choices(chosen, names),
    }


@require_safe
def unit(request: HttpRequest) -> HttpResponse:
    """What is picked at this moment: whether it exists, its exemplars, and what suits a model just chosen."""
    access.require(request, Role.RESEARCHER)
    values: dict[str, Any] = request.GET.dict()
    new_model = values.get("shown_model", values.get("model")) != values.get("model")
    if new_model:
        values |= compatibility.fitting(values.get("model", ""))
    context = _read_choices(values, Names(request.user))
    context["new_model"] = new_model
    context["new_layer"] = new_model or values.get("shown_layer", values.get("layer")) != values.get("layer")
    return render(request, "runs/asking/answer.html", context)


@require_safe
def command(request: HttpRequest) -> HttpResponse:
    """The command line that asks what the form says now, and what to know of what was chosen."""
    access.require(request, Role.RESEARCHER)
    values: dict[str, Any] = request.GET.dict()
    updates = _build_commands(request, values) | _explain_choice(values) | differing(values, Names(request.user))
    return render(request, "runs/asking/command.html", {"oob": True} | updates)


def _build_commands(request: HttpRequest, values: dict[str, Any]) -> dict[str, str]:
    """The command line, and the same with curl; a model is named for a backbone that offers several."""
    model = compatibility.model_of(str(values.get("backbone") or ""), str(values.get("backbone_model") or ""))
    values = values | {"backbone_model": model}
    curl = example.curl(request.build_absolute_uri("/api/v1/runs"), "POST", forms.request_body(values))
    return {"command": forms.command_line(values), "curl": curl}


def _group_toolsets() -> dict[str, list[Toolset]]:
    """Those for people, and those that measure what a tool is worth."""
    every = list(Toolset.objects.all())
    ablations = [each for each in every if compatibility.is_ablation(each.key)]
    return {"toolsets": [each for each in every if each not in ablations], "ablations": ablations}


def _explain_choice(values: Any) -> dict[str, str]:
    """What is wrong with the tools and the backbone together, or what to know of them."""
    model, tools, backbone = (str(values.get(name) or "") for name in ("model", "toolset", "backbone"))
    tools = tools or compatibility.TOYBOX
    advice = compatibility.explain_incompatibility(backbone, tools) or compatibility.advise(model, tools, backbone)
    return {"advice": advice or forms.stray_unit(str(values.get("question") or ""), str(values.get("unit") or ""))}


def _read_choices(values: dict[str, Any], names: Names) -> dict[str, Any]:
    """All there is to choose from, what is chosen (where nobody chose, what suits the model), and the unit with its
    exemplars or what is wrong with it."""
    models = list(VisionModelRow.objects.all())
    there = [each for each in models if each.available]
    if not there:
        return {"models": [], "waiting": worker_status.is_here(), "looking": notify.read_report("catalogue")}
    model = next((each for each in there if each.name == values.get("model")), there[0])
    layers = list(model.layers.all())
    layer = next((each for each in layers if each.name == values.get("layer")), layers[-1] if layers else None)
    fitting = compatibility.fitting(model.name)
    chosen = {name: values.get(name) or fitting[name] for name in fitting}
    datasets = list(Dataset.objects.all())
    dataset = next((each for each in datasets if each.key == chosen["dataset"]), None)
    return {
        "models": there,
        "missing": [each for each in models if not each.available],
        "model": model,
        "layers": layers,
        "layer": layer,
        "datasets": datasets,
        "dataset": dataset,
        **_group_toolsets(),
        "backbones": list(Backbone.objects.all()),
        "chosen": chosen,
        **_explain_choice({"model": model.name, **chosen}),
        **read_unit(layer, values, dataset, names),
    }


def read_unit(layer: Layer | None, values: dict[str, Any], dataset: Dataset | None, names: Names) -> dict[str, Any]:
    """The unit that is meant and the newest runs on it that ended in labels, or what is wrong with it."""
    text = "" if values.get("unit") is None else str(values["unit"])
    if layer is None:
        return {"written": text, "problem": "This model has no layers."}
    try:
        number = forms.find_unit(layer, text)
    except InvalidInput as error:
        return {"written": text, "problem": str(error)}
    runs = Run.objects.filter(model=layer.model.name, layer=layer.name, unit=number, label_set__isnull=False)
    hidden = names.holds_back(layer.model.name, layer.name, number)
    context = {
        "written": unit_names.format_unit(number, layer.names),
        "number": number,
        "suggestions": forms.suggestions(layer, number),
        "earlier": [] if hidden else list(runs.distinct()[:EARLIER]),
    }
    if dataset is None or not dataset.available:
        lack = f"{dataset.label}: {dataset.remedy}" if dataset else "The worker has not looked at the datasets yet."
        return context | {"lack": lack}
    return context | forms.read_profile(layer, number, dataset, bool(values.get("again")))
