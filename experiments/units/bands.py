"""How right the labels of every unit are: the best check of each, in bands of r. One query, however large the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from experiments.core.system_names import Names
from experiments.core.visibility import visible_to
from experiments.models import LabelCheck, Layer, VisionModelRow
from experiments.units.colours import Colour

SOME, GOOD, HIGH = 0.2, 0.5, 0.8


class CheckBand(Colour):
    """Where r of the best check of a unit's labels lies."""

    HIGH = "band-high", "r 0.8 or more", "a label predicts the unit on images that its author never saw"
    GOOD = "band-good", "r 0.5 to 0.8", "a label predicts the unit well"
    SOME = "band-some", "r 0.2 to 0.5", "a label is part of the truth"
    LOW = "band-low", "r below 0.2", "no label that was checked says much of the unit"
    NONE = "band-none", "Not checked", "no label of it was checked"


def find_bands(model: VisionModelRow, layers: Sequence[Layer], names: Names) -> Mapping[int, Mapping[int, CheckBand]]:
    """Id of a layer -> number of a unit -> its band; units without a check are left out, and those that the viewer is
    to judge unseen."""
    found: dict[int, dict[int, CheckBand]] = {layer.pk: {} for layer in layers}
    kept = {(layer, number) for name, layer, number in names.hidden if name == model.name}
    called = {layer.pk: layer.name for layer in layers}
    rows = visible_to(LabelCheck.objects.filter(unit__layer__in=found, pearson__isnull=False)).order_by("pearson")
    for layer, number, r in rows.values_list("unit__layer_id", "unit__number", "pearson"):
        if r is not None and (called[layer], number) not in kept:
            found[layer][number] = band_of(r)
    return found


def band_of(r: float) -> CheckBand:
    """Where r lies."""
    if r >= GOOD:
        return CheckBand.HIGH if r >= HIGH else CheckBand.GOOD
    return CheckBand.SOME if r >= SOME else CheckBand.LOW
