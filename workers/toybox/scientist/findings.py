"""Describe findings in sentences with figures: means, spread, numbers of images, certainty."""

from __future__ import annotations

import math

import numpy as np

from workers.toybox.scientist.idle import remove_idle_parts
from workers.toybox.scientist.scoring import ENOUGH, SINGLES, Label, LabelScore
from workers.toybox.scientist.trials import changed_property, pair_edits
from workers.toybox.scientist.view import ScientistView
from workers.toybox.world.concepts import matches_any, phrase_label

_WORTHLESS = 0.6
"""Minimum AUC for a label to be useful."""
_CHANCE = 0.5
"""The AUC of a label without information."""


def describe_exemplars(view: ScientistView) -> str:
    """Describe what the exemplars share."""
    if not view.exemplars:
        return "No image of the dataset is known to activate this unit."
    # The first few: they are sorted by surprise
    shared = [f"{count} of {len(view.exemplars)} show {phrase_label((concept,))}" for concept, count in view.hints[:4]]
    if not shared:
        return f"The {len(view.exemplars)} exemplars share nothing that chance would not give them."
    mean = float(np.mean([activation for _, activation in view.exemplars]))
    return f"The exemplars, {mean:.2f} on average, share more than chance would give them: {'; '.join(shared)}."


def describe_screening(view: ScientistView) -> str:
    """Describe which single properties go with high activations."""
    ranked = sorted(SINGLES, key=lambda each: -view.evidence.worth((each,)))[:3]
    words = [f"{phrase_label((each,))} ({view.evidence.measure((each,))})" for each in ranked]
    return f"Single properties that separate high from low, over {len(view.evidence)} images: {'; '.join(words)}."


def describe_leading(view: ScientistView) -> str:
    """Describe the figures of the leading label."""
    label = view.labels[0]
    return f"Ahead, over {len(view.evidence)} images, is {phrase_label(label)}: {view.evidence.measure(label)}."


def describe_search(view: ScientistView) -> str:
    """Describe the result of the search for a second cause."""
    found = [trial for trial in view.evidence.trials if trial.step == "seek"]
    label, bright = view.labels[0], [trial for trial in found if matches_any(view.labels[0], trial.scene)]
    if not found:
        return describe_leading(view)
    if bright:
        more = f"ahead is {phrase_label(label)} now, which {len(bright)} of {len(found)} images show"
        return f"The search found more: {more}."
    return f"Of {len(found)} images without {phrase_label(label)}, none pointed to a second cause."


def describe_edits(view: ScientistView) -> str:
    """Describe the effect of single changes on the activation."""
    # For each property: means before and after it was changed, and how often the activation fell.
    found: dict[str, list[tuple[float, float]]] = {}
    for old, new in pair_edits(view.evidence.trials):
        if name := changed_property(old.scene, new.scene):
            found.setdefault(name, []).append((old.activation, new.activation))
    effects = []
    for name, both in found.items():
        before, after = np.mean(both, axis=0)
        fell = sum(new < old for old, new in both)
        effects.append(
            f"another {name} takes it from {before:.2f} to {after:.2f} on average ({fell} of {len(both)} fell)"
        )
    if not effects:
        return "No edit could be compared with its original."
    return "Changing one property of images that the unit responds to, I found: " + "; ".join(effects) + "."


# --- the conclusion -----------------------------------------------------------------------------------


def choose_label(view: ScientistView) -> Label:
    """Return the label of the conclusion: the best that passed its test. Empty if the unit is silent or none passed.

    Without a test, return the best one if it is good on the trials by which it was chosen.
    """
    if view.silent or not view.labels:
        return ()
    if not len(view.evidence):
        return view.labels[0]
    # 1. Tested labels decide, even if none passed: fresh images outweigh those by which a label was chosen
    if view.tests:
        passed = [each for each in view.tests if (found := view.tested(each)) and _is_above_chance(found)]
        # 2. Of those that passed, prefer labels without idle parts
        needed = [each for each in passed if remove_idle_parts(each, view.evidence) == each]
        return max(needed or passed, key=view.evidence.worth, default=())
    # 3. Without a test, the bar is the same on the trials at hand
    return view.labels[0] if _is_above_chance(view.evidence.measure(view.labels[0])) else ()


