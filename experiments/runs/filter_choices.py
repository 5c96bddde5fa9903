"""List the choices of run filters, for the page and for exports.

Each function takes the valid filters of the address and the names that the viewer reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from experiments.core.system_names import SystemNameMasker
from experiments.display.narrowing import Choice, offer_values
from experiments.models import Backbone, Member, Run, Tag


def _list_named(names: SystemNameMasker) -> Any:
    """Return the runs whose system is not hidden from the viewer."""
    return Run.objects.exclude(names.are_hidden())


list_models = offer_values(_list_named, "model")
list_layers = offer_values(_list_named, "layer", "model")
"""Layers of the chosen model that runs are about."""


def list_backbones(_: Mapping[str, str], __: SystemNameMasker) -> list[Choice]:
    """Return the backbones, and each model of those that have several."""
    backbones: list[Choice] = []
    for backbone in Backbone.objects.all():
        backbones.append((backbone.key, backbone.label or backbone.key))
        backbones += [(f"{backbone.key}:{name}", name) for name in backbone.model_names]
    return backbones


def list_owners(_: Mapping[str, str], __: SystemNameMasker) -> list[Choice]:
    return _pair(Member.objects.order_by("user__username").values_list("user__username", flat=True))


def list_tags(_: Mapping[str, str], __: SystemNameMasker) -> list[Choice]:
    return _pair(Tag.objects.values_list("name", flat=True))


def _pair(names: Iterable[str]) -> list[Choice]:
    """Return names as choices, in their order."""
    return [(name, name) for name in names]
