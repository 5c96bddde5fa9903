"""Labels that a bundle tells of its run, saved with it: scores of its own, and those of others on whatever units.

A few queries, however many they are: others wait to write meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence

from experiments.exchange.run_decoding import LabelTold
from experiments.models import Label, Layer, Run, Unit

AT_ONCE = 500
Place = tuple[int, int]
"""Key of a layer, number of a unit."""


def save(run: Run, told: Sequence[LabelTold]) -> None:
    """In the transaction under way."""
    save_scores(run, {(each.position, each.text): each for each in told if each.source == "run"})
    save_others(run, [each for each in told if each.source != "run"])


def save_scores(run: Run, told: dict[tuple[int, str], LabelTold]) -> None:
    """Those of the labels that the events tell of."""
    rows = [row for row in run.label_set.filter(source="run") if (row.position, row.text) in told] if told else []
    for row in rows:
        row.scores = told[row.position, row.text].scores
    Label.objects.bulk_update(rows, ["scores"], batch_size=AT_ONCE)


def save_others(run: Run, told: Sequence[LabelTold]) -> None:
    """One more label each; of units whose layer is not known here, nothing."""
    if not told:
        return
    layers = {(layer.model.name, layer.name): layer for layer in Layer.objects.select_related("model")}
    labels = Label.objects.bulk_create(
        [
            Label(run=run, text=each.text, source=each.source, position=each.position, scores=each.scores)
            for each in told
        ],
        batch_size=AT_ONCE,
    )
    places = [known_places(each, layers) for each in told]
    keys = saved_units({place for each in places for place in each})
    through = Label.units.through
    pairs = [
        through(label_id=label.pk, unit_id=keys[place])
        for label, each in zip(labels, places, strict=True)
        for place in each
    ]
    through.objects.bulk_create(pairs, ignore_conflicts=True, batch_size=AT_ONCE)


def known_places(told: LabelTold, layers: dict[tuple[str, str], Layer]) -> set[Place]:
    found = [(layers.get((model, layer)), number) for model, layer, number in told.units]
    return {(layer.pk, number) for layer, number in found if layer and number < layer.units}


def saved_units(places: set[Place]) -> dict[Place, int]:
    """Their keys; rows are made of those that nobody has looked at yet."""
    rows = [Unit(layer_id=layer, number=number) for layer, number in sorted(places)]
    Unit.objects.bulk_create(rows, ignore_conflicts=True, batch_size=AT_ONCE)
    found: dict[Place, int] = {}
    for layer in {layer for layer, _ in places}:
        numbers = [number for place, number in places if place == layer]
        known = Unit.objects.filter(layer=layer, number__in=numbers).values_list("number", "pk")
        found |= {(layer, number): pk for number, pk in known}
    return found
