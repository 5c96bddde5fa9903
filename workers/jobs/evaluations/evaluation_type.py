"""The interface between the engine and the kinds of evaluations: how to plan, score and summarize."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from experiments.models import Evaluation, EvaluationItem, Layer, Unit
from workers.errors import RequestError
from workers.jobs import catalogue
from workers.protocols import Progress
from workers.record import tasks
from workers.record.evaluations import EvaluationResult

Step = Callable[[Evaluation, EvaluationItem, Progress], None]


@dataclass(frozen=True)
class EvaluationType:
    """The parts in which kinds differ. The engine does the rest."""

    plan: Callable[[Evaluation, Progress], list[EvaluationItem]]
    """Return the unsaved items in the order of their execution. Raises RequestError."""
    summarise: Callable[[Evaluation, Sequence[EvaluationItem]], EvaluationResult]
    """Return the figures of the existing items."""
    score: Step | None = None
    """Score an item with a checked label. Raises MaiaError."""
    finish: Callable[[Evaluation, Progress], Iterator[None]] | None = None
    """Do steps that need several items, after all are done. Yields before each step and skips finished ones."""
    task: str = tasks.DEFAULT_TASK
    """Task of the agent's runs."""
    question: Callable[[Evaluation, EvaluationItem], str] | None = None
    """Return the question of an item and of all that share its sweep, with placeholders as in sweeps; None for the
    task's default."""
    checks_labels: bool = True
    """True if labels are tested on independent images."""
    gives_labels: bool = True
    """True if the sources give labels in the usual way; otherwise `score` obtains them."""


def find_layers(model: str) -> list[Layer]:
    """Return the layers of a model, examined first if it is not in the catalogue. Raises UnknownName, MissingPart."""
    return list(catalogue.look_at_model(model).layers.order_by("position"))


def make_item(layer: Layer, number: int, group: str, source: str, **options: str) -> EvaluationItem:
    """Return an unsaved item. Creates the row of its unit."""
    # Units get a row when they are first used.
    unit, _ = Unit.objects.get_or_create(layer=layer, number=number)
    name = f"{layer.model.name} / {layer.name} / unit {number}"
    return EvaluationItem(group=group, source=source, unit=unit, unit_name=name, options=options)


def require(value: object, what: str) -> None:
    """Raise RequestError if an option is missing."""
    if not value:
        raise RequestError(f"This evaluation needs {what}. Choose one.")
