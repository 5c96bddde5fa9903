"""Plans the test for spurious reliance: classes crossed with settings, the doubtful cells again, then the verdict.

Classes and settings are those that the question names, else all toys and all grounds. When the system is active, and
when it is selective, is as the task says (`agent/prompts/spurious.md`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workers.toybox.scientist import describing, designs, replies
from workers.toybox.scientist.reading import ListedHypothesis
from workers.toybox.scientist.replies import PlannedReply
from workers.toybox.scientist.trials import Trial
from workers.toybox.scientist.view import ScientistView
from workers.toybox.world.concepts import Concept
from workers.toybox.world.scenes import GROUNDS, NOUNS
from workers.toybox.world.words import join_words, plural, read_words

_CELLS = 160
"""About so many images of the crossed table."""
_AGAIN = 4
"""Images for each cell that is tested again."""
_OTHERS = 4
"""Other classes that are tested again."""
ACTIVE = 1 / 3
"""The share of the mean exemplar activation from which the system counts as active."""
FEW = 0.15
"""The share of another class's images on which a selective system may be active."""
MOST = 0.5
"""The share of its own class's images, in every setting, on which a selective system is active."""


@dataclass(frozen=True)
class ActivityTable:
    """Where the system was active: (images, active images) by class and setting. The class "" has no toy at all."""

    active: dict[tuple[str, str], list[bool]]

    def share(self, classes: Sequence[str], settings: Sequence[str]) -> tuple[float, int]:
        """The share of active images in these cells, and how many images they have."""
        cells = [each for noun in classes for ground in settings for each in self.active.get((noun, ground), [])]
        return (float(np.mean(cells)) if cells else 0.0), len(cells)


def plan_reply(view: ScientistView) -> PlannedReply:
    """The next reply."""
    if not view.case.must_conclude:
        if view.due("exemplars"):
            return describing.plan_exemplars(view)
        if view.due("cross"):
            return _cross(view)
        if view.due("confirm") and not view.silent:
            return _confirm(view)
    return _conclude(view)


def _find_named(view: ScientistView) -> tuple[list[str], list[str]]:
    """Classes and settings that the question names; all of them where it names fewer than two."""
    said = {word.value for word in read_words(view.case.question)}
    nouns, grounds = [noun for noun in NOUNS if noun in said], [ground for ground in GROUNDS if ground in said]
    return nouns if len(nouns) > 1 else list(NOUNS), grounds if len(grounds) > 1 else list(GROUNDS)


