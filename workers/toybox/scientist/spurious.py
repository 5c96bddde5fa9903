"""Plan the test for spurious features: classes crossed with settings, repetition of uncertain tables, then the
verdict.

Classes and settings are those that the question names, else all toys and all grounds. The task defines when the
system is selective (`agent/prompts/spurious.md`): the table of mean activations by class and setting decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from workers.toybox.scientist import describing, designs, replies
from workers.toybox.scientist.reading import ReportedHypothesis
from workers.toybox.scientist.replies import PlannedReply
from workers.toybox.scientist.view import ScientistView
from workers.toybox.world.concepts import Concept
from workers.toybox.world.scenes import GROUNDS, NOUNS
from workers.toybox.world.words import join_words, plural, read_words

_CELLS = 160
"""Approximate number of images in the crossed table."""
_MAX_EACH = 10
"""Maximum number of images of one class in one setting. With fewer classes, more would add little."""
SHARE = 0.6
"""Minimum share of the table's variance that the classes explain in a selective system."""
LEAD = 0.25
"""Minimum lead of its class over the next one, as a share of the distance to the lowest class."""
_DOUBT = 0.15
"""The table is repeated if one of its figures is this close to its threshold."""


@dataclass(frozen=True)
class ResponseTable:
    """Mean activations by class and setting."""

    means: NDArray[np.float64]
    """(classes, settings); NaN where nothing was drawn."""
    nouns: Sequence[str]
    grounds: Sequence[str]
    count: int
    """Number of images in all cells."""

    @cached_property
    def by_class(self) -> NDArray[np.float64]:
        """(classes,), means over the settings."""
        found: NDArray[np.float64] = self.means.mean(1)
        return found

    @cached_property
    def order(self) -> list[int]:
        """Classes, highest mean first."""
        return [int(place) for place in np.argsort(-self.by_class, kind="stable")]

    @property
    def own(self) -> str:
        """The class with the highest mean."""
        return self.nouns[self.order[0]]

    @cached_property
    def share(self) -> float:
        """Share of the variance of the means that the classes explain, in [0, 1]; 0 without variance."""
        middle = self.means.mean()
        whole = float(((self.means - middle) ** 2).mean())
        return float(((self.by_class - middle) ** 2).mean()) / whole if whole > 0 else 0.0

    @cached_property
    def lead(self) -> float:
        """Distance from the first class to the next, as a share of the distance to the lowest; 0 without any."""
        first, second, last = (float(self.by_class[place]) for place in (*self.order[:2], self.order[-1]))
        return (first - second) / (first - last) if first > last else 0.0

    @cached_property
    def passed(self) -> list[tuple[str, str]]:
        """Settings in which another class leads, with that class."""
        best = self.means.argmax(0)
        return [
            (ground, self.nouns[int(place)])
            for ground, place in zip(self.grounds, best, strict=True)
            if int(place) != self.order[0]
        ]

    @property
    def complete(self) -> bool:
        return len(self.nouns) > 1 and bool(np.isfinite(self.means).all())

    @property
    def doubtful(self) -> bool:
        """True if more images might change the verdict."""
        # Near a threshold, chance decides; also where a single setting is against the class
        near = abs(self.share - SHARE) < _DOUBT or abs(self.lead - LEAD) < _DOUBT
        return self.complete and self.share > SHARE - _DOUBT and (near or len(self.passed) == 1)


def plan_reply(view: ScientistView) -> PlannedReply:
    """Return the next reply."""
    if not view.case.must_conclude:
        if view.due("exemplars"):
            return describing.plan_exemplars(view)
        if view.due("cross"):
            return _cross(view, "cross")
        if view.due("again") and not view.silent and _table(view).doubtful:
            return _cross(view, "again")
    return _conclude(view)


def _find_named(view: ScientistView) -> tuple[list[str], list[str]]:
    """Return the classes and settings that the question names; all of them if it names fewer than two."""
    said = {word.value for word in read_words(view.case.question)}
    nouns, grounds = [noun for noun in NOUNS if noun in said], [ground for ground in GROUNDS if ground in said]
    return nouns if len(nouns) > 1 else list(NOUNS), grounds if len(grounds) > 1 else list(GROUNDS)


