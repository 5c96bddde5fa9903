"""The list of hypotheses: read from the last reply, judged anew by all trials, carried on under the same numbers.

A hypothesis is a label. One that somebody else wrote is judged if toybox understands its words, else left as it was.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from workers.metrics.ranking import area_under_curve
from workers.toybox.scientist.reading import ListedHypothesis
from workers.toybox.scientist.scoring import ENOUGH, Label, LabelScore, TrialEvidence, normalize_label
from workers.toybox.world.concepts import parse_label, phrase_label

_GOOD = 0.8
_BAD = 0.7
_NO_DIFFERENCE = 0.6
"""An AUC, with a property against without it, below which the property is idle."""
_MOST = 12

_SUBJECT = re.compile(r"^the (?:unit|system) responds to ", re.IGNORECASE)


def update_hypotheses(
    before: Sequence[ListedHypothesis], leading: Sequence[Label], evidence: TrialEvidence
) -> list[ListedHypothesis]:
    """The old hypotheses judged anew, and the leading labels that are not among them."""
    judged = [_judge(each, evidence) for each in before]
    known = {_parse_hypothesis(each.text) for each in before}
    number = max((each.number for each in before), default=0)
    for label in leading:
        if label not in known and len(judged) < _MOST:
            number += 1
            judged.append(_judge(ListedHypothesis(number, f"the unit responds to {phrase_label(label)}"), evidence))
    return judged


def _parse_hypothesis(text: str) -> Label:
    """The label that a hypothesis names; empty if toybox does not understand it."""
    return normalize_label(parse_label(_SUBJECT.sub("", text)))


def _judge(hypothesis: ListedHypothesis, evidence: TrialEvidence) -> ListedHypothesis:
    label = _parse_hypothesis(hypothesis.text)
    if not label or not len(evidence):
        return hypothesis
    found = evidence.measure(label)
    if idle := _idle(label, evidence):
        return replace(hypothesis, status="refuted", reason=idle)
    reason = f"{found}; AUC {found.auc:.2f}" if found.count else ""
    return replace(hypothesis, status=_judge_status(found), reason=reason)


def _idle(label: Label, evidence: TrialEvidence) -> str:
    """The figures that show a property of the label to make no difference; empty if each of them does."""
    for concept in label:
        for name in concept.named if len(concept.named) > 1 else ():
            # Where the alternative is shown, and where it lacks that property alone and none is shown
            lacks = evidence.shows(concept.having({name: None})) & ~evidence.match_label(label)
            shown, without = evidence.activations[evidence.shows(concept)], evidence.activations[lacks]
            if min(len(shown), len(without)) >= ENOUGH and area_under_curve(shown, without) < _NO_DIFFERENCE:
                return (
                    f"the {name} makes no difference: {shown.mean():.2f} on average with it, n={len(shown)}, "
                    f"{without.mean():.2f} without, n={len(without)}"
                )
    return ""


def _judge_status(found: LabelScore) -> str:
    """Supported or refuted where enough images speak and chance is an unlikely cause, else open."""
    if found.count < ENOUGH or found.others < ENOUGH:
        return "open"
    if found.auc - found.error > _BAD and found.auc >= _GOOD:
        return "supported"
    return "refuted" if found.auc + found.error < _GOOD and found.auc < _BAD else "open"
