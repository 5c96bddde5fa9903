"""Plan the description of a unit: exemplars, screening, refining, edits, validation, conclusion.

Also used for a free question, because these experiments show what activates the unit. Each move follows from the
case alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from workers.toybox.scientist import designs, findings, hypothesis_list, replies
from workers.toybox.scientist.idle import list_untested
from workers.toybox.scientist.reading import GRADED
from workers.toybox.scientist.replies import PlannedReply
from workers.toybox.scientist.scoring import Label
from workers.toybox.scientist.view import ScientistView
from workers.toybox.world.concepts import Concept, phrase_label
from workers.toybox.world.prompts import caption
from workers.toybox.world.scenes import Scene

VALIDATIONS = 2
_SCREENED = 40
"""Scenes of one toy in the screening, and equally many of three: single toys are clear, several test more at once."""
_CROWDED, _CROWD = 48, 6
"""Number of scenes, and of toys in each, for units that respond only to several toys together."""
_SOUGHT, _BESIDE = 24, 4
"""Number of scenes, and of toys in each, in the search for a second cause."""
_CANDIDATES = 10
_LEADING = 3
_EDITED = 3
_PARINGS, _PAIRED, _DOUBTS = 2, 4, 6
"""Maximum number of times a label is pared; images drawn of each alternative for it; things tested at once."""
_EDITS = {"noun": 2, "colour": 1, "size": 1, "ground": 1, "light": 1}


def plan_reply(view: ScientistView) -> PlannedReply:
    """Return the next reply."""
    if view.case.must_conclude:
        return _plan_conclusion(view)
    if view.case.has("dataset_exemplars") and view.due("exemplars"):
        return plan_exemplars(view)
    if not view.case.has("text2image"):
        return _plan_conclusion(view)
    if view.due("screen"):
        return plan_screening(view)
    if view.quiet and not view.pairs and view.due("crowd"):
        return _describe_crowd(view)
    return _plan_tests(view)


def _plan_tests(view: ScientistView) -> PlannedReply:
    """Return the next test of the labels, or the conclusion if there are none."""
    # Nothing to test: the unit is dead, or no label is left
    if view.silent or not view.labels:
        return _plan_conclusion(view)
    if view.due("refine"):
        return _refine(view)
    again = view.case.done(GRADED)  # each label that failed is one more reason to look for what it misses
    # Before the edits: a second cause changes the leading label, and edits test only that one
    if view.due("seek", 1 + again):
        return _seek(view)
    if view.case.has("edit_images") and _list_editable(view) and view.due("edit"):
        return _edit(view)
    # After the edits: what they leave in doubt is pared
    if view.case.has("edit_images") and view.due("pare", _PARINGS + again) and (doubts := _list_doubts(view)):
        return _shorten_label(view, doubts)
    # Last, and on fresh images: a label must not be tested on the images by which it was chosen
    if view.due("validate", VALIDATIONS + again) and view.tested(view.labels[0]) is None:
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
    prose = findings.describe_exemplars(view) + (
        "\n\nExemplars may share what has nothing to do with the response. So I screen everything: "
        f"{2 * each} scenes in which every toy, colour, size, ground and light is dealt evenly and at random."
    )
    purpose = "every toy, colour, size, ground and light, dealt evenly"
    return _move(view, prose, replies.draw_program("screen", purpose, groups))


def _describe_crowd(view: ScientistView) -> PlannedReply:
    scenes = designs.balanced_scenes(view.rng("crowd"), [_CROWD] * view.fewer("crowd", _CROWDED))
    prose = (
        "Hardly anything drove the unit so far. It may want several things together, so I fill the scenes: "
        f"{len(scenes)} of {_CROWD} toys each, in which many pairs stand together."
    )
    purpose = "many toys together, dealt evenly"
    return _move(view, prose, replies.draw_program("crowd", purpose, {"six toys": scenes}))


def _refine(view: ScientistView) -> PlannedReply:
    # What deserves a closer look: leading concepts, what the exemplars suggest, and crossings of the best of both
    leading = list(dict.fromkeys(concept for label in view.labels[:40] for concept in label))[:5]
    hinted = [concept for concept, _ in view.hints][:4]
    singles = [concept for concept in dict.fromkeys((*leading[:4], *hinted[:3])) if len(concept.named) == 1]
    crossed = [
        one.having({name: getattr(other, name) for name in other.named})
        for one, other in itertools.combinations(singles, 2)
        # Crossing two words of one property would only replace one by the other
        if one.named != other.named
    ]
    rng = view.rng("refine")
    # The same pair, one toy on the other: "with" is what the exemplars show, "on" may be what counts
    related = [replace(pair, relation="on") for pair in view.pairs[:1]]
    every = (*view.suggested, *view.pairs[:3], *related, *leading, *hinted, *crossed)
    # Order is priority: `dict.fromkeys` keeps the first of equal candidates, and the limit cuts the rest
    candidates = list(dict.fromkeys(every))[:_CANDIDATES]
    each = view.fewer("refine", 6)
    groups = {
        f"{concept.phrase()}, and hard negatives": designs.build_matching_scenes((concept,), each, rng)
        + designs.hard_negatives((concept,), each // 2, rng)
        for concept in candidates
    }
    prose = findings.describe_screening(view) + (
        "\n\nSeveral explanations fit that many images by chance, so I test the likeliest ones, alone and crossed with "
        f"each other, against hard negatives: {', '.join(each.phrase() for each in candidates)}."
    )
    return _move(view, prose, replies.draw_program("refine", "the likeliest concepts against hard negatives", groups))


def _seek(view: ScientistView) -> PlannedReply:
    label = view.labels[0]
    scenes = designs.scenes_without(label, view.fewer("seek", _SOUGHT), _BESIDE, view.rng("seek"))
    prose = findings.describe_leading(view) + (
        f"\n\nOne cause is no proof that there is no other. So I look for images that are bright without it: "
        f"{len(scenes)} scenes of {_BESIDE} toys each that {phrase_label(label)} does not describe."
    )
    purpose = "a second cause: scenes without the leading concept"
    return _move(view, prose, replies.draw_program("seek", purpose, {"without it": scenes}))


def _list_editable(view: ScientistView) -> list[Concept]:
    """Return alternatives of the leading label for which an edit of a scene is unambiguous."""
    return [
        each
        for each in view.labels[0]
        # With several of a kind, "the ball" of an edit could be any of them
        if each.count == 1
        and each.relation == "with"
        and (each.partner is None or (each.noun and each.partner.noun and each.noun != each.partner.noun))
    ]


def _edit(view: ScientistView) -> PlannedReply:
    rng, concepts = view.rng("edit"), _list_editable(view)
    count = view.fewer("edit", _EDITED)
    scenes = designs.build_edited_scenes([concepts[place % len(concepts)] for place in range(count)], rng)
    plan = {caption(scene): designs.write_edits(scene, rng, _EDITS) for scene in scenes}
    prose = findings.describe_search(view) + (
        "\n\nWhat goes together need not be the cause. So I draw fresh images of the leading hypothesis and change one "
        "property at a time, everything else staying as it is."
    )
    purpose = "one change at a time to fresh images of the leading concept"
    return _move(view, prose, replies.edit_program("edit", purpose, plan))


def _list_doubts(view: ScientistView) -> list[tuple[Concept, Concept]]:
    """Return parts of the leading label that may be unnecessary, as alternatives with wider concepts that edits can
    test."""
    editable = _list_editable(view)
    return [each for each in list_untested(view.labels[0], view.evidence) if each[0] in editable][:_DOUBTS]


def _shorten_label(view: ScientistView, doubts: Sequence[tuple[Concept, Concept]]) -> PlannedReply:
    rng = view.rng("pare")
    plan: dict[str, list[str]] = {}
    for concept in dict.fromkeys(concept for concept, _ in doubts):
        lacking = [wider for each, wider in doubts if each == concept]
        for scene in designs.build_edited_scenes([concept] * view.fewer("pare", _PAIRED), rng):
            plan[caption(scene)] = [
                edit for wider in lacking for edit in designs.write_lacking_edits(scene, concept, wider, rng)
            ]
    prose = findings.describe_edits(view) + (
        f"\n\nDoes {phrase_label(view.labels[0])} say more than the unit needs? I take from fresh images one thing "
        "at a time that it says, and nothing else: what makes no difference goes."
    )
    purpose = "what the leading label says and perhaps need not"
    return _move(view, prose, replies.edit_program("pare", purpose, plan))


def _validate(view: ScientistView) -> PlannedReply:
    # The leading label and the next ones that are not mere variants with one concept more or less
    labels: list[Label] = []
    for label in view.labels[:60]:
        if len(labels) < 2 and not any(set(label) < set(other) or set(other) < set(label) for other in labels):
            labels.append(label)
    rng = view.rng("validate")
    each = view.fewer("validate", 10)
    groups: dict[str, list[Scene]] = {}
    for label in labels:
        groups[phrase_label(label)] = designs.build_matching_scenes(label, each, rng)
        groups[f"hard negatives of {phrase_label(label)}"] = designs.hard_negatives(label, each * 3 // 5, rng)
    groups["none of these"] = designs.negatives(labels, each, rng)
    prose = findings.describe_edits(view) + (
        "\n\nNow the test of what is left, on images drawn afresh: scenes that each label describes, hard negatives of "
        f"it, and scenes that none describes. The labels: {'; '.join(phrase_label(label) for label in labels)}."
    )
    purpose = "fresh scenes for and against the leading labels"
    return _move(view, prose, replies.draw_program("validate", purpose, groups))


def _move(view: ScientistView, prose: str, code: str) -> PlannedReply:
    listed = hypothesis_list.update_hypotheses(view.case.hypotheses, view.labels[:_LEADING], view.evidence)
    return PlannedReply(prose, listed, code)


def _plan_conclusion(view: ScientistView) -> PlannedReply:
    """Return the last reply: the description with its figures, and a label if there is one."""
    hypotheses = hypothesis_list.update_hypotheses(view.case.hypotheses, view.labels[:1], view.evidence)
    prose = "The evidence decides as far as my experiments can take it, so I conclude."
    if view.case.must_conclude:
        prose = "I was asked to conclude now, so this is the best that the evidence so far supports."
    label = phrase_label(findings.choose_label(view)) or "none"
    return PlannedReply(prose, hypotheses, conclusion=[("DESCRIPTION", findings.description(view)), ("LABEL", label)])
