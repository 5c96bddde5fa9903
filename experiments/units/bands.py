"""Colour units by how right their labels are: the best check in bands of r; for functions, the newest score. One
query, whatever the size of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from experiments.core.system_names import SystemNameMasker
from experiments.core.visibility import visible_to
from experiments.models import LabelCheck, Layer, Run, VisionModelRow
from experiments.models.evaluation import DEVELOPMENT
from experiments.models.stored import StoredScore
from experiments.units.colours import Colour

SOME, GOOD, HIGH = 0.2, 0.5, 0.8


class CheckBand(Colour):
    """Band of r, for the best check of a unit's labels."""

    HIGH = "band-high", "r 0.8 or more", "a label predicts the unit on images that its author never saw"
    GOOD = "band-good", "r 0.5 to 0.8", "a label predicts the unit well"
    SOME = "band-some", "r 0.2 to 0.5", "a label is part of the truth"
    LOW = "band-low", "r below 0.2", "no label that was checked says much of the unit"
    NONE = "band-none", "Not checked", "no label of it was checked"


class FunctionBand(Colour):
    """Band of the newest conclusion about a function."""

    RIGHT = "band-high", "Right", "NMSE below 0.1; all 10 held-out texts right; 7 of 10 choices about words"
    PARTLY = (
        "band-some",
        "Partly right",
        "NMSE below 1, which 0 everywhere has; some of 10 texts or choices right",
    )
    WRONG = "band-low", "Not right", "its code misses more, or gives no output"
    NONE = "band-none", "No conclusion", "no run on it has concluded"


def find_function_bands(layers: Sequence[Layer]) -> Mapping[int, Mapping[int, FunctionBand]]:
    """Return id of a layer of functions -> number of a function -> its band."""
    ids = {layer.name: layer.pk for layer in layers}
    found: dict[int, dict[int, FunctionBand]] = {pk: {} for pk in ids.values()}
    # An empty score is that of a run without a conclusion to judge.
    rows = visible_to(Run.objects.filter(model=layers[0].model.name, layer__in=ids)).exclude(score={})
    # Oldest first, so that the newest score wins.
    for name, number, score in rows.order_by("ended").values_list("layer", "unit", "score"):
        found[ids[name]][number] = band_of_score(score)
    return found


def band_of_score(score: StoredScore) -> FunctionBand:
    """Return the band of a score."""
    if score.get("success"):
        return FunctionBand.RIGHT
    error, right = score.get("error"), score.get("right")
    # An NMSE of 1 is what the constant 0 has: only below it does the code say anything.
    is_near = bool(right) or (error is not None and error < 1)
    return FunctionBand.PARTLY if is_near else FunctionBand.WRONG


def find_bands(
    model: VisionModelRow, layers: Sequence[Layer], names: SystemNameMasker
) -> Mapping[int, Mapping[int, CheckBand]]:
    """Return id of a layer -> number of a unit -> its band; without units that have no check, and those that the
    viewer has yet to judge blind."""
    found: dict[int, dict[int, CheckBand]] = {layer.pk: {} for layer in layers}
    # An agent's check would reveal the label that the viewer is to judge.
    kept = {(layer, number) for name, layer, number in names.hidden if name == model.name}
    called = {layer.pk: layer.name for layer in layers}
    # An agent was told how its label did on the development images: that r proves nothing.
    checks = LabelCheck.objects.filter(unit__layer__in=found, pearson__isnull=False).exclude(split=DEVELOPMENT)
    # Ascending, so that the best check of a unit wins.
    rows = visible_to(checks).order_by("pearson")
    for layer, number, r in rows.values_list("unit__layer_id", "unit__number", "pearson"):
        if r is not None and (called[layer], number) not in kept:
            found[layer][number] = band_of(r)
    return found


def band_of(r: float) -> CheckBand:
    """Return the band of r."""
    if r >= GOOD:
        return CheckBand.HIGH if r >= HIGH else CheckBand.GOOD
    return CheckBand.SOME if r >= SOME else CheckBand.LOW