def _is_above_chance(found: LabelScore) -> bool:
    """True if a label almost certainly describes something about the unit."""
    # Two standard errors above chance, and useful in size
    return found.count >= ENOUGH and found.auc >= _WORTHLESS and found.auc - 2 * found.error > _CHANCE


def description(view: ScientistView) -> str:
    """Describe what the unit responds to and what not, with figures and certainty."""
    if view.silent:
        return (
            "The unit never responded: no image of the dataset activates it, and all "
            f"{len(view.evidence)} scenes that I drew, with every toy, colour, size, ground and light among them, gave "
            f"the same activation, {view.evidence.activations[0]:.2f}. It seems dead, so I give it no label."
        )
    if not len(view.evidence):
        return f"{describe_exemplars(view)} I could not test this with images of my own, so it is a guess."
    best = choose_label(view)
    if not best:
        return _explain_nothing(view)
    found = view.evidence.measure(best)
    spread = "" if math.isnan(found.spread) else f", standard deviation {found.spread:.2f}"
    near = f", {found.near_mean:.2f} on {found.near} hard negatives" if found.near else ""
    said = [
        f"The unit responds to {phrase_label(best)}: {found.mean:.2f} on average over {found.count} images{spread}, "
        f"against {found.others_mean:.2f} over {found.others} images that show none of it{near}."
    ]
    if len(best) > 1:
        parts = []
        for concept in best:
            shown = view.evidence.activations[view.evidence.shows(concept)]
            parts.append(f"{phrase_label((concept,))} {np.mean(shown):.2f} (n={len(shown)})")
        said.append(f"Apart: {'; '.join(parts)}.")
    said += _describe_causes(view, best)
    if rival := _describe_rejected(view, best):
        said.append(rival)
    return " ".join([*said, _describe_certainty(view, best)])


def _explain_nothing(view: ScientistView) -> str:
    """Explain why there is no label."""
    activations, leading = view.evidence.activations, view.labels[0]
    above = int((activations > activations.min()).sum())
    return (
        f"I found no concept that parts high from low activations. Of {len(activations)} images, {above} activated the "
        f"unit more than the rest, by {activations.max() - activations.min():.2f} at most. The best that I can say is "
        f"{phrase_label(leading)} ({view.evidence.measure(leading)}), and that is not enough for a label."
    )


def _describe_causes(view: ScientistView, best: Label) -> list[str]:
    """Describe the effect of edits that removed the label from an image, and of those that kept it."""
    said = []
    # Only edits of images that the label describes: others had nothing to lose
    both = [(old, new) for old, new in pair_edits(view.evidence.trials) if matches_any(best, old.scene)]
    for still, words in ((False, "leave nothing of it in an image"), (True, "leave it in the image")):
        found = [(old.activation, new.activation) for old, new in both if matches_any(best, new.scene) == still]
        if found:
            before, after = np.mean(found, axis=0)
            fell = sum(new < old for old, new in found)
            said.append(
                f"Edits of one property that {words} take it from {before:.2f} to {after:.2f} on average "
                f"({fell} of {len(found)} fell)."
            )
    return said


def _describe_rejected(view: ScientistView, best: Label) -> str:
    """Describe the most striking hint of the exemplars that the label does not name."""
    for concept, count in view.hints:
        found = view.evidence.measure((concept,))
        # Skip hints that share a property with the label: they would not be rivals but parts of it
        named = {getattr(each, name) for each in best for name in each.named}
        if not named & {getattr(concept, name) for name in concept.named} and found.count >= ENOUGH:
            return (
                f"{count} exemplars show {phrase_label((concept,))}, but drawn on purpose these do not drive it as much"
                f": {found}."
            )
    return ""


def _describe_certainty(view: ScientistView, best: Label) -> str:
    """Describe how certain the conclusion is."""
    found = view.tested(best)
    if found is None:
        return "The label was not tested on images drawn for the purpose, so I am not sure of it."
    low = found.auc - 2 * found.error
    sure = "I am confident of it" if low > 0.8 else "It is likely" if low > 0.65 else "I am not sure of it"
    return (
        f"On images drawn to test it, {found.count} that it describes against {found.others} that it does not, "
        f"the AUC is {found.auc:.2f} ± {2 * found.error:.2f}. {sure}; what toybox cannot draw was not tried."
    )
