"""Decide whether a label names what a neuron was built for: by the words of both, or by a language model.

All words of toybox are known, so words decide there. Elsewhere a label may use other words: if its words are not right,
the evaluation's backbone judges it, if that is a language model.
"""

from __future__ import annotations

from functools import partial

from experiments.core.compatibility import PERSON, SCRIPTED, is_toybox
from experiments.models import Evaluation, EvaluationItem
from workers import registry
from workers.jobs.label_checks.vlm_request import ask, find_backbone
from workers.metrics import concept_judge
from workers.protocols import Progress
from workers.record.limits import Usage


def score_truth(evaluation: Evaluation, item: EvaluationItem, progress: Progress) -> None:
    """Score `right`: exactly the concepts of the truth, joined in the same way. A missing label is not right.

    Raises Cancelled, and the errors of the backbone.
    """
    assert item.unit is not None
    if not item.label:
        item.scores = {**item.scores, "right": False}
        return
    layer = item.unit.layer
    truth = layer.name_of(item.unit.number)
    found = registry.load(registry.CONCEPT_MATCHERS, "toybox")(item.label, truth)
    named = {"missing": ", ".join(found.missing), "extra": ", ".join(found.extra)}
    item.scores = {**item.scores, "right": found.right, **named}
    if not found.right and not is_toybox(layer.model.name) and evaluation.backbone not in ("", SCRIPTED, PERSON):
        judged = _judge(evaluation, item, truth, progress)  # First, because it writes its cost to the scores
        item.scores = {**item.scores, **judged}


def _judge(evaluation: Evaluation, item: EvaluationItem, truth: str, progress: Progress) -> dict[str, str | bool]:
    """Return the backbone's verdict on label and truth. Their order alternates with the item's position."""
    backbone = find_backbone(evaluation.backbone, evaluation.backbone_model, sees=False, unpriced=evaluation.unpriced)
    request = concept_judge.ask_for_agreement(item.label, truth, swapped=bool((evaluation.seed + item.position) % 2))
    said = ask(backbone, request, concept_judge.parse_agreement, partial(note_cost, item), progress, evaluation.seed)
    return {"agreement": said or "unread", "agreement_by": backbone.label, "right": said == "same"}


def note_cost(item: EvaluationItem, usage: Usage) -> None:
    """Add the cost of a reply to the item."""
    item.scores = {**item.scores, "cost": float(item.scores.get("cost") or 0) + usage.cost}
