"""The units most like one, over one dataset, written down for its page. Only layers that are indexed take part."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from experiments.models import LayerIndex, UnitProfile
from workers.errors import MaiaError
from workers.jobs.laboratory import laboratory


def write(profile: UnitProfile) -> None:
    """What cannot be compared says why; asked again, it is looked at again."""
    began = timezone.now()
    try:
        profile.neighbours = compare(profile)
    except MaiaError as error:
        profile.neighbours = {"problem": str(error)}
    profile.compared = began
    profile.save(update_fields=["neighbours", "compared"])


def compare(profile: UnitProfile) -> dict[str, Any]:
    """The comparison as JSON: neighbours are [id of the layer, number, similarity, exemplars shared]."""
    from workers.lab.similar_units import SimilarUnit, find_similar_units

    layer, model = profile.unit.layer, profile.unit.layer.model
    indexes = LayerIndex.objects.filter(dataset=profile.dataset, layer__model=model).values_list(
        "layer__name", "layer_id"
    )
    ids = dict(indexes)
    known = laboratory().index(model.name, profile.dataset.key).known(list(ids))
    if layer.name not in known:
        return {"problem": f"{layer.name} is not indexed over {profile.dataset.label} any more."}
    found = find_similar_units(known, layer.name, profile.unit.number)

    def rows(neighbours: list[SimilarUnit]) -> list[list[float]]:
        return [[ids[each.layer], each.unit, round(each.similarity, 4), each.shared] for each in neighbours]

    return {
        "measure": found.measure,
        "images": found.images,
        "layers": len(known),
        "same": rows(found.same),
        "others": rows(found.others),
    }