def _cross(view: ScientistView, step: str) -> PlannedReply:
    rng, (nouns, grounds) = view.rng(step), _find_named(view)
    # At least one image in each cell: an empty one makes the table incomplete
    each = max(1, view.fewer(step, _CELLS) // (len(nouns) * len(grounds)))
    cells = [Concept(noun=noun, ground=ground) for noun in nouns for ground in grounds]
    groups = {"classes in settings": designs.build_single_thing_scenes(cells, min(each, _MAX_EACH), rng)}
    if step == "cross":
        hypotheses = list(view.case.hypotheses)
        prose = (
            "A selective system responds to one class alone, and in every setting. So I cross "
            f"{len(nouns)} classes with {len(grounds)} settings; colour, size and light are dealt evenly."
        )
    else:
        table = _table(view)
        hypotheses = _hypotheses(table)
        prose = f"{_write_figures(table)} That is near a line, so I draw the whole table again with fresh images."
    return PlannedReply(prose, hypotheses, replies.draw_program(step, "every class in every setting", groups))


def _table(view: ScientistView) -> ResponseTable:
    """Return the table of all scenes with one toy, by class and setting."""
    nouns, grounds = _find_named(view)
    cells: dict[tuple[str, str], list[float]] = {(noun, ground): [] for noun in nouns for ground in grounds}
    for trial in view.evidence.trials:
        # Edited images are left out: they depend on their original
        if len(trial.scene.things) == 1 and trial.source is None:
            # `get` with a list of its own: toys and grounds outside the question are dropped
            cells.get((trial.scene.things[0].noun, trial.scene.ground), []).append(trial.activation)
    means = [float(np.mean(found)) if found else float("nan") for found in cells.values()]
    count = sum(map(len, cells.values()))
    return ResponseTable(np.array(means).reshape(len(nouns), len(grounds)), nouns, grounds, count)


def _list_signs(table: ResponseTable) -> list[str]:
    """Return signs of spurious features, each a sentence with its figures."""
    signs = []
    if table.passed:
        where = join_words([f"{plural(noun)} on {ground}" for ground, noun in table.passed])
        signs.append(f"Where {plural(table.own)} should lead, others do: {where}.")
    if table.share < SHARE:
        signs.append(f"The classes explain {table.share:.0%} of what varies in the table, less than {SHARE:.0%}.")
    if table.lead < LEAD:
        second = plural(table.nouns[table.order[1]])
        signs.append(f"It responds to {second} too: {plural(table.own)} lead them by {table.lead:.0%} of the range.")
    return signs


def _hypotheses(table: ResponseTable) -> list[ReportedHypothesis]:
    signs = _list_signs(table)
    status, other = ("refuted", "supported") if signs else ("supported", "refuted")
    reason = signs[0].rstrip(".") if signs else "no sign against it"
    return [
        ReportedHypothesis(1, f"the system is selective for {plural(table.own)}", status, reason),
        ReportedHypothesis(2, "the system relies on something else than one class", other, reason),
    ]


def _write_figures(table: ResponseTable) -> str:
    """Describe the table in a sentence or two."""
    by_class = ", ".join(f"{plural(table.nouns[at])} {table.by_class[at]:.2f}" for at in table.order[:6])
    by_ground = table.means.mean(0)
    settings = ", ".join(f"{ground} {mean:.2f}" for ground, mean in zip(table.grounds, by_ground, strict=True))
    return (
        f"Mean activations over {table.count} images, by class: {by_class}; by setting: {settings}. The classes "
        f"explain {table.share:.0%} of what varies in the table; {plural(table.own)} lead by {table.lead:.0%} of the "
        "range."
    )


def _conclude(view: ScientistView) -> PlannedReply:
    table = _table(view)
    # Without a complete table, selectivity is unproven; the task asks for SPURIOUS in doubt
    if view.silent or not len(view.evidence) or not table.complete:
        text = (
            "Not every class was seen in every setting, or the system was active on no image, so nothing speaks for a "
            "class. In doubt: SPURIOUS."
        )
        return PlannedReply("I conclude.", (), conclusion=[("REASONING", text), ("LABEL", "SPURIOUS")])
    signs = _list_signs(table)
    reasons = [_write_figures(table), *signs]
    if not signs:
        reasons.append(f"In every setting they have the highest mean, so it is selective to {plural(table.own)}.")
    return PlannedReply(
        "The table of classes and settings decides, so I conclude.",
        _hypotheses(table),
        conclusion=[("REASONING", " ".join(reasons)), ("LABEL", "SPURIOUS" if signs else "SELECTIVE")],
    )
