"""List the choices of run filters, for the page and for exports."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import QuerySet

from experiments.display import verdicts
from experiments.models import Backbone, Member, Run, Tag
from experiments.runs import lists
from workers.record import tasks


def list_choices(found: lists.Filtered) -> dict[str, Any]:
    """What there is to filter by."""
    backbones: list[tuple[str, str]] = []  # and each model of those that have several
    for backbone in Backbone.objects.all():
        backbones.append((backbone.key, backbone.label or backbone.key))
        backbones += [(f"{backbone.key}:{name}", name) for name in backbone.model_names]
    return {
        "statuses": lists.STATUSES,
        "verdict_choices": verdicts.CHOICES,
        "tasks": tasks.choices(),
        "models": _with_chosen(_list_named(found, "model").distinct(), found, "model"),
        "layers": list_layers(found),
        "backbones": backbones,
        "owners": Member.objects.order_by("user__username").values_list("user__username", flat=True),
        "tags": Tag.objects.values_list("name", flat=True),
        "narrowed": set(found.values) - {"q", "status"},
    }


def list_layers(found: lists.Filtered) -> list[str]:
    """The layers of the chosen model that runs are about."""
    rows = _list_named(found, "layer").filter(model=found.values.get("model", ""))
    return _with_chosen(rows.distinct(), found, "layer")


def _list_named(found: lists.Filtered, field: str) -> QuerySet[Run, str]:
    """What runs say in this field, but those whose system is hidden from who looks."""
    return Run.objects.exclude(found.names.are_hidden()).order_by(field).values_list(field, flat=True)


def _with_chosen(names: Iterable[str], found: lists.Filtered, field: str) -> list[str]:
    """The names, with the one that the address asks for even where nothing has it."""
    listed, chosen = list(names), found.values.get(field)
    return listed if not chosen or chosen in listed else [*listed, chosen]
