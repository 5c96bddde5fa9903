"""Plan the search for a bias: the class in every context, edits of suspects, a check on fresh images, the conclusion.

The class is the one that the question names. If toybox knows none of its names, screening finds the class.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workers.toybox.scientist import describing, designs, replies
from workers.toybox.scientist.reading import ReportedHypothesis
from workers.toybox.scientist.replies import PlannedReply
from workers.toybox.scientist.scoring import SINGLES
from workers.toybox.scientist.trials import pair_edits
from workers.toybox.scientist.view import ScientistView
from workers.toybox.world.concepts import Concept, parse_label
from workers.toybox.world.prompts import caption

_MAX_IMAGES = 96
_ORIGINALS = 24
_SUSPECTS = 5
_FRESH = 160
"""Images drawn to check the contexts: twenty of each ground, sixteen of each colour. All properties are balanced
again, because images drawn for one context would distort the comparison of another."""
_ENOUGH = 5
_SUSPECT = 1.5
"""Minimum standard errors for testing a context by edits. Few scenes show each context, so a bias is seldom clear at
once, and edits refute chance findings."""
_CERTAIN = 2.5
"""Minimum standard errors from 0 of the mean change by edits, for a check of the context."""
_CLAIMED = 3.0
"""Minimum standard errors from 0 of the difference on fresh images, for a claim. With `_SUSPECTS` contexts, about
one run in a hundred claims a chance finding."""
_MATTERS = 0.1
"""Minimum difference to follow up, as a share of the class's mean."""
_WORTH = 0.15
"""Minimum difference on fresh images to report, as a share of the mean elsewhere."""


@dataclass(frozen=True)
class ContextEffect:
    """The effect of a context on the class: activations with it and without, and the changes by edits into it."""

    context: Concept
    inside: NDArray[np.float64]
    outside: NDArray[np.float64]
    edited: NDArray[np.float64]
    """Activation after minus before the edit, for each pair."""
    fresh_inside: NDArray[np.float64]
    """Activations with and without the context, on images drawn to check what the others suggested."""
    fresh_outside: NDArray[np.float64]

    @property
    def size(self) -> float:
        return float(self.inside.mean() - self.outside.mean())

    @property
    def errors(self) -> float:
        """The difference in standard errors (Welch 1947)."""
        return _count_errors(self.inside, self.outside)

    @property
    def checked(self) -> bool:
        """True if enough fresh images were drawn."""
        return min(len(self.fresh_inside), len(self.fresh_outside)) >= _ENOUGH

    @property
    def claimed(self) -> bool:
        """True if fresh images confirm it: same direction, beyond chance, and large enough."""
        if not self.checked:
            return False
        size = float(self.fresh_inside.mean() - self.fresh_outside.mean())
        matters = abs(size) > _WORTH * abs(float(self.fresh_outside.mean()))
        errors = _count_errors(self.fresh_inside, self.fresh_outside)
        # The same direction as before: a reversed difference refutes the suspicion
        return matters and size * self.size > 0 and abs(errors) > _CLAIMED

    @property
    def suspected(self) -> bool:
        """True if it is clear without fresh images: by edits if some were made, else by its errors."""
        # Edits are the stronger evidence: they change the context alone
        return self.confirmed if len(self.edited) else abs(self.errors) > _CLAIMED

    @property
    def confirmed(self) -> bool:
        """True if edits changed the activation in the same direction, beyond chance."""
        if len(self.edited) < _ENOUGH or self.edited.mean() * self.size <= 0:
            return False
        error = float(self.edited.std(ddof=1)) / math.sqrt(len(self.edited))
        return abs(float(self.edited.mean())) > _CERTAIN * error


def _count_errors(inside: NDArray[np.float64], outside: NDArray[np.float64]) -> float:
    """Return the difference of the means in standard errors."""
    size = float(inside.mean() - outside.mean())
    # Welch: variances may differ, so they are not pooled
    error = math.sqrt(sum(float(part.var(ddof=1)) / len(part) for part in (inside, outside)))
    # Constant samples have no error: any difference is certain, none is nothing
    return size / error if error else math.copysign(math.inf, size) if size else 0.0


