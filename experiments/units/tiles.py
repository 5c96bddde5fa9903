"""Show units as tiles and cards: first exemplars, current label, its check, and the unit's state. The number of
queries does not depend on that of units. Units that the viewer has yet to judge blind show nothing from runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Q

from experiments.core.system_names import SystemNameMasker
from experiments.core.visibility import visible_to
from experiments.models import Exemplar, Label, LabelCheck, Layer
from experiments.models.evaluation import DEVELOPMENT
from experiments.units.lists import Numbers, PlacedUnit
from experiments.units.reviewed import ReviewColour, Reviews, find_reviews
from workers.record.estimates import benjamini_hochberg, is_beyond_chance
from workers.record.label_repeats import LabelRepeats, count_repeats

Place = tuple[int, int]
"""Id of a layer, number of a unit."""


@dataclass(frozen=True)
class UnitLabel:
    """The unit's current label by its key, and the number of its labels."""

    text: str
    key: int
    count: int


@dataclass(frozen=True)
class TilePicture:
    """An exemplar: the keys of its image, raw and masked."""

    raw: str
    masked: str
    activation: float


@dataclass(frozen=True)
class UnitTile(PlacedUnit):
    label: UnitLabel | None = None
    r: float | None = None
    """Of the best check of any of its labels."""
    pictures: Sequence[TilePicture] = ()
    review: ReviewColour | None = None
    """The reviewers' verdict, if requested."""

    @property
    def activation(self) -> float | None:
        """Return the activation of its first exemplar."""
        return self.pictures[0].activation if self.pictures else None


@dataclass(frozen=True)
class UnitFacts:
    """Facts on some units: by place the current label, and the best r of a check of its labels; over all checks,
    how many tested r against 0, and how many found it above 0 after correction for multiple tests."""

    labels: Mapping[Place, UnitLabel]
    scores: Mapping[Place, float]
    tested: int = 0
    beyond_chance: int = 0
    reviews: Reviews = field(default_factory=dict)

    @property
    def repeats(self) -> LabelRepeats:
        """Return how many of the units' current labels are distinct."""
        return count_repeats(label.text for label in self.labels.values())


def read_layer_facts(layers: Sequence[Layer], names: SystemNameMasker) -> UnitFacts:
    """Return the facts on all units of these layers, with the reviewers' verdicts."""
    return replace(_read_facts(Q(unit__layer__in=layers), names), reviews=find_reviews(layers, names))


def _read_facts(meant: Q, names: SystemNameMasker) -> UnitFacts:
    """Return the facts on the units that `meant` selects, in rows that lead to theirs by `unit__`."""
    checks = _read_checks(meant, names)
    adjusted = benjamini_hochberg([p for *_, p in checks])
    return UnitFacts(
        choose_labels(meant, names),
        # Checks come in ascending order of r, so the best one is kept.
        {place: r for place, r, _ in checks},
        sum(q is not None for q in adjusted),
        sum(is_beyond_chance(r, q) for (_, r, _), q in zip(checks, adjusted, strict=True)),
    )


def read_tiles(places: Sequence[tuple[Layer, int]], names: SystemNameMasker, pictures: int = 1) -> list[UnitTile]:
    """Return these units in this order, each with its first exemplars."""
    return make_tiles(places, _read_facts(_match_places(_group_by_layer(places), "unit__"), names), pictures)


def make_tiles(places: Sequence[tuple[Layer, int]], facts: UnitFacts, pictures: int = 1) -> list[UnitTile]:
    """Return the same from facts that are already loaded."""
    shown = _find_pictures(_group_by_layer(places), pictures)
    return [
        UnitTile(
            layer,
            number,
            facts.labels.get(place),
            facts.scores.get(place),
            shown.get(place, ()),
            facts.reviews.get(layer.pk, {}).get(number),
        )
        for layer, number in places
        # A loop over one item names the place for the lines above.
        for place in [(layer.pk, number)]
    ]


def _group_by_layer(places: Sequence[tuple[Layer, int]]) -> dict[int, list[int]]:
    numbers: dict[int, list[int]] = {}
    for layer, number in places:
        numbers.setdefault(layer.pk, []).append(number)
    return numbers


def _match_places(numbers: Numbers, prefix: str = "") -> Q:
    """Return a filter for rows that lead by `prefix` to one of these units."""
    some = (Q(**{f"{prefix}layer": layer, f"{prefix}number__in": list(n)}) for layer, n in numbers.items() if n)
    # Starts from a filter that matches nothing: an empty `Q()` would match all rows.
    return reduce(or_, some, Q(pk__in=[]))


def choose_labels(meant: Q, names: SystemNameMasker) -> dict[Place, UnitLabel]:
    """Return by place the current label of each unit, among the pairs of unit and label that `meant` selects; units
    without one are left out."""
    rows = visible_to(Label.units.through.objects.filter(meant)).exclude(names.are_hidden("label__run__")).order_by()
    about = ("label__text", "label_id", "label__run_id", "label__position")
    best: dict[Place, tuple[tuple[Any, ...], str]] = {}
    count: dict[Place, int] = {}
    for layer, number, text, key, run, position in rows.values_list("unit__layer_id", "unit__number", *about):
        place, rank = (layer, number), _rank_label(key, run, position)
        count[place] = count.get(place, 0) + 1
        if place not in best or rank > best[place][0]:
            best[place] = rank, text
    return {place: UnitLabel(text, rank[-1], count[place]) for place, (rank, text) in best.items()}


def _rank_label(key: int, run: int | None, position: int) -> tuple[bool, int, int, int]:
    """Return the rank of a label; the highest is the unit's current label: the first of its newest run, else the
    newest of all."""
    # Labels of runs win over others; a lower position is better, hence the sign.
    return (False, 0, 0, key) if run is None else (True, run, -position, key)


def _read_checks(meant: Q, names: SystemNameMasker) -> list[tuple[Place, float, float | None]]:
    """Return place, r and p of the label checks that `meant` selects, best r last; those without r are left out."""
    hidden = names.are_hidden_at("unit__layer__model__name", "unit__layer__name", "unit__number")
    # The agent saw the development images, so their r proves nothing.
    checks = LabelCheck.objects.filter(meant, pearson__isnull=False).exclude(split=DEVELOPMENT).exclude(hidden)
    found = visible_to(checks).order_by("pearson").values_list("unit__layer_id", "unit__number", "pearson", "p_value")
    return [((layer, number), r, p) for layer, number, r, p in found if r is not None]


def _find_pictures(numbers: Numbers, count: int) -> Mapping[Place, Sequence[TilePicture]]:
    """Return by place the first exemplars of each unit over one dataset: the one over which it was measured first."""
    rows = Exemplar.objects.filter(_match_places(numbers, "profile__unit__"), rank__lte=count)
    about = ("profile_id", "image_id", "masked_id", "activation")
    found: dict[Place, list[TilePicture]] = {}
    profiles: dict[Place, int] = {}
    at = ("profile__unit__layer_id", "profile__unit__number")
    ordered = rows.order_by("profile_id", "rank").values_list(*at, *about)
    for layer, number, profile, raw, masked, activation in ordered:
        place = layer, number
        # Activations over two datasets have no common order: only the first profile's exemplars are shown.
        if profiles.setdefault(place, profile) == profile:
            found.setdefault(place, []).append(TilePicture(raw, masked, activation))
    return found
