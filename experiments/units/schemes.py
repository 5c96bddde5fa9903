"""Colour maps of units by state, label quality, review, similar labels, or activation frequency. The number of
queries does not depend on the size of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.db.models import Q

from experiments.core.system_names import SystemNameMasker
from experiments.models import Layer, UnitProfile, VisionModelRow
from experiments.units.bands import CheckBand, FunctionBand, find_bands, find_function_bands
from experiments.units.colours import Colour
from experiments.units.label_groups import LabelGroup, group_labels
from experiments.units.reviewed import ReviewColour, find_reviews
from experiments.units.states import UnitState, states
from experiments.units.tiles import choose_labels


class GroupColour(Colour):
    """The largest groups of labels, by rank."""

    FIRST = "group-1", "", "similar labels"
    SECOND = "group-2", "", "similar labels"
    THIRD = "group-3", "", "similar labels"
    FOURTH = "group-4", "", "similar labels"
    FIFTH = "group-5", "", "similar labels"
    SIXTH = "group-6", "", "similar labels"
    OTHER = "group-other", "other labels", "of a smaller group"
    NONE = "swept-queued", "no label", "not labelled yet"

    @classmethod
    def of_rank(cls, rank: int) -> GroupColour:
        """Return the colour of the group with this rank, from the largest."""
        return cls(f"group-{rank}") if rank <= COLOURED_GROUPS else cls.OTHER


class FrequencyBand(Colour):
    """Band of the number of dataset images on which a unit is active."""

    DENSE = "active-4", "Half or more", "active on half of the images or more"
    OFTEN = "active-3", "10 % to 50 %", "active on a tenth of the images or more"
    SOME = "active-2", "1 % to 10 %", "active on a hundredth of the images or more"
    RARE = "active-1", "Under 1 %", "active on few images"
    DEAD = "dead", "Dead", "no image activates it"
    NONE = "band-none", "Not measured", "its exemplars were not made yet, which measures it"


# All but OTHER and NONE.
COLOURED_GROUPS = len(GroupColour) - 2
SCHEMES = {
    "state": "State",
    "check": "Score",
    "review": "Review",
    "label": "Similar labels",
    "active": "Activation frequency",
}
"""Name in the address -> name on the page."""
_OF_FUNCTIONS = ("state", "check", "review")
_BAND_FLOORS = ((0.5, FrequencyBand.DENSE), (0.1, FrequencyBand.OFTEN), (0.01, FrequencyBand.SOME))


@dataclass(frozen=True)
class Colouring:
    """The colours of a map: id of a layer -> number of a unit -> its colour; `rest` is that of all others."""

    scheme: str
    known: Mapping[int, Mapping[int, Colour]]
    rest: Colour
    words: Mapping[Colour, str] = field(default_factory=dict)
    """Words of colours that depend on the results."""

    @property
    def colours(self) -> list[Colour]:
        """Return all colours in the legend."""
        # A group colour without a group has no words, and no place in the legend.
        return [each for each in type(self.rest) if not isinstance(each, GroupColour) or self.say(each)]

    def say(self, colour: Colour) -> str:
        return self.words.get(colour) or colour.words


def list_schemes(layers: Sequence[Layer]) -> list[tuple[str, str]]:
    """Return the schemes that apply to these layers: functions have no labels, and no images activate them."""
    images = any(layer.takes_images for layer in layers) or not layers
    return [(name, words) for name, words in SCHEMES.items() if images or name in _OF_FUNCTIONS]


def read_scheme(asked: str) -> str:
    """Return the scheme that an address names; by state for any other."""
    return asked if asked in SCHEMES else "state"


def colour_layers(scheme: str, layers: Sequence[Layer], names: SystemNameMasker) -> Colouring:
    """Colour layers of several models: a colour has the same meaning in all of them."""
    if scheme == "label":
        return _colour_by_label(layers, names)
    parts = [colour_units(scheme, layer.model, [layer], names) for layer in layers]
    return Colouring(scheme, {pk: some for part in parts for pk, some in part.known.items()}, parts[0].rest)


def colour_units(scheme: str, model: VisionModelRow, layers: Sequence[Layer], names: SystemNameMasker) -> Colouring:
    """Colour the units of these layers of the model by one scheme, as this viewer may see them."""
    # Functions have no labels to check: their score is that of the conclusion.
    if scheme == "check" and layers and not any(layer.takes_images for layer in layers):
        return Colouring(scheme, find_function_bands(layers), FunctionBand.NONE)
    if scheme == "check":
        return Colouring(scheme, find_bands(model, layers, names), CheckBand.NONE)
    if scheme == "label":
        return _colour_by_label(layers, names)
    if scheme == "review":
        return Colouring(scheme, find_reviews(layers, names), ReviewColour.NONE)
    if scheme == "active":
        return Colouring(scheme, _find_frequencies(layers), FrequencyBand.NONE)
    return Colouring("state", states(model, layers, names), UnitState.NEW)


def _colour_by_label(layers: Sequence[Layer], names: SystemNameMasker) -> Colouring:
    labels = choose_labels(Q(unit__layer__in=layers), names)
    places = list(labels)
    groups = group_labels((at, labels[place].text) for at, place in enumerate(places))
    known: dict[int, dict[int, Colour]] = {layer.pk: {} for layer in layers}
    for rank, group in enumerate(groups, 1):
        for at in group.members:
            layer, number = places[at]
            # Groups come largest first, so the first one wins.
            known[layer].setdefault(number, GroupColour.of_rank(rank))
    return Colouring("label", known, GroupColour.NONE, name_groups(groups))


def name_groups(groups: Sequence[LabelGroup]) -> dict[Colour, str]:
    """Return the names of the largest groups' colours."""
    return {GroupColour.of_rank(rank): group.label for rank, group in enumerate(groups[:COLOURED_GROUPS], 1)}


def _find_frequencies(layers: Sequence[Layer]) -> dict[int, dict[int, Colour]]:
    """Return the bands of units that were measured over a dataset; over several, where they are active most."""
    found: dict[int, dict[int, Colour]] = {layer.pk: {} for layer in layers}
    # Ascending, so that of several datasets the one with the highest share wins.
    rows = UnitProfile.objects.filter(unit__layer__in=found, active__isnull=False).order_by("active")
    for layer, number, active in rows.values_list("unit__layer_id", "unit__number", "active"):
        found[layer][number] = _band_of(active or 0.0)
    return found


def _band_of(active: float) -> FrequencyBand:
    band = next((band for least, band in _BAND_FLOORS if active >= least), FrequencyBand.RARE)
    return band if active > 0 else FrequencyBand.DEAD
