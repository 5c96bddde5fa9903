"""The question of a sweep, for each of its units."""

from __future__ import annotations

from experiments.models import Layer
from workers.record import tasks

PLACES = ("unit", "name", "layer", "model")
"""What a question may name in braces."""


def fill_question(question: str, task: str, layer: Layer, unit: int) -> str:
    """The question about one unit: with {unit}, {name}, {layer} and {model} in their places, and nothing else in braces
    changed; without words, what is usually asked for the task."""
    if not question.strip():
        return tasks.questions(layer.kind, layer.model.name, layer.name, unit, layer.name_of(unit))[task]
    values = {"unit": str(unit), "name": layer.name_of(unit) or str(unit), "layer": layer.name}
    for place, value in (values | {"model": layer.model.name}).items():
        question = question.replace("{" + place + "}", value)
    return question
