"""Several units at once: the query becomes a sweep, whose form is filled in with the whole selection."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from django.http import QueryDict
from django.urls import reverse

from experiments.core.errors import InvalidInput
from experiments.core.system_names import SystemNameMasker
from experiments.core.unit_names import format_units, unit_numbers
from experiments.core.visibility import visible_to
from experiments.models import Label, Layer
from experiments.runs.asking.circuits import find_circuit_unit
from experiments.runs.asking.form import UNIT_CHARS, find_layer
from workers.errors import UnknownName
from workers.record.circuits import CIRCUIT
from workers.record.limits import DEFAULT_LIMITS

ALL = "all"
UNLABELLED = "all without a label"

_SAME = (
    *("model", "layer", "task", "question", "toolset", "dataset"),
    *("surroundings", "exemplars", "reflections", "ablation", "seed", "unpriced"),
)
"""Fields that both forms have."""


def find_chosen(values: Mapping[str, Any], names: SystemNameMasker) -> tuple[Layer | None, list[int]]:
    """Return the layer and the units that a form names; None and no units if they do not exist."""
    layer = find_chosen_layer(values)
    with suppress(InvalidInput):
        return layer, find_units(layer, str(values.get("unit", "")), names) if layer else []
    return layer, []


def find_chosen_layer(values: Mapping[str, Any]) -> Layer | None:
    """Return the layer that a form names; None if it does not exist."""
    with suppress(InvalidInput):
        return find_layer(str(values.get("model") or ""), str(values.get("layer") or ""))
    return None


def find_units(layer: Layer, written: str, names: SystemNameMasker) -> list[int]:
    """Return the numbers of the units in "3, 5, 8-12", "all" or "all without a label". Raises InvalidInput."""
    if layer.kind == CIRCUIT:
        return [find_circuit_unit(layer, written).number]
    phrase = _read_phrase(written, layer)
    if phrase == ALL:
        return list(range(layer.units))
    if phrase == UNLABELLED:
        return _find_unlabelled(layer, names)
    try:
        where = f"{layer.name} of {layer.model.name}"
        return unit_numbers(written[:UNIT_CHARS], where, layer.units, layer.names)
    except UnknownName as error:
        raise InvalidInput(str(error), "unit") from None


def _read_phrase(written: str, layer: Layer) -> str:
    """Return which of the two phrases was written; "" for neither, or if a unit has that name."""
    text = " ".join(written.casefold().split())
    text = UNLABELLED if text in {"all without label", "all without labels", "without a label"} else text
    is_name = text in {name.casefold() for name in layer.names}
    return text if text in {ALL, UNLABELLED} and not is_name else ""


def _find_unlabelled(layer: Layer, names: SystemNameMasker) -> list[int]:
    """Return the units of which the reader knows no label. Raises InvalidInput if every unit has one."""
    # A label that is hidden from the reader must not show by the absence of its unit.
    rows = visible_to(Label.units.through.objects.filter(unit__layer=layer)).exclude(names.are_hidden("label__run__"))
    labelled = set(rows.order_by().values_list("unit__number", flat=True))
    found = [number for number in range(layer.units) if number not in labelled]
    if not found:
        raise InvalidInput(f"Every unit of {layer.name} has a label. Write numbers, as 3, 5, 8-12, or all.", "unit")
    return found


def sweep_address(values: Mapping[str, Any], names: SystemNameMasker) -> str:
    """Return the address of the sweep form filled in with these units; "" for a single unit."""
    layer, units = find_chosen(values, names)
    if layer is None or not units:
        return ""
    # "all" means a sweep, even over a layer of one unit.
    if len(units) == 1 and not _read_phrase(str(values.get("unit", "")), layer):
        return ""
    filled = QueryDict(mutable=True)
    # Through the address: the sweep's form checks everything again.
    filled.update({name: str(values[name]) for name in _SAME if values.get(name)})
    filled.update({name: str(values.get(name, usual)) for name, usual in DEFAULT_LIMITS.items()})
    backbone, model = str(values.get("backbone") or ""), str(values.get("backbone_model") or "")
    filled["agent"] = f"{backbone}:{model}" if model else backbone
    # A whole layer needs no list, which may be too long for an address.
    if len(units) == layer.units:
        filled["choose"] = "layers"
    else:
        filled["choose"] = "list"
        filled["units"] = "\n".join(format_units(units))
    return f"{reverse('sweep-new')}?{filled.urlencode()}"
