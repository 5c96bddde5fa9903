"""Units of a synthetic neuron."""

from __future__ import annotations

from experiments.models import Unit
from workers.jobs import catalogue

MODEL = "synthetic:toybox-eyes"


def unit(number: int = 0, layer: str = "mono", model: str = MODEL) -> Unit:
    row = catalogue.look_at_model(model).layers.get(name=layer)
    return Unit.objects.get_or_create(layer=row, number=number)[0]
