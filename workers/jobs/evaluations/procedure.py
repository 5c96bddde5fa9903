"""What each kind of evaluation is to the engine: how it is planned, how an item is done, what its figures are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from experiments.core.label_checks import assign_check, choose_method, request_check
from experiments.models import CheckStatus, Evaluation, EvaluationItem, Layer, Unit
from workers.errors import BackboneUnavailable, RequestError
from workers.jobs import catalogue
from workers.jobs.checks.check import finish
from workers.jobs.evaluations.sources import find_label
from workers.protocols import Progress
from workers.record.evaluations import EvaluationResult


@dataclass(frozen=True)
class Procedure:
    """What differs between kinds; the engine does the rest."""

    plan: Callable[[Evaluation, Progress], list[EvaluationItem]]
    """The items, unsaved, in the order in which they are done. Raises RequestError."""
    do: Callable[[Evaluation, EvaluationItem, Progress], None]
    """Do one item: fill its columns. Raises MaiaError."""
    summarise: Callable[[Evaluation, Sequence[EvaluationItem]], EvaluationResult]
    """The figures of the items that are there."""
    finish: Callable[[Evaluation, Progress], Iterator[None]] | None = None
    """What takes several items, once all are done; stops before each step, and leaves out those that are done."""


def label_and_check(evaluation: Evaluation, item: EvaluationItem, progress: Progress) -> None:
    """Have the source label the unit, then have the label tested on images that nobody chose."""
    item.label = find_label(evaluation, item, progress)
    if item.label and item.unit:
        _check_item(evaluation, item, progress)


def _check_item(evaluation: Evaluation, item: EvaluationItem, progress: Progress) -> None:
    """Test the item's label. A check that cannot go on leaves the item planned: it is no score."""
    assert item.unit is not None
    dataset = str(evaluation.options.get("dataset") or "")
    method = choose_method(item.unit.layer.model.name, evaluation.backbone, evaluation.backbone_model, dataset)
    check = request_check(item.unit, item.label, method, enqueue=False, unpriced=evaluation.unpriced)
    item.label_check = check
    item.save(update_fields=["label_check", "label"])
    if item.run:
        assign_check(item.run, check)
    if check.is_open:
        check = finish(check.pk, progress)
    if check.status == CheckStatus.UNFINISHED:
        raise BackboneUnavailable(check.reason)
    if check.status == CheckStatus.FAILED:
        raise RequestError(f"Its check failed: {check.reason}")
    if check.status == CheckStatus.UNTESTABLE:
        item.reason = check.reason
    names = ("pearson", "auprc", "generated_auc", "base_rate")
    # One with a result lacks a judge and a writer, say: the label is not to blame
    testable = check.status != CheckStatus.UNTESTABLE or bool(check.result)
    item.scores = {**item.scores, **{name: getattr(check, name) for name in names}, "testable": testable}


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
