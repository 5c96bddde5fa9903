"""Several units at once: the query becomes a sweep, whose form is filled in with all that was chosen."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from django.http import QueryDict
from django.urls import reverse

from experiments.core.errors import InvalidInput
from experiments.core.unit_names import format_units
from experiments.models import Layer
from experiments.runs.asking.form import find_layer, find_units
from workers.record.limits import USUAL

_SAME = (
    *("model", "layer", "task", "question", "toolset", "dataset"),
    *("surroundings", "exemplars", "reflections", "ablation", "seed", "unpriced"),
)
"""Fields that both forms have."""


def find_chosen(values: Mapping[str, Any]) -> tuple[Layer | None, list[int]]:
    """The layer and the units that a form names; none where they do not exist."""
    layer = None
    with suppress(InvalidInput):
        layer = find_layer(str(values.get("model") or ""), str(values.get("layer") or ""))
        return layer, find_units(layer, str(values.get("unit", "")))
    return layer, []


def sweep_address(values: Mapping[str, Any]) -> str:
    """Where the form of a sweep of these units is, filled in; "" for a single unit."""
    layer, units = find_chosen(values)
    if layer is None or len(units) < 2:
        return ""
    filled = QueryDict(mutable=True)
    filled.update({name: str(values[name]) for name in _SAME if values.get(name)})
    filled.update({name: str(values.get(name, usual)) for name, usual in USUAL.items()})
    backbone, model = str(values.get("backbone") or ""), str(values.get("backbone_model") or "")
    filled["agent"] = f"{backbone}:{model}" if model else backbone
    if len(units) == layer.units:
        filled["choose"] = "layers"
    else:
        filled["choose"] = "list"
        filled["units"] = "\n".join(format_units(units))
    return f"{reverse('sweep-new')}?{filled.urlencode()}"
