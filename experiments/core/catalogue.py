"""What a run may name: the models, datasets, toolsets and backbones that this installation knows, and no others.

A row of a run may come from a form, a command or a file that somebody brought. So the same is asked by the forms, when
a person has a run go on, and by the worker that claims it: nothing is read, loaded or fetched because a file names it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings

from experiments.core import compatibility, parts
from experiments.models import Backbone, Dataset, Layer, Run, VisionModelRow
from workers import registry
from workers.record.circuits import ACTIVATION_LAYER, CIRCUIT, decode_members, find_number, find_size_problem
from workers.record.tasks import TASKS

LONGEST = 80
"""Characters of a name that a sentence repeats."""


def find_unknown(run: Run) -> str:
    """What the run names and this installation does not know or offer, with the remedy; "" if there is nothing."""
    return find_unknown_part(run) or _explain_backbone(run)


def _explain_backbone(run: Run) -> str:
    """Why its backbone cannot be asked for the model that the run names; "" if it names none or one that is offered."""
    row = Backbone.objects.filter(key=run.backbone).first()
    if row is None or row.available or not run.backbone_model:
        return explain_unoffered(run, row.model_names) if row else ""
    return (
        f"The backbone “{run.backbone}” cannot be used here yet, so nobody can tell whether it offers the model "
        f"“{run.backbone_model[:LONGEST]}”. {row.remedy}".rstrip()
    )


def find_unknown_part(run: Run) -> str:
    """As `find_unknown`, but for the provider's model: on the command line any of them may be asked."""
    # A member of a family, such as hf:owner/name, is known once an admin has added it
    known = _is_named(registry.VISION_MODELS, run.model) or VisionModelRow.objects.filter(name=run.model).exists()
    checks = (
        ("" if known else no_model(run.model)) or _unknown_layer(run),
        unknown_dataset(run.options.get("dataset") or ""),
        _unknown_among("toolset", run.toolset, parts.list_toolsets()),
        _unknown_among("backbone", run.backbone, parts.list_backbones()),
        _unknown_among("task", run.task, TASKS),
    )
    return next(filter(None, checks), "") or compatibility.explain_incompatibility(run.backbone, run.toolset, run.model)


def no_model(name: str) -> str:
    there = join_names(VisionModelRow.objects.filter(available=True).values_list("name", flat=True))
    return f"There is no model “{name[:LONGEST]}”. Choose one of: {there}."


def _unknown_layer(run: Run) -> str:
    """Whether the layer has this unit and is studied in this way; what nobody has listed yet is the worker's to see."""
    if run.system_kind == CIRCUIT:
        return _explain_circuit(run)
    layers = Layer.objects.filter(model__name=run.model)
    if not layers.exists():
        return _unknown_among("system", run.system_kind, registry.SYSTEMS)
    layer = layers.filter(name=run.layer).first()
    if layer is None:
        names = join_names(layers.values_list("name", flat=True))
        return f"{run.model} has no layer “{run.layer[:LONGEST]}”. Choose one of: {names}."
    if not 0 <= run.unit < layer.units:
        return f"There is no unit {run.unit}: {run.layer} of {run.model} has units 0 to {layer.units - 1}."
    kind = registry.system_of(layer.kind)
    return "" if run.system_kind == kind else f"{run.layer} of {run.model} is studied as “{kind}”."


def _explain_circuit(run: Run) -> str:
    """Why the members that the run keeps cannot be studied; models that nobody has listed yet are the worker's to see.
    Whether the circuit is there still does not matter."""
    members = decode_members(run.options.get("members", ()))
    if problem := find_size_problem(members):
        return problem
    if (run.layer, run.unit) != (ACTIVATION_LAYER, find_number(members)):
        return f"The number {run.unit} does not stand for these members of a circuit. Ask about the circuit again."
    rows = Layer.objects.filter(model__name__in={each.model for each in members}).select_related("model")
    known = {(row.model.name, row.name): row for row in rows}
    listed = {row.model.name: row.model.base or row.model.name for row in rows}
    for each in members:
        if each.model in listed and (
            (layer := known.get((each.model, each.layer))) is None or each.unit >= layer.units
        ):
            return f"{str(each)[: 2 * LONGEST]}, a member of the circuit, is not here. Ask about a circuit without it."
        if (network := listed.get(each.model, run.model)) != run.model:
            return f"A circuit is of one network, and {str(each)[: 2 * LONGEST]} belongs to {network}, not {run.model}."
    return ""


def unknown_dataset(key: str) -> str:
    """Folders count as known once an admin has added them; "" is the dataset of the settings."""
    if not key or key == settings.LAB_DATASET or _is_named(registry.DATASETS, key):
        return ""
    return _unknown_among("dataset", key, list(Dataset.objects.values_list("key", flat=True)))


def _unknown_among(what: str, key: str, there: Any) -> str:
    return "" if key in there else f"There is no {what} “{key[:LONGEST]}”. Choose one of: {join_names(there)}."


def explain_unoffered(run: Run, offered: Sequence[str]) -> str:
    """Why the backbone is not asked for this model of its provider: it offers others. "" stands for its default."""
    if not run.backbone_model or run.backbone_model in offered:
        return ""
    return (
        f"The model “{run.backbone_model[:LONGEST]}” is not offered here: the backbone “{run.backbone}” has "
        f"{', '.join(offered) or 'no choice of models'}. An admin adds models with MAIA_OPENAI_MODELS."
    )


def _is_named(plugins: registry.Plugins, key: str) -> bool:
    """Whether it has a line of its own in the registry; families have one for all their members."""
    return key in plugins and not key.endswith(":")


def join_names(names: Any) -> str:
    return ", ".join(names) or "none yet, the worker is still loading them"
