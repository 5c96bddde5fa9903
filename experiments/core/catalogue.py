"""Check that the models, datasets, toolsets and backbones of a run are known to this installation.

A row of a run may come from a form, a command or an imported file. So forms check it, resuming a run checks it, and
the worker that claims the run checks it: nothing is read, loaded or downloaded because a file names it.
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

MAX_NAME_CHARS = 80
"""Maximum characters of a name that a message repeats."""


def find_unknown(run: Run) -> str:
    """Return a sentence about what the run names and this installation does not know or offer, with the remedy; ""
    if all is known."""
    return find_unknown_part(run) or _explain_backbone(run)


def _explain_backbone(run: Run) -> str:
    """Explain why the backbone cannot use the model that the run names; "" if it names none or one that is offered."""
    row = Backbone.objects.filter(key=run.backbone).first()
    # A backbone that is not ready has not listed its models.
    if row is None or row.available or not run.backbone_model:
        return explain_unoffered(run, row.model_names) if row else ""
    return (
        f"The backbone “{run.backbone}” cannot be used here yet, so it is unknown whether it offers the model "
        f"“{run.backbone_model[:MAX_NAME_CHARS]}”. {row.remedy}".rstrip()
    )


def find_unknown_part(run: Run) -> str:
    """Return the same as `find_unknown`, without a check of the provider's model: commands may use any."""
    # A member of a family, such as hf:owner/name, is known once an admin has added it.
    known = _is_named(registry.VISION_MODELS, run.model) or VisionModelRow.objects.filter(name=run.model).exists()
    checks = (
        ("" if known else describe_missing_model(run.model)) or _unknown_layer(run),
        unknown_dataset(run.options.get("dataset") or ""),
        _unknown_among("toolset", run.toolset, parts.list_toolsets()),
        _unknown_among("backbone", run.backbone, parts.list_backbones()),
        _unknown_among("task", run.task, TASKS),
    )
    return next(filter(None, checks), "") or compatibility.explain_incompatibility(run.backbone, run.toolset, run.model)


def describe_missing_model(name: str) -> str:
    there = join_names(VisionModelRow.objects.filter(available=True).values_list("name", flat=True))
    return f"There is no model “{name[:MAX_NAME_CHARS]}”. Choose one of: {there}."


def _unknown_layer(run: Run) -> str:
    """Explain why the layer lacks this unit or cannot be studied in this way. Layers that are not listed yet are
    left to the worker."""
    if run.system_kind == CIRCUIT:
        return _explain_circuit(run)
    layers = Layer.objects.filter(model__name=run.model)
    if not layers.exists():
        return _unknown_among("system", run.system_kind, registry.SYSTEMS)
    layer = layers.filter(name=run.layer).first()
    if layer is None:
        names = join_names(layers.values_list("name", flat=True))
        return f"{run.model} has no layer “{run.layer[:MAX_NAME_CHARS]}”. Choose one of: {names}."
    if not 0 <= run.unit < layer.units:
        return f"There is no unit {run.unit}: {run.layer} of {run.model} has units 0 to {layer.units - 1}."
    kind = registry.system_of(layer.kind)
    return "" if run.system_kind == kind else f"{run.layer} of {run.model} is studied as “{kind}”."


def _explain_circuit(run: Run) -> str:
    """Explain why the members of the run's circuit cannot be studied. Models that are not listed yet are left to
    the worker. The circuit itself may have been deleted."""
    members = decode_members(run.options.get("members", ()))
    if problem := find_size_problem(members):
        return problem
    # The number is computed from the members: if they disagree, the row was made or edited elsewhere.
    if (run.layer, run.unit) != (ACTIVATION_LAYER, find_number(members)):
        return f"The number {run.unit} does not stand for these members of a circuit. Ask about the circuit again."
    rows = Layer.objects.filter(model__name__in={each.model for each in members}).select_related("model")
    known = {(row.model.name, row.name): row for row in rows}
    listed = {row.model.name: row.model.base or row.model.name for row in rows}
    for each in members:
        if each.model in listed and (
            (layer := known.get((each.model, each.layer))) is None or each.unit >= layer.units
        ):
            name = str(each)[: 2 * MAX_NAME_CHARS]
            return f"{name}, a member of the circuit, is not here. Ask about a circuit without it."
        if (network := listed.get(each.model, run.model)) != run.model:
            name = str(each)[: 2 * MAX_NAME_CHARS]
            return f"A circuit is of one network, and {name} belongs to {network}, not {run.model}."
    return ""


def unknown_dataset(key: str) -> str:
    """Explain why the dataset is unknown; "" if it is known. A folder is known once an admin has added it; "" is
    the dataset of the settings."""
    if not key or key == settings.LAB_DATASET or _is_named(registry.DATASETS, key):
        return ""
    return _unknown_among("dataset", key, list(Dataset.objects.values_list("key", flat=True)))


def _unknown_among(what: str, key: str, there: Any) -> str:
    return "" if key in there else f"There is no {what} “{key[:MAX_NAME_CHARS]}”. Choose one of: {join_names(there)}."


def explain_unoffered(run: Run, offered: Sequence[str]) -> str:
    """Explain that the backbone's provider offers other models than this run names; "" if it offers it. The model
    "" is the default."""
    if not run.backbone_model or run.backbone_model in offered:
        return ""
    return (
        f"The model “{run.backbone_model[:MAX_NAME_CHARS]}” is not offered here: the backbone “{run.backbone}” has "
        f"{', '.join(offered) or 'no choice of models'}. An admin adds models with MAIA_OPENAI_MODELS."
    )


def _is_named(plugins: registry.Plugins, key: str) -> bool:
    """True if the registry lists this very key. A family, such as hf:, has one entry for all its members."""
    return key in plugins and not key.endswith(":")


def join_names(names: Any) -> str:
    return ", ".join(names) or "none yet, the worker is still loading them"
