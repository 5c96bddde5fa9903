"""Build the choices of New run, the current selection, and its description."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.core import compatibility, notify, unit_names, worker_status
from experiments.core.errors import InvalidInput
from experiments.core.system_names import SystemNameMasker
from experiments.core.visibility import visible_to
from experiments.models import Backbone, Dataset, Layer, Run, Toolset, VisionModelRow
from experiments.runs.asking import form as forms
from experiments.runs.asking import questions
from experiments.runs.asking.circuits import choose_circuit
from experiments.runs.asking.estimate import estimate
from experiments.runs.asking.following import BEFORE
from experiments.runs.asking.several import find_units
from workers.record import tasks
from workers.record.circuits import ACTIVATION_LAYER, CIRCUIT

EARLIER = 3
"""Runs on the same unit that are shown beside its exemplars."""


def read_choices(values: dict[str, Any], names: SystemNameMasker) -> dict[str, Any]:
    """Return all choices, the current selection (by default what suits the model), and the unit with its exemplars or
    its error."""
    # 1. The model: the chosen one, else toybox, else the first.
    models = list(VisionModelRow.objects.all())
    there = [each for each in models if each.available]
    if not there:
        return {"models": [], "waiting": worker_status.has_worker(), "looking": notify.read_report("catalogue")}
    wanted = [values.get("model"), compatibility.TOYBOX]
    model = next((each for name in wanted for each in there if each.name == name), there[0])
    # 2. Its layer, and what suits the model.
    layers = list(model.layers.all())
    layer = next((each for each in layers if each.name == values.get("layer")), None) or _find_circuits(model, values)
    layer = layer or _suggest_layer(layers, values)
    fitting = compatibility.find_matching_plugins(model.name)
    chosen = {name: values.get(name) or fitting[name] for name in fitting}
    datasets = list(Dataset.objects.all())
    dataset = next((each for each in datasets if each.key == chosen["dataset"]), None)
    # 3. The unit and the task.
    unit = read_unit(layer, values, dataset, names)
    task = tasks.find_task(str(values.get("task") or tasks.DEFAULT_TASK)).key
    asked = {**values, **chosen, "model": model.name, "task": task}
    return {
        "models": there,
        "missing": [each for each in models if not each.available],
        "model": model,
        "layers": layers,
        "layer": layer,
        "takes_images": layer is None or layer.takes_images,
        "datasets": datasets,
        "dataset": dataset,
        **_group_toolsets(),
        "backbones": list(Backbone.objects.all()),
        "chosen": chosen,
        "task": task,
        "tasks": tasks.TASKS.values(),
        "before": {name: values.get(name, "") for name in BEFORE},
        "advice": explain_choice(asked, unit.get("numbers", [])),
        # With an invalid unit, the estimate is still that of one run.
        "estimate": estimate(asked, len(unit.get("numbers", [])) or 1),
        "asked_circuit": choose_circuit(layer, unit.get("number"), values.get("circuit")),
        **unit,
    }


def _find_circuits(model: VisionModelRow, values: dict[str, Any]) -> Layer | None:
    """Return the layer under which the model's circuits are studied, if the form names it."""
    rows = Layer.with_circuits.filter(model=model, kind=CIRCUIT)
    return rows.first() if values.get("layer") == ACTIVATION_LAYER else None


def _suggest_layer(layers: Sequence[Layer], values: dict[str, Any]) -> Layer | None:
    """Return the layer to select: that of the classes if the task is about them, else the deepest convolutional one,
    else the last; of functions and of synthetic neurons the first."""
    wanted = forms.LOGIT if tasks.find_task(str(values.get("task") or "")).of_classes else "conv"
    if layers and (not layers[0].takes_images or compatibility.tells_truth(layers[0].model.name)):
        return layers[0]
    return next((each for each in reversed(layers) if each.kind == wanted), layers[-1] if layers else None)


def _group_toolsets() -> dict[str, list[Toolset]]:
    """Return the toolsets for people, and those that measure the value of a tool."""
    every = list(Toolset.objects.all())
    ablations = [each for each in every if compatibility.is_ablation(each.key)]
    return {"toolsets": [each for each in every if each not in ablations], "ablations": ablations}


def explain_choice(values: Any, units: Sequence[int]) -> str:
    """Return what is wrong with tools and backbone together, or a hint about them or the question; "" for neither."""
    model, tools, backbone = (str(values.get(name) or "") for name in ("model", "toolset", "backbone"))
    tools = tools or compatibility.TOYBOX
    advice = compatibility.explain_incompatibility(backbone, tools, model)
    advice = advice or compatibility.advise(model, tools, backbone)
    return advice or questions.find_stray_unit(str(values.get("question") or ""), units)


def read_unit(
    layer: Layer | None, values: dict[str, Any], dataset: Dataset | None, names: SystemNameMasker
) -> dict[str, Any]:
    """Return the selected units, and the newest runs on the first that ended in labels; or the error."""
    text = "" if values.get("unit") is None else str(values["unit"])
    if layer is None:
        return {"written": text, "problem": "This model has no layers.", "unit_names": []}
    # The names of synthetic neurons are what a run is to find
    shown = [] if compatibility.tells_truth(layer.model.name) else layer.names
    try:
        numbers = find_units(layer, text, names)
    except InvalidInput as error:
        return {"written": text, "problem": str(error), "unit_names": shown}
    number = numbers[0]
    asked = Run.objects.filter(model=layer.model.name, layer=layer.name, unit=number, label_set__units__isnull=False)
    runs = visible_to(asked)
    # Earlier runs would reveal the name of the neuron.
    hidden = names.masks_unit(layer.model.name, layer.name, number)
    context = {
        "written": unit_names.format_unit(number, shown) if len(numbers) == 1 else text,
        "unit_names": shown,
        "name": layer.name_of(number) if shown else "",
        "number": number,
        "numbers": numbers,
        "suggestions": questions.suggestions(layer, numbers),
        "earlier": [] if hidden else list(runs.distinct()[:EARLIER]),
    }
    if not layer.takes_images:
        return context
    # A function needs no images; anything else has no exemplars without a dataset.
    if dataset is None or not dataset.available:
        lack = f"{dataset.label}: {dataset.remedy}" if dataset else "The worker has not looked at the datasets yet."
        return context | {"lack": lack}
    return context | forms.read_profile(layer, number, dataset, bool(values.get("again")))