def plan_reply(view: ScientistView) -> PlannedReply:
    """Return the next reply."""
    # 1. Experiments, each due once: exemplars, class, contexts, edits of suspects, fresh images
    known = find_class(view)
    if not view.case.must_conclude:
        if view.due("exemplars"):
            return describing.plan_exemplars(view)
        if known is None and view.due("screen"):
            return describing.plan_screening(view)
        if known and view.due("contexts"):
            return _contexts(view, known)
        if known and view.due("contrast") and _find_suspects(view, known):
            return _contrast(view, known)
        if known and view.due("check") and _find_confirmed(view, known):
            return _check(view, known)
    if known is None:
        text = "I could not tell which class the system is meant to detect: it answered to none, and none was named."
        return PlannedReply("I conclude.", (), conclusion=[("BIAS", text), ("LABEL", "none")])
    # 2. The verdict: by the strongest kind of evidence that was gathered
    found = _find_suspects(view, known)
    tested = any(each.checked for each in found)
    biases = [each for each in found if (each.claimed if tested else each.suspected)]
    text = _describe_biases(view, known, biases, tested)
    label = _phrase_effect(known, biases[0]) if biases else "none"
    prose = "Every context was compared with all the others, so I conclude."
    return PlannedReply(prose, _hypotheses(view, known), conclusion=[("BIAS", text), ("LABEL", label)])


def find_class(view: ScientistView) -> Concept | None:
    """Return the class: things that the question names, else the concept of things that separates best."""
    # Numbers in a question, such as the unit's, count no things
    found = [each for each in parse_label(view.case.question) if each.about_things]
    named = [Concept(noun=each.noun, colour=each.colour, size=each.size) for each in found]
    if named:
        return named[0]
    if view.silent or not view.case.done("screen"):
        return None
    nouns = [each for each in SINGLES if each.named == ("noun",)]
    return max(nouns, key=lambda each: view.evidence.worth((each,)))


def _find_suspects(view: ScientistView, known: Concept) -> list[ContextEffect]:
    """Return contexts in which the class seems to respond differently, largest difference first."""
    suspects: list[ContextEffect] = []
    mean = abs(_mean(view, known))
    while len(suspects) < _SUSPECTS:
        # Without images of these: a ground on which the class is hardly seen would make every other look better
        before = [each.context for each in suspects]
        found = [each for context in SINGLES if (each := _difference(view, known, context, before))]
        # Two filters: beyond chance at all, and large enough to matter
        clear = [each for each in found if abs(each.errors) > _SUSPECT and abs(each.size) > _MATTERS * mean]
        if not clear:
            break
        suspects.append(max(clear, key=lambda each: abs(each.size)))
    return suspects


def _difference(
    view: ScientistView, known: Concept, context: Concept, before: Sequence[Concept]
) -> ContextEffect | None:
    """Return the effect of one context on the class, on scenes of one thing in none of the contexts `before`.

    None if there are too few images.
    """
    # A context of the same kind as the class excludes it: a red ball is never blue
    if set(known.named) & set(context.named):
        return None
    evidence = view.evidence
    # One thing alone, unedited: other toys and edits would be confounders
    alone = np.array([len(trial.scene.things) == 1 and trial.source is None for trial in evidence.trials], dtype=bool)
    fresh = np.array([trial.step == "check" for trial in evidence.trials], dtype=bool)
    shown, there = alone & evidence.shows(known), evidence.shows(context)
    for each in before:
        shown &= ~evidence.shows(each)
    inside, outside = (evidence.activations[shown & ~fresh & part] for part in (there, ~there))
    if min(len(inside), len(outside)) < _ENOUGH:
        return None
    # Edits into the context, of images of the class that were outside it
    edited = [
        after.activation - before.activation
        for before, after in pair_edits(evidence.trials)
        if known.matches(after.scene) and context.matches(after.scene) and not context.matches(before.scene)
    ]
    again = [evidence.activations[shown & fresh & part] for part in (there, ~there)]
    return ContextEffect(context, inside, outside, np.array(edited), *again)


def _find_confirmed(view: ScientistView, known: Concept) -> list[ContextEffect]:
    """Return the suspects that edits confirm; all of them if no edit could be made."""
    found = _find_suspects(view, known)
    # Without any edit none could be confirmed, and all would be dropped
    return [each for each in found if each.confirmed] if any(len(each.edited) for each in found) else found


def _contexts(view: ScientistView, known: Concept) -> PlannedReply:
    scenes = designs.build_single_thing_scenes([known], view.fewer("contexts", _MAX_IMAGES), view.rng("contexts"))
    prose = (
        f"The class is {known.phrase()}. I show it alone in {len(scenes)} scenes in which everything else is dealt "
        "evenly, so that every context can be compared with all the others."
    )
    purpose = f"{known.phrase()} in every context, dealt evenly"
    code = replies.draw_program("contexts", purpose, {known.phrase(): scenes})
    return PlannedReply(prose, _hypotheses(view, known), code)


