"""The question of a sweep, for each of its units."""

from __future__ import annotations

from experiments.models import Layer
from workers.record import tasks

PLACES = ("unit", "name", "layer", "model")
"""What a question may name in braces."""


def fill_question(question: str, task: str, layer: Layer, unit: int) -> str:
    """Return the question about one unit, with {unit}, {name}, {layer} and {model} replaced; without words, the usual
    question of the task."""
    if not question.strip():
        return tasks.questions(layer.kind, layer.model.name, layer.name, unit, layer.name_of(unit))[task]
    values = {"unit": str(unit), "name": layer.name_of(unit) or str(unit), "layer": layer.name}
    for place, value in (values | {"model": layer.model.name}).items():
        # Not `format`: other braces of a question are text
        question = question.replace("{" + place + "}", value)
    return question
