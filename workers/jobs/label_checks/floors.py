"""Compare a label's scores with floors and a ceiling on the same images: labels of other units, random units, the
There are several floors of each kind to show their spread (2605.18229: scores differ by chance alone).
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from experiments.models import LabelCheck
from workers.errors import RequestError
from workers.jobs.label_checks.held_out import HeldOut
from workers.jobs.label_checks.judge_answers import Floats, JudgeAnswers
from workers.jobs.label_checks.sampling import ask_free_judge
from workers.jobs.label_checks.subject import CheckedUnit
from workers.jobs.laboratory import laboratory
from workers.lab.presence import judge_labels
from workers.metrics.floors import Answered, score_floors
from workers.metrics.natural import RESAMPLES, NaturalScores, score_natural
from workers.protocols import Progress
from workers.record.label_checks import FOREIGN_LABEL, RANDOM_UNIT, FloorSpread, Reference

MAX_FLOORS = 10
"""Maximum number of floors of each kind."""


@dataclass(frozen=True)
class Floors:
    """Each floor, and the spread of each kind."""

    each: tuple[Reference, ...]
    spreads: tuple[FloorSpread, ...]


@dataclass(frozen=True)
class FloorSource:
    """The images of a check with the judge's answers and the label's scores."""

    check: LabelCheck
    unit: CheckedUnit
    held: HeldOut
    said: JudgeAnswers
    scores: NaturalScores

    def measure_floors(self, progress: Progress) -> Floors:
        """Score labels of other units on this unit, if the judge is free, and this label on random units."""
        # Only a free judge: floors are context, and not worth money or people's time.
        own, answers = self.held.activations, self.said.answers
        labels = {
            f"the label “{text}” of another unit": Answered(own, said)
            for text, said in self._ask_foreign_labels(progress).items()
        }
        units = {f"unit {unit}, drawn at random": Answered(values, answers) for unit, values in self._draw_units()}
        found = [self._set_beside(FOREIGN_LABEL, labels), self._set_beside(RANDOM_UNIT, units)]
        return Floors(
            tuple(each for floors in found for each in floors.each),
            tuple(spread for floors in found for spread in floors.spreads),
        )

    def measure_ceiling(self, progress: Progress) -> Reference | None:
        """Return the truth's scores; None if there is no truth or the judge is not free."""
        if not self.unit.truth or not self.said.free:
            return None
        try:
            said = ask_free_judge(str(self.check.options["judge"]), self.unit.truth, self.held, progress)
        except RequestError:
            return None
        # Without an interval: the ceiling is a mark, not a result.
        scores = score_natural(self.held.activations, said.answers, said.weights, resamples=0)
        return Reference("the truth", scores.r.value, scores.auprc.value)

    def _ask_foreign_labels(self, progress: Progress) -> dict[str, Floats]:
        """Return the judge's answers for each image by label. Untestable labels are left out."""
        if not self.said.free or not self.unit.other_labels:
            return {}
        judge = laboratory().presence_judge(str(self.check.options["judge"]))
        images, positions = self.held.split.images, self.held.positions.tolist()
        found = judge_labels(judge, self.unit.other_labels, MAX_FLOORS, images, positions, progress)
        # Labels with the same answers are synonyms, and no floor.
        return {text: said for text, said in found.items() if not np.array_equal(said, self.said.answers, True)}

    def _draw_units(self) -> list[tuple[int, Floats]]:
        """Return random units of the layer that vary on these images, with their activations."""
        table = self.held.table
        # A circuit is measured under another number
        own = self.unit.lab.subject(self.unit.spec).spec.unit
        # A constant unit has no correlation
        alive = [int(each) for each in np.flatnonzero(np.ptp(table, axis=0) > 0) if each != own]
        drawn = random.Random(self.check.key).sample(alive, min(MAX_FLOORS, len(alive)))
        return [(each, table[:, each].astype(np.float64)) for each in drawn]

    def _set_beside(self, kind: str, floors: Mapping[str, Answered]) -> Floors:
        if not floors:
            return Floors((), ())
        label = Answered(self.held.activations, self.said.answers)
        found = score_floors(
            label,
            list(floors.values()),
            self.said.weights,
            self.scores.r,
            self.scores.auprc,
            # From the check's key, so that repeating it gives the same spread.
            seed=int(self.check.key[:8], 16),
            resamples=RESAMPLES,
        )
        each = [Reference(what, *figures, kind=kind) for what, figures in zip(floors, found.each, strict=True)]
        return Floors(tuple(each), (FloorSpread(kind, len(each), found.pearson, found.auprc),))