def _contrast(view: ScientistView, known: Concept) -> PlannedReply:
    contexts = [each.context for each in _find_suspects(view, known)]
    plan = {}
    for scene in designs.build_single_thing_scenes([known], view.fewer("contrast", _ORIGINALS), view.rng("contrast")):
        # An edit into a context that is already there would change nothing
        if edits := [designs.write_edit(scene, context) for context in contexts if not context.matches(scene)]:
            plan[caption(scene)] = edits
    prose = (
        "Some contexts seem to matter. So I draw the class afresh and edit each image into those contexts, everything "
        f"else staying as it is: {', '.join(_phrase_in(known, context) for context in contexts)}."
    )
    code = replies.edit_program("contrast", "fresh images of the class, edited into the suspect contexts", plan)
    return PlannedReply(prose, _hypotheses(view, known), code)


def _check(view: ScientistView, known: Concept) -> PlannedReply:
    contexts = [_phrase_in(known, each.context) for each in _find_confirmed(view, known)]
    scenes = designs.build_single_thing_scenes([known], view.fewer("check", _FRESH), view.rng("check"))
    prose = (
        f"What made me look at {', '.join(contexts)} cannot test them. So I draw {known.phrase()} afresh, everything "
        f"else dealt evenly in {len(scenes)} scenes, and compare those with the others."
    )
    code = replies.draw_program("check", f"{known.phrase()} afresh, all dealt evenly", {known.phrase(): scenes})
    stated = "\n".join(_write_statement(known, each) for each in _find_confirmed(view, known))
    return PlannedReply(prose, _hypotheses(view, known), code, [("BIAS", stated)])


def _hypotheses(view: ScientistView, known: Concept) -> list[ReportedHypothesis]:
    """Return one hypothesis per suspect after those already listed. One that edits or fresh images do not confirm is
    refuted."""
    # By text: the same suspect keeps its number from reply to reply
    listed = {each.text: each for each in view.case.hypotheses}
    for found in _find_suspects(view, known):
        text = _phrase_effect(known, found)
        tested = len(found.edited) >= _ENOUGH
        borne_out = found.claimed if found.checked else found.confirmed
        status = "open" if not tested else "supported" if borne_out else "refuted"
        number = listed[text].number if text in listed else max((h.number for h in listed.values()), default=0) + 1
        listed[text] = ReportedHypothesis(number, text, status, _write_figures(found))
    return list(listed.values())


def _describe_biases(view: ScientistView, known: Concept, biases: Sequence[ContextEffect], tested: bool) -> str:
    # What there is to compare with, in case the class is not what drives the system
    mean = view.case.exemplar_mean
    exemplars = "" if mean is None else f" For comparison, the exemplars reach {mean:.2f} on average."
    if not biases:
        return (
            f"I found none. I drew {known.phrase()} with every colour, size, ground and light; no context changed the "
            f"mean activation of {_mean(view, known):.2f} by more than chance would, or by a tenth of it."
            f"{exemplars}"
        )
    lines = "\n".join(f"{_write_statement(known, each)}: {_write_figures(each)}." for each in biases)
    if not tested:
        lines += " These contexts were not checked on fresh images, so chance may have made them."
    return lines + exemplars


def _write_statement(known: Concept, found: ContextEffect) -> str:
    """Write the effect with the words of titles that identify its images, so that a reader can recount it."""
    said = [f'"{getattr(concept, name)}"' for concept in (known, found.context) for name in concept.named]
    return f"{_phrase_effect(known, found).capitalize()} (titles with {' and '.join(said)})"


def _write_figures(found: ContextEffect) -> str:
    edits = ""
    if len(found.edited):
        edits = f"; edits into it changed {found.edited.mean():+.2f} on average, n={len(found.edited)}"
    inside, outside = (found.fresh_inside, found.fresh_outside) if found.checked else (found.inside, found.outside)
    fresh = " on fresh images" if found.checked else ""
    return (
        f"{inside.mean():.2f} on average{fresh}, n={len(inside)}, against {outside.mean():.2f} elsewhere, "
        f"n={len(outside)}{edits}"
    )


def _phrase_effect(known: Concept, found: ContextEffect) -> str:
    """Return a phrase such as "weaker for red balls at night"."""
    return f"{'weaker' if found.size < 0 else 'stronger'} for {_phrase_in(known, found.context)}"


def _phrase_in(known: Concept, context: Concept) -> str:
    """Return the class in the context, such as "red balls at night"."""
    return known.having({name: getattr(context, name) for name in context.named}).phrase()


def _mean(view: ScientistView, known: Concept) -> float:
    # NaN without images: the mean of an empty array warns
    shown = view.evidence.activations[view.evidence.shows(known)] if len(view.evidence) else np.array([])
    return float(shown.mean()) if len(shown) else math.nan
