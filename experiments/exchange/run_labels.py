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
    """In the transaction under way. Of its own labels, which the events tell, the scores; each other is one more."""
    scores = {(each.position, each.text): each.scores for each in told if each.source == "run"}
    rows = [row for row in run.label_set.filter(source="run") if (row.position, row.text) in scores]
    for row in rows:
        row.scores = scores[row.position, row.text]
    Label.objects.bulk_update(rows, ["scores"], batch_size=AT_ONCE)
    others = [each for each in told if each.source != "run"]
    if others:
        save_others(run, others)


def save_others(run: Run, told: Sequence[LabelTold]) -> None:
    """One more label each; of units whose layer is not known here, nothing."""
    layers = {(layer.model.name, layer.name): layer for layer in Layer.objects.select_related("model")}
    labels = Label.objects.bulk_create(
        [
            Label(run=run, text=each.text, source=each.source, position=each.position, scores=each.scores)
            for each in told
        ],
        batch_size=AT_ONCE,
    )
    pairs: set[tuple[int, Place]] = set()
    for label, each in zip(labels, told, strict=True):
        for model, name, number in each.units:
            if (layer := layers.get((model, name))) and number < layer.units:
                pairs.add((label.pk, (layer.pk, number)))
    keys = saved_units({place for _, place in pairs})
    through = Label.units.through
    rows = [through(label_id=label, unit_id=keys[place]) for label, place in sorted(pairs)]
    through.objects.bulk_create(rows, ignore_conflicts=True, batch_size=AT_ONCE)


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
