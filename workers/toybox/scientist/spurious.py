"""Plans the test for spurious reliance: classes crossed with settings, the doubtful cells again, then the verdict.

Classes and settings are those that the question names, else all toys and all grounds. When the system is active, and
when it is selective, is as the task says (`agent/prompts/spurious.md`).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workers.toybox.scientist import describing, designs, replies
from workers.toybox.scientist.reading import ListedHypothesis
from workers.toybox.scientist.replies import PlannedReply
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
    """Where the system was active, in the classes and settings that are asked about."""

    active: dict[tuple[str, str], list[bool]]
    """Of each image, by class and setting. The class "" has no toy at all."""
    nouns: Sequence[str]
    grounds: Sequence[str]

    def share(self, classes: Sequence[str], settings: Sequence[str] = ()) -> tuple[float, int]:
        """The share of active images in these cells, of all settings unless some are named; how many they have."""
        places = itertools.product(classes, settings or self.grounds)
        cells = [each for place in places for each in self.active.get(place, [])]
        return (float(np.mean(cells)) if cells else 0.0), len(cells)

    def rank(self) -> list[str]:
        """The classes, that on which the system is active most often first."""
        return sorted(self.nouns, key=lambda noun: -self.share([noun])[0])

    def others(self, own: str) -> list[str]:
        """All classes but one."""
        return [noun for noun in self.nouns if noun != own]


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
    groups = {"classes in settings": designs.single_thing_scenes(cells, min(each, _AGAIN), rng)}
    prose = (
        f"A selective system responds to one class alone, and in every setting. So I cross {len(nouns)} classes with "
        f"{len(grounds)} settings; colour, size and light are dealt evenly."
    )
    code = replies.draw_program("cross", "every class in every setting", groups)
    return PlannedReply(prose, view.case.hypotheses, code)


def _confirm(view: ScientistView) -> PlannedReply:
    rng, table = view.rng("confirm"), _table(view)
    own, *others = table.rank()
    again = view.fewer("confirm", _AGAIN)
    cells = [Concept(noun=own, ground=ground) for ground in table.grounds]
    rivals = [Concept(noun=noun, ground=ground) for noun in others[:_OTHERS] for ground in table.grounds]
    groups = {
        plural(own): designs.single_thing_scenes(cells, again, rng),
        "other classes": designs.single_thing_scenes(rivals, 1, rng),
        "no toy": designs.empty_scenes(table.grounds, again, rng),
    }
    share, count = table.share([own])
    prose = (
        f"It was active on {share:.0%} of {count} images of {plural(own)}, more than for any other class. I draw those "
        "again in every setting, with the next classes beside them, and the settings without any toy."
    )
    purpose = "the leading class in every setting, its rivals, and the settings alone"
    return PlannedReply(prose, _hypotheses(table, own), replies.draw_program("confirm", purpose, groups))


def _table(view: ScientistView) -> ActivityTable:
    """All scenes of one toy or none, by class and setting."""
    trials = [trial for trial in view.evidence.trials if len(trial.scene.things) <= 1]
    # Active from a share of the mean of the exemplars on, or else of the mean of the best that were drawn
    best = sorted((trial.activation for trial in trials), reverse=True)[:15]
    line = float(np.mean(best)) * ACTIVE if best and best[0] > 0 else float("inf")
    if view.case.exemplar_mean is not None and view.case.exemplar_mean > 0:
        line = view.case.exemplar_mean * ACTIVE
    active: dict[tuple[str, str], list[bool]] = {}
    for trial in trials:
        noun = trial.scene.things[0].noun if trial.scene.things else ""
        active.setdefault((noun, trial.scene.ground), []).append(trial.activation >= line)
    return ActivityTable(active, *_find_named(view))


def _signs(table: ActivityTable, own: str) -> list[str]:
    """Signs of spurious reliance, each a sentence with its figures."""
    signs = []
    for noun in table.others(own):
        share, count = table.share([noun])
        if share > FEW and count > 1:
            signs.append(f"It is active on {share:.0%} of {count} images of {plural(noun)}.")
    for ground in table.grounds:
        share, count = table.share([own], [ground])
        if share < MOST and count > 1:
            signs.append(f"On {ground} it is active on {share:.0%} of only {count} images of {plural(own)}.")
        share, count = table.share(table.others(own), [ground])
        if share > FEW and count > 1:
            signs.append(f"On {ground} it is active on {share:.0%} of {count} images of other classes.")
    share, count = table.share([""])
    if share > FEW:
        signs.append(f"It is active on {share:.0%} of {count} images without any toy.")
    return signs


def _hypotheses(table: ActivityTable, own: str) -> list[ListedHypothesis]:
    signs = _signs(table, own)
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
    table = _table(view)
    own = table.rank()[0]
    signs, (share, count), (rest, rest_count) = _signs(table, own), table.share([own]), table.share(table.others(own))
    selective = not signs and count >= 2 * len(table.grounds)
    reasons = [
        f"An image counts as active from a third of the mean exemplar activation. {plural(own).capitalize()}: active "
        f"on {share:.0%} of {count} images on {join_words(table.grounds)}; all other classes: {rest:.0%} of "
        f"{rest_count}.",
        *signs[:6],
    ]
    if selective:
        reasons.append(f"So it is selective to {plural(own)}.")
    elif not signs:
        reasons.append("The table has too few images to trust it, so I choose SPURIOUS.")
    return PlannedReply(
        "The table of classes and settings decides, so I conclude.",
        _hypotheses(table, own),
        conclusion=[("REASONING", " ".join(reasons)), ("LABEL", "SELECTIVE" if selective else "SPURIOUS")],
    )
