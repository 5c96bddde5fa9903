"""Whether a label names what a neuron was built to respond to: by the words of both, else by a language model.

Toybox's words are all known, so there words decide. Elsewhere a label may say the same in other words: what is not
right by its words is put before the evaluation's backbone, if it is a language model.
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
    """Score `right`: exactly the concepts of the truth, joined as there. No label is not right.

    Raises Cancelled, and what the backbone raises.
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
        judged = _judge(evaluation, item, truth, progress)  # writes down what it cost, so it comes first
        item.scores = {**item.scores, **judged}


def _judge(evaluation: Evaluation, item: EvaluationItem, truth: str, progress: Progress) -> dict[str, str | bool]:
    """What the backbone says of label and truth; which of them stands first is drawn by the place of the item."""
    backbone = find_backbone(evaluation.backbone, evaluation.backbone_model, sees=False, unpriced=evaluation.unpriced)
    request = concept_judge.ask_for_agreement(item.label, truth, swapped=bool((evaluation.seed + item.position) % 2))
    said = ask(backbone, request, concept_judge.parse_agreement, partial(note_cost, item), progress, evaluation.seed)
    return {"agreement": said or "unread", "agreement_by": backbone.label, "right": said == "same"}


def note_cost(item: EvaluationItem, usage: Usage) -> None:
    """What a reply took stays with the item."""
    item.scores = {**item.scores, "cost": float(item.scores.get("cost") or 0) + usage.cost}
