"""Plans the description of a unit: exemplars, screening, refining, edits, validation, conclusion.

Serves a free question too: what drives the unit is the answer that these experiments can give. Each move follows from
the case alone.
"""

from __future__ import annotations

import itertools

from workers.toybox.scientist import designs, findings, hypothesis_list, replies
from workers.toybox.scientist.replies import PlannedReply
from workers.toybox.scientist.scoring import Label
from workers.toybox.scientist.view import ScientistView
from workers.toybox.world.concepts import phrase_label
from workers.toybox.world.prompts import caption
from workers.toybox.world.scenes import Scene

VALIDATIONS = 2
_SCREENED = 64
"""Scenes of one toy in the screening, and as many of three: alone toys are clear, in company they are many."""
_CANDIDATES = 12
_LEADING = 3
_EDITED = 6
_EDITS = {"noun": 2, "colour": 2, "size": 1, "ground": 1, "light": 1}


def plan_reply(view: ScientistView) -> PlannedReply:
    """The next reply."""
    if view.case.must_conclude:
        return _plan_conclusion(view)
    if view.due("exemplars"):
        return plan_exemplars(view)
    if view.due("screen"):
        return plan_screening(view)
    if view.silent or not view.labels:
        return _plan_conclusion(view)
    if view.due("refine"):
        return _refine(view)
    if view.due("edit"):
        return _edit(view)
    if view.due("validate", VALIDATIONS) and view.tested(view.labels[0]) is None:
        return _validate(view)
    return _plan_conclusion(view)


def plan_exemplars(view: ScientistView) -> PlannedReply:
    prose = (
        "I begin with the images of the dataset that drive this unit most, and have their bright regions described by "
        "an observer who knows none of my ideas."
    )
    return _move(view, prose, replies.EXEMPLARS_PROGRAM)


def plan_screening(view: ScientistView) -> PlannedReply:
    rng = view.rng("screen")
    each = view.fewer("screen", _SCREENED)
    groups = {
        "one toy": designs.balanced_scenes(rng, [1] * each),
        "three toys": designs.balanced_scenes(rng, [3] * each),
    }
    prose = findings.of_exemplars(view) + (
        "\n\nExemplars may share what has nothing to do with the response. So I screen everything: "
        f"{2 * each} scenes in which every toy, colour, size, ground and light is dealt evenly and at random."
    )
    purpose = "every toy, colour, size, ground and light, dealt evenly"
    return _move(view, prose, replies.draw_program("screen", purpose, groups))


def _refine(view: ScientistView) -> PlannedReply:
    # What deserves a closer look: leading concepts, what the exemplars suggest, and crossings of the best of both
    leading = list(dict.fromkeys(concept for label in view.labels[:40] for concept in label))[:6]
    hinted = [concept for concept, _ in view.hints][:6]
    singles = [concept for concept in dict.fromkeys((*leading[:4], *hinted[:3])) if len(concept.named) == 1]
    crossed = [
        one.having({name: getattr(other, name) for name in other.named})
        for one, other in itertools.combinations(singles, 2)
        if one.named != other.named
    ]
    rng, candidates = view.rng("refine"), list(dict.fromkeys((*leading, *hinted, *crossed)))[:_CANDIDATES]
    each = view.fewer("refine", 6)
    groups = {
        f"{concept.phrase()}, and hard negatives": designs.matching_scenes((concept,), each, rng)
        + designs.hard_negatives((concept,), each // 2, rng)
        for concept in candidates
    }
    prose = findings.of_screening(view) + (
        "\n\nSeveral explanations fit that many images by chance, so I test the likeliest ones, alone and crossed with "
        f"each other, against hard negatives: {', '.join(each.phrase() for each in candidates)}."
    )
    return _move(view, prose, replies.draw_program("refine", "the likeliest concepts against hard negatives", groups))


def _edit(view: ScientistView) -> PlannedReply:
    rng, label = view.rng("edit"), view.labels[0]
    count = view.fewer("edit", _EDITED)
    scenes = designs.single_thing_scenes([label[place % len(label)] for place in range(count)], 1, rng)
    plan = {caption(scene): designs.write_edits(scene, rng, _EDITS) for scene in scenes}
    prose = findings.of_leading(view) + (
        "\n\nWhat goes together need not be the cause. So I draw fresh images of the leading hypothesis and change one "
        "property at a time, everything else staying as it is."
    )
    purpose = "one change at a time to fresh images of the leading concept"
    return _move(view, prose, replies.edit_program("edit", purpose, plan))


def _validate(view: ScientistView) -> PlannedReply:
    # The leading label and the next ones that are not mere variants with one concept more or less
    labels: list[Label] = []
    for label in view.labels[:60]:
        if len(labels) < 3 and not any(set(label) < set(other) or set(other) < set(label) for other in labels):
            labels.append(label)
    rng = view.rng("validate")
    each = view.fewer("validate", 12)
    groups: dict[str, list[Scene]] = {}
    for label in labels:
        groups[phrase_label(label)] = designs.matching_scenes(label, each, rng)
        groups[f"hard negatives of {phrase_label(label)}"] = designs.hard_negatives(label, each // 2, rng)
    groups["none of these"] = designs.negatives(labels, each, rng)
    prose = findings.of_edits(view) + (
        "\n\nNow the test of what is left, on images drawn afresh: scenes that each label describes, hard negatives of "
        f"it, and scenes that none describes. The labels: {'; '.join(phrase_label(label) for label in labels)}."
    )
    purpose = "fresh scenes for and against the leading labels"
    return _move(view, prose, replies.draw_program("validate", purpose, groups))


def _move(view: ScientistView, prose: str, code: str) -> PlannedReply:
    listed = hypothesis_list.update_hypotheses(view.case.hypotheses, view.labels[:_LEADING], view.evidence)
    return PlannedReply(prose, listed, code)


def _plan_conclusion(view: ScientistView) -> PlannedReply:
    """The last reply: the description with its figures, and a label if there is one."""
    hypotheses = hypothesis_list.update_hypotheses(view.case.hypotheses, view.labels[:1], view.evidence)
    prose = "The evidence decides as far as my experiments can take it, so I conclude."
    if view.case.must_conclude:
        prose = "I was asked to conclude now, so this is the best that the evidence so far supports."
    label = phrase_label(findings.choose_label(view)) or "none"
    return PlannedReply(prose, hypotheses, conclusion=[("DESCRIPTION", findings.description(view)), ("LABEL", label)])
