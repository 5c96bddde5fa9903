"""Find idle parts of a label: properties that an image can lose while the activation stays.

Pairs decide first: an image, and an edit of it that lacks only that property. With too few pairs, images that lack
it and differ in other ways decide. `designs` chooses the edits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workers.metrics.ranking import area_under_curve
from workers.toybox.scientist.scoring import (
    ENOUGH,
    Floats,
    Label,
    TrialEvidence,
    includes,
    normalize_label,
    widen,
)
from workers.toybox.world.concepts import Concept

PAIRS = 3
"""Minimum number of pairs to call a property idle."""
_IDLE = 0.15
"""A property is idle if its loss takes less than this share of the label's effect on the activation."""
_NO_DIFFERENCE = 0.6
"""Without pairs, a property is idle if the AUC with against without it is lower."""


@dataclass(frozen=True)
class IdleWords:
    """A part that a label does not need: the label without it, and the means that show it."""

    concept: Concept
    wider: Concept
    shown: float
    without: float
    count: int
    others: int

    def __str__(self) -> str:
        return (
            f"{self.wider.phrase()} do as well: {self.shown:.2f} on average for {self.concept.phrase()}, "
            f"n={self.count}, {self.without:.2f} without the rest, n={self.others}"
        )


def remove_idle_parts(label: Label, evidence: TrialEvidence) -> Label:
    """Return the label without what pairs of images show to be idle, one part after the other."""
    # 1. Look for the clearest idle part
    pared = label
    while found := next((each for each in _list_idle_pairs(pared, evidence)), None):
        # 2. Replace its alternative by the wider one, and look again: normalising may merge alternatives
        kept = [each for each in pared if each != found.concept]
        pared = normalize_label((*kept, found.wider))
    return pared


def find_idle(label: Label, evidence: TrialEvidence) -> IdleWords | None:
    """Return a part that the label does not need, by pairs or by other images; None if it needs all."""
    paired = next(iter(_list_idle_pairs(label, evidence)), None)
    return paired or next(iter(_list_idle_among_others(label, evidence)), None)


def list_untested(label: Label, evidence: TrialEvidence) -> list[tuple[Concept, Concept]]:
    """Return alternatives, each with a wider concept for which there are too few pairs."""
    return [
        (concept, wider)
        for concept in label
        for wider in _list_wider(concept)
        if len(_collect_pairs(label, concept, wider, evidence)) < PAIRS
    ]


def _list_idle_pairs(label: Label, evidence: TrialEvidence) -> list[IdleWords]:
    """Return what pairs show to be idle, smallest difference first."""
    floor = _find_floor(label, evidence)
    found: list[tuple[float, IdleWords]] = []
    for concept in label if len(evidence.edited) else ():
        for wider in _list_wider(concept):
            pairs = _collect_pairs(label, concept, wider, evidence)
            if len(pairs) < PAIRS:
                continue
            before, after = map(float, pairs.mean(axis=0))
            # Where the eyes miss one thing in one image all is lost, whatever the unit needs: hence the median
            fall = float(np.median((pairs[:, 0] - pairs[:, 1]) / (pairs[:, 0] - floor)))
            if fall < _IDLE:
                found.append((fall, IdleWords(concept, wider, before, after, len(pairs), len(pairs))))
    return [words for _, words in sorted(found, key=lambda each: each[0])]


def _find_floor(label: Label, evidence: TrialEvidence) -> float:
    """Return the median activation of what the label does not describe."""
    rest = evidence.activations[~evidence.match_label(label)]
    return float(np.median(rest)) if len(rest) else 0.0


def _collect_pairs(label: Label, concept: Concept, wider: Concept, evidence: TrialEvidence) -> Floats:
    """Return activations before and after an edit that removed this part from a bright image and left none of the
    label, (n, 2)."""
    shown = evidence.activations[evidence.match_label(label)]
    if not len(shown) or not len(evidence.edited):
        return np.empty((0, 2))
    # An image that the unit hardly answers cannot fall
    half = (float(np.median(shown)) + _find_floor(label, evidence)) / 2
    # An edit counts only if it removed the whole part: an image that still shows a concept in between does not
    between = [each for each in widen(concept) if each != wider and includes(wider, each)]
    old, new = evidence.edited.T
    lost = evidence.shows(wider)[new] & ~evidence.match_label((*label, *between))[new]
    speaking = evidence.shows(concept)[old] & lost & (evidence.activations[old] > half)
    return evidence.activations[evidence.edited[speaking]]


def _list_idle_among_others(label: Label, evidence: TrialEvidence) -> list[IdleWords]:
    found = []
    for concept in label:
        for name in concept.named if len(concept.named) > 1 else ():
            # Where the alternative is shown, and where it lacks that property alone and none is shown
            wider = concept.having({name: None})
            lacks = evidence.shows(wider) & ~evidence.match_label(label)
            shown, without = evidence.activations[evidence.shows(concept)], evidence.activations[lacks]
            if min(len(shown), len(without)) >= ENOUGH and area_under_curve(shown, without) < _NO_DIFFERENCE:
                means = float(shown.mean()), float(without.mean())
                found.append(IdleWords(concept, wider, *means, len(shown), len(without)))
    return found


def _list_wider(concept: Concept) -> list[Concept]:
    """Return the concepts that say one thing less about the same thing. Counts and positions are not edited."""
    return [
        wider
        for wider in widen(concept)
        if wider.count == concept.count and wider.relation == concept.relation and wider != concept.partner
    ]
