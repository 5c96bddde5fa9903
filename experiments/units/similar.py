"""The units most similar to one, as a worker wrote them down, with labels and pictures; asks a worker where it must."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from django.core.cache import cache
from django.db.models import Max, Q

from experiments.core import queue
from experiments.core.system_names import Names
from experiments.models import Exemplar, Layer, LayerIndex, UnitProfile
from experiments.units.lists import ListedUnit, find_labels

ASK_AGAIN = 30
"""Seconds after which a comparison that has not come is asked for again."""
PICTURES = 3


@dataclass(frozen=True)
class SimilarUnit(ListedUnit):
    """Another unit: how similar it is, how many exemplars both have, what is known of it."""

    similarity: float
    shared: int
    pictures: Sequence[Exemplar]


@dataclass(frozen=True)
class SimilarUnits:
    measure: str
    images: int
    layers: int
    same: Sequence[SimilarUnit]
    others: Sequence[SimilarUnit]
    problem: str = ""


def find_similar(profile: UnitProfile, layers: Mapping[int, Layer], names: Names) -> SimilarUnits | None:
    """None while a worker looks for them; those that are older than an index are looked for again, and shown."""
    of_model = LayerIndex.objects.filter(dataset=profile.dataset_id, layer__in=layers)
    newest = of_model.aggregate(newest=Max("written"))["newest"]
    stale = profile.compared is None or (newest is not None and profile.compared < newest)
    if stale and cache.add(f"asked-for-similar:{profile.pk}", True, ASK_AGAIN):
        queue.ask_for("write_neighbours", profile.pk)
    return None if profile.compared is None else _read_similar(profile, layers, names)


def _read_similar(profile: UnitProfile, layers: Mapping[int, Layer], names: Names) -> SimilarUnits:
    told: dict[str, Any] = profile.neighbours
    rows = [row for kind in ("same", "others") for row in told.get(kind, ()) if row[0] in layers]
    numbers: dict[int, list[int]] = {}
    for layer, number, *_ in rows:
        numbers.setdefault(layer, []).append(number)
    labels, pictures = find_labels(numbers, names), _pictures(profile, numbers)

    def units(kind: str) -> list[SimilarUnit]:
        found = []
        for layer, number, similarity, shared in told.get(kind, ()):
            if layer in layers:
                known = labels.get((layer, number), ()), similarity, shared, pictures.get((layer, number), ())
                found.append(SimilarUnit(layers[layer], number, *known))
        return found

    about = (told.get("measure", ""), told.get("images", 0), told.get("layers", 0))
    return SimilarUnits(*about, units("same"), units("others"), told.get("problem", ""))


def _pictures(profile: UnitProfile, numbers: Mapping[int, Sequence[int]]) -> dict[tuple[int, int], list[Exemplar]]:
    """The first exemplars of these units over the same dataset, where a worker has written them."""
    if not numbers:
        return {}
    units = reduce(
        or_, (Q(profile__unit__layer=layer, profile__unit__number__in=some) for layer, some in numbers.items())
    )
    rows = Exemplar.objects.filter(units, profile__dataset=profile.dataset_id, rank__lte=PICTURES)
    found: dict[tuple[int, int], list[Exemplar]] = {}
    for row in rows.select_related("profile__unit").order_by("rank"):
        found.setdefault((row.profile.unit.layer_id, row.profile.unit.number), []).append(row)
    return found
