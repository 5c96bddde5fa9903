"""What each kind of evaluation is to the engine: what is asked, who labels and what is scored, what its figures are."""

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
class Procedure:
    """What differs between kinds; the engine does the rest."""

    plan: Callable[[Evaluation, Progress], list[EvaluationItem]]
    """The items, unsaved, in the order in which they are done. Raises RequestError."""
    summarise: Callable[[Evaluation, Sequence[EvaluationItem]], EvaluationResult]
    """The figures of the items that are there."""
    score: Step | None = None
    """Score an item whose label is there, and has been checked. Raises MaiaError."""
    finish: Callable[[Evaluation, Progress], Iterator[None]] | None = None
    """What takes several items, once all are done; stops before each step, and leaves out those that are done."""
    task: str = tasks.DEFAULT_TASK
    """Of the agent's runs."""
    question: Callable[[Evaluation, EvaluationItem], str] | None = None
    """Asked of an item and of all that are like it, with places as a sweep's question; else the usual one."""
    checks_labels: bool = True
    """Whether labels are tested on images that nobody chose."""
    gives_labels: bool = True
    """Whether sources give labels as usual; else `score` reads or asks for what they say."""


def find_layers(model: str) -> list[Layer]:
    """The layers of a model, which is looked at if nobody has yet. Raises UnknownName, MissingPart."""
    return list(catalogue.look_at_model(model).layers.order_by("position"))


def make_item(layer: Layer, number: int, group: str, source: str, **options: str) -> EvaluationItem:
    """An unsaved item; the row of its unit appears."""
    unit, _ = Unit.objects.get_or_create(layer=layer, number=number)
    name = f"{layer.model.name} / {layer.name} / unit {number}"
    return EvaluationItem(group=group, source=source, unit=unit, unit_name=name, options=options)


def require(value: object, what: str) -> None:
    """Raises RequestError if an option is missing."""
    if not value:
        raise RequestError(f"This evaluation needs {what}. Choose one.")
