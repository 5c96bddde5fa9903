"""The label against held-out images at their natural base rate: activation against "does the label say it is here".

r and AUPRC are the headline of a check, since they fall for labels that are too narrow and for those that are too broad
(NeuronEval, 2506.05774). Beside them stand two floors, and a ceiling where the truth is known.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from experiments.models import LabelCheck
from workers.errors import MissingPart, RequestError
from workers.jobs.checks.answers import Floats, JudgeAnswers
from workers.jobs.checks.held_out import read_held_out
from workers.jobs.checks.images import measure, store
from workers.jobs.checks.presence import judge_presence
from workers.jobs.checks.subject import CheckedUnit
from workers.lab.measured_splits import MeasuredSplit
from workers.metrics.natural import find_surprises, score_natural
from workers.protocols import Progress
from workers.record.label_checks import CheckImage, NaturalResult, Reference

SHOWN = 6
"""Surprises of either kind."""
FLOOR_RESAMPLES = 2
"""A floor is a point beside the figure: it has no interval of its own."""


def check_natural(check: LabelCheck, unit: CheckedUnit, progress: Progress) -> NaturalResult:
    """Raises RequestError if the label has no content that can be tested, Cancelled, and what the judge raises."""
    lab, spec = unit.lab, unit.spec
    try:
        held = read_held_out(check, unit, progress)
    except MissingPart as error:
        return NaturalResult(dataset=check.dataset, problem=str(error))
    split, positions, activations = held.split, held.positions, held.activations
    said = judge_presence(check, check.text, split, positions, activations, progress)
    if said.problem:
        return NaturalResult(dataset=check.dataset, judge=said.judge, problem=said.problem)
    threshold = lab.index(spec.model, check.dataset).unit(spec.layer, spec.unit, progress).quantile
    scores = score_natural(activations, said.answers, said.weights, threshold=threshold, seed=int(check.pk or 0))
    references = _Floors(check, unit, split, positions, held.table, said)
    bright, dark = _surprises(unit, split, positions, activations, said, progress)
    return NaturalResult(
        dataset=check.dataset,
        judge=said.judge,
        exact=said.exact,
        images=int(np.isfinite(said.answers).sum()),
        unread=scores.missing if said.weights is None else said.unread,
        base_rate=scores.base_rate,
        threshold=threshold,
        pearson=scores.r,
        auprc=scores.auprc,
        f1=scores.f1.value,
        deciles=tuple(each.r for each in scores.deciles),
        floors=references.floors(progress),
        ceiling=references.ceiling(progress),
        activations=tuple(round(float(each), 5) for each in activations),
        expected=tuple(None if np.isnan(each) else round(float(each), 3) for each in said.answers),
        bright_without=bright,
        dark_with=dark,
    )


class _Floors:
    """What the same images say of another unit's label, of a random unit, and of the truth."""

    def __init__(
        self,
        check: LabelCheck,
        unit: CheckedUnit,
        split: MeasuredSplit,
        positions: NDArray[np.int64],
        table: NDArray[np.float32],
        said: JudgeAnswers,
    ) -> None:
        self._check, self._unit, self._split = check, unit, split
        self._positions, self._table, self._said = positions, table, said
        self._activations = table[:, unit.spec.unit].astype(np.float64)

    def floors(self, progress: Progress) -> tuple[Reference, ...]:
        """Another unit's label on this unit, where asking costs nothing; this label on a random unit."""
        found = []
        if other := self._unit.other_label:
            found.append(self._refer(f"the label “{other}” of another unit", other, progress))
        rng = random.Random(self._check.key)
        rivals = [each for each in range(self._table.shape[1]) if each != self._unit.spec.unit]
        alive = [each for each in rivals if float(np.ptp(self._table[:, each])) > 0]
        if alive:
            rival = rng.choice(alive)
            found.append(_reference(f"unit {rival}, drawn at random", self._table[:, rival], self._said))
        return tuple(each for each in found if each is not None)

    def ceiling(self, progress: Progress) -> Reference | None:
        """The truth's own figures."""
        return self._refer("the truth", self._unit.truth, progress) if self._unit.truth else None

    def _refer(self, what: str, text: str, progress: Progress) -> Reference | None:
        if not self._said.free:
            return None
        try:
            said = judge_presence(self._check, text, self._split, self._positions, self._activations, progress)
        except RequestError:  # another unit's label may say nothing that can be tested
            return None
        return None if said.problem else _reference(what, self._activations, said)


def _reference(what: str, activations: Sequence[float] | NDArray[np.floating], said: JudgeAnswers) -> Reference:
    values = np.asarray(activations, np.float64)
    scores = score_natural(values, said.answers, said.weights, resamples=FLOOR_RESAMPLES)
    return Reference(what, scores.r.value, scores.auprc.value)


def _surprises(
    unit: CheckedUnit,
    split: MeasuredSplit,
    positions: NDArray[np.int64],
    activations: Floats,
    said: JudgeAnswers,
    progress: Progress,
) -> tuple[tuple[CheckImage, ...], tuple[CheckImage, ...]]:
    """The brightest images that the label does not describe, and the darkest that it does, stored and masked."""
    found = find_surprises(activations, said.answers, SHOWN)
    wanted = [*found.bright, *found.dark]
    keys = store([split.picture(int(positions[at])) for at in wanted])
    answers = measure(unit.spec, keys, progress)
    images = [
        CheckImage(key, answers[key].masked, answers[key].activation, float(said.answers[at]))
        for key, at in zip(keys, wanted, strict=True)
    ]
    return tuple(images[: len(found.bright)]), tuple(images[len(found.bright) :])