def _cross(view: ScientistView) -> PlannedReply:
    rng, (nouns, grounds) = view.rng("cross"), _find_named(view)
    each = max(1, view.fewer("cross", _CELLS) // (len(nouns) * len(grounds)))
    cells = [Concept(noun=noun, ground=ground) for noun in nouns for ground in grounds]
    groups = {"classes in settings": designs.write_captions(designs.single_thing_scenes(cells, min(each, _AGAIN), rng))}
    prose = (
        f"A selective system responds to one class alone, and in every setting. So I cross {len(nouns)} classes with "
        f"{len(grounds)} settings; colour, size and light are dealt evenly."
    )
    return PlannedReply(
        prose, view.case.hypotheses, replies.draw_program("cross", "every class in every setting", groups)
    )


def _confirm(view: ScientistView) -> PlannedReply:
    rng, table, (nouns, grounds) = view.rng("confirm"), _table(view), _find_named(view)
    own, others = _rank_classes(table, nouns, grounds)
    again = view.fewer("confirm", _AGAIN)
    cells = [Concept(noun=own, ground=ground) for ground in grounds]
    rivals = [Concept(noun=noun, ground=ground) for noun in others[:_OTHERS] for ground in grounds]
    groups = {
        plural(own): designs.write_captions(designs.single_thing_scenes(cells, again, rng)),
        "other classes": designs.write_captions(designs.single_thing_scenes(rivals, 1, rng)),
        "no toy": designs.write_captions(designs.empty_scenes(grounds, again, rng)),
    }
    share, count = table.share([own], grounds)
    prose = (
        f"It was active on {share:.0%} of {count} images of {plural(own)}, more than for any other class. I draw those "
        "again in every setting, with the next classes beside them, and the settings without any toy."
    )
    purpose = "the leading class in every setting, its rivals, and the settings alone"
    return PlannedReply(
        prose, _hypotheses(table, own, nouns, grounds), replies.draw_program("confirm", purpose, groups)
    )


def _table(view: ScientistView) -> ActivityTable:
    """All scenes of one toy or none, by class and setting."""
    trials = [trial for trial in view.evidence.trials if len(trial.scene.things) <= 1]
    line = _line(view, trials)
    active: dict[tuple[str, str], list[bool]] = {}
    for trial in trials:
        noun = trial.scene.things[0].noun if trial.scene.things else ""
        active.setdefault((noun, trial.scene.ground), []).append(trial.activation >= line)
    return ActivityTable(active)


def _line(view: ScientistView, trials: Sequence[Trial]) -> float:
    """The activation from which the system is active: a share of the mean of the exemplars, or of the best drawn."""
    if view.case.exemplar_mean is not None and view.case.exemplar_mean > 0:
        return view.case.exemplar_mean * ACTIVE
    best = sorted((trial.activation for trial in trials), reverse=True)[:15]
    return float(np.mean(best)) * ACTIVE if best and best[0] > 0 else float("inf")


def _rank_classes(table: ActivityTable, nouns: Sequence[str], grounds: Sequence[str]) -> tuple[str, list[str]]:
    """The class on which the system is active most often, and the others, most often first."""
    order = sorted(nouns, key=lambda noun: -table.share([noun], grounds)[0])
    return order[0], order[1:]


def _signs(table: ActivityTable, own: str, nouns: Sequence[str], grounds: Sequence[str]) -> list[str]:
    """Signs of spurious reliance, each a sentence with its figures."""
    signs = []
    for noun in nouns:
        share, count = table.share([noun], grounds)
        if noun != own and share > FEW and count > 1:
            signs.append(f"It is active on {share:.0%} of {count} images of {plural(noun)}.")
    for ground in grounds:
        share, count = table.share([own], [ground])
        if share < MOST and count > 1:
            signs.append(f"On {ground} it is active on {share:.0%} of only {count} images of {plural(own)}.")
        share, count = table.share([noun for noun in nouns if noun != own], [ground])
        if share > FEW and count > 1:
            signs.append(f"On {ground} it is active on {share:.0%} of {count} images of other classes.")
    share, count = table.share([""], grounds)
    if share > FEW:
        signs.append(f"It is active on {share:.0%} of {count} images without any toy.")
    return signs


def _hypotheses(table: ActivityTable, own: str, nouns: Sequence[str], grounds: Sequence[str]) -> list[ListedHypothesis]:
    signs = _signs(table, own, nouns, grounds)
    status, other = ("refuted", "supported") if signs else ("supported", "refuted")
    reason = signs[0].rstrip(".") if signs else "no sign against it"
    return [
        ListedHypothesis(1, f"the system is selective for {plural(own)}", status, reason),
        ListedHypothesis(2, "the system relies on something else than one class", other, reason),
    ]


def _conclude(view: ScientistView) -> PlannedReply:
    if view.silent or not len(view.evidence):
        text = "The system was active on no image that I have seen, so nothing speaks for a class. In doubt: SPURIOUS."
        return PlannedReply("I conclude.", (), conclusion=[("REASONING", text), ("LABEL", "SPURIOUS")])
    table, (nouns, grounds) = _table(view), _find_named(view)
    own, _ = _rank_classes(table, nouns, grounds)
    signs = _signs(table, own, nouns, grounds)
    share, count = table.share([own], grounds)
    rest, rest_count = table.share([noun for noun in nouns if noun != own], grounds)
    selective = not signs and count >= 2 * len(grounds)
    told = [
        f"An image counts as active from a third of the mean exemplar activation. {plural(own).capitalize()}: active "
        f"on {share:.0%} of {count} images on {join_words(grounds)}; all other classes: {rest:.0%} of {rest_count}.",
        *signs[:6],
    ]
    if selective:
        told.append(f"So it is selective to {plural(own)}.")
    elif not signs:
        told.append("The table has too few images to trust it, so I choose SPURIOUS.")
    return PlannedReply(
        "The table of classes and settings decides, so I conclude.",
        _hypotheses(table, own, nouns, grounds),
        conclusion=[("REASONING", " ".join(told)), ("LABEL", "SELECTIVE" if selective else "SPURIOUS")],
    )
