"""Update the list of hypotheses: read from the last reply, judged again by all trials, with the same numbers.

A hypothesis is a label. One by another author is judged if toybox understands its words, else left unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from workers.toybox.scientist.idle import find_idle
from workers.toybox.scientist.reading import ReportedHypothesis
from workers.toybox.scientist.scoring import ENOUGH, Label, LabelScore, TrialEvidence, normalize_label
from workers.toybox.world.concepts import parse_label, phrase_label

_GOOD = 0.8
_BAD = 0.7
_MAX_HYPOTHESES = 12

# The subject is removed, since toybox parses only labels
_SUBJECT = re.compile(r"^the (?:unit|system) responds to ", re.IGNORECASE)


def update_hypotheses(
    before: Sequence[ReportedHypothesis], leading: Sequence[Label], evidence: TrialEvidence
) -> list[ReportedHypothesis]:
    """Return the old hypotheses judged again, and the leading labels that are not among them."""
    judged = [_judge(each, evidence) for each in before]
    # Compared as labels: the same hypothesis may be worded differently
    known = {_parse_hypothesis(each.text) for each in before}
    number = max((each.number for each in before), default=0)
    for label in leading:
        if label not in known and len(judged) < _MAX_HYPOTHESES:
            number += 1
            judged.append(_judge(ReportedHypothesis(number, f"the unit responds to {phrase_label(label)}"), evidence))
    return judged


def _parse_hypothesis(text: str) -> Label:
    """Return the label that a hypothesis names; empty if toybox does not understand it."""
    return normalize_label(parse_label(_SUBJECT.sub("", text)))


def _judge(hypothesis: ReportedHypothesis, evidence: TrialEvidence) -> ReportedHypothesis:
    label = _parse_hypothesis(hypothesis.text)
    # Words that toybox does not understand, or no evidence: the author's status stays
    if not label or not len(evidence):
        return hypothesis
    found = evidence.measure(label)
    # A label with an idle part is too narrow, however well it separates
    if idle := find_idle(label, evidence):
        return replace(hypothesis, status="refuted", reason=str(idle))
    reason = f"{found}; AUC {found.auc:.2f}" if found.count else ""
    return replace(hypothesis, status=_judge_status(found), reason=reason)


def _judge_status(found: LabelScore) -> str:
    """Return supported or refuted if there are enough images and chance is an unlikely cause, else open."""
    if found.count < ENOUGH or found.others < ENOUGH:
        return "open"
    # Between `_BAD` and `_GOOD`, or within chance, it stays open
    if found.auc - found.error > _BAD and found.auc >= _GOOD:
        return "supported"
    return "refuted" if found.auc + found.error < _GOOD and found.auc < _BAD else "open"
