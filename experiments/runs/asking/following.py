"""Find the fields that change with a model or a task that was just chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.core import compatibility
from experiments.models import Layer
from experiments.runs.asking import form as forms
from experiments.runs.asking.several import find_chosen_layer
from workers.record import tasks
from workers.record.circuits import ACTIVATION_LAYER
from workers.record.tasks import Task

_PLACE = ("model", "layer", "unit")
BEFORE = tuple(f"{name}_before" for name in _PLACE)
"""The selection before a task led to the classes or to the functions: another task leads back."""


def follow(values: dict[str, Any]) -> dict[str, Any]:
    """Return other fields that change with the chosen model or task, including all that suits another model. Empty if
    none does."""
    if values.get("layer") == ACTIVATION_LAYER:  # the circuit is what is asked about, whatever the task
        return {}
    shown = values.get("shown_model", values.get("model"))
    moved = (_follow_model(values) if values.get("model") != shown else {}) or _follow_task(values)
    model = str(moved.get("model", values.get("model")) or "")
    # Only for another model: what the user chose for this one stays.
    return moved | (compatibility.find_matching_plugins(model) if model != shown else {})


def match_task(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the task for the model, if the named one does not fit."""
    calls_functions = compatibility.has_functions(str(values.get("model") or ""))
    if tasks.find_task(str(values.get("task") or "")).of_functions == calls_functions:
        return {}
    return {"task": tasks.FUNCTION if calls_functions else tasks.DEFAULT_TASK}


def _follow_model(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what follows from a new model: a task that fits it, and the selection to return to."""
    moved = match_task(values)
    if moved.get("task") != tasks.FUNCTION:
        return moved | dict.fromkeys(BEFORE, "") if moved else {}
    # Kept, so that another task leads back to it.
    home = (values["shown_model"], values.get("shown_layer", ""), values.get("unit", ""))
    return moved | dict(zip(BEFORE, home, strict=True))


def _follow_task(values: dict[str, Any]) -> dict[str, Any]:
    """Return what follows from a new task: a selection of the layer that it needs, or the way back."""
    task, shown = (tasks.find_task(str(values.get(name) or "")) for name in ("task", "shown_task"))
    layer = find_chosen_layer(values)
    if layer is None or not values.get("shown_task") or task == shown:
        return {}
    # Where the user was before a task led elsewhere.
    home = _find_home(values, layer, shown)
    target, at_home = _find_own_layer(task, str(home["model"])), find_chosen_layer(home)
    # The task needs another layer than the user's own.
    if target and not (at_home and at_home.kind == target.kind):
        found = {"model": target.model.name, "layer": target.name, "unit": "0"}
        return found | {f"{name}_before": home[name] for name in _PLACE}
    is_there = all(home[name] == values.get(name, "") for name in _PLACE)
    return {} if is_there else home | dict.fromkeys(BEFORE, "")


def _find_own_layer(task: Task, model: str) -> Layer | None:
    """Return the layer that a task needs; None if any will do, or there is none."""
    if task.of_classes:
        return forms.class_layer(model)
    rows = Layer.objects.select_related("model").filter(model__available=True, kind=tasks.FUNCTION)
    # By name backwards, so that "functions" comes before published ones, "find:…"
    return rows.order_by("-model__name", "position").first() if task.of_functions else None


def _find_home(values: Mapping[str, Any], layer: Layer, shown: Task) -> dict[str, Any]:
    """Return the model, layer and unit that the user chose, rather than those that the task led to."""
    led = (shown.of_classes and layer.kind == forms.LOGIT) or (shown.of_functions and not layer.takes_images)
    if led and values.get("layer_before"):
        usual = {"model": values["model"], "layer": "", "unit": "0"}
        return {name: values.get(f"{name}_before") or usual[name] for name in _PLACE}
    home = values if layer.takes_images else forms.get_first_choice()
    return {name: home.get(name, "") for name in _PLACE}
