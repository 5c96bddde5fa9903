"""Natural images of a check: those of its split of the dataset, with the unit's activations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.models import LabelCheck
from experiments.models.evaluation import DEVELOPMENT
from workers.errors import MissingPart
from workers.jobs.label_checks.judge_answers import Floats
from workers.jobs.label_checks.subject import CheckedUnit
from workers.lab.measured_splits import PILOT, MeasuredSplit
from workers.protocols import Progress


@dataclass(frozen=True)
class HeldOut:
    """Images of a split: `positions` (n,), and the activations of each unit of the layer, `table` (n, units)."""

    split: MeasuredSplit
    positions: NDArray[np.int64]
    table: NDArray[np.float32]
    activations: Floats
    """Activations of the checked unit, (n,)."""

    def only(self, places: NDArray[np.int64] | slice) -> HeldOut:
        """Return the images at these places, in their order."""
        return HeldOut(self.split, self.positions[places], self.table[places], self.activations[places])


def read_held_out(check: LabelCheck, unit: CheckedUnit, progress: Progress, count: int = 0) -> HeldOut:
    """Return `count` images or as many as there are; for 0, the pilot.

    Raises MissingPart if the dataset holds out no images, and Cancelled.
    """
    split = unit.lab.held_out_of(unit.spec, "development" if check.split == DEVELOPMENT else "probe")
    place = unit.lab.subject(unit.spec).spec
    positions, table = split.activations(place.layer, count or PILOT, progress)
    return HeldOut(split, positions, table, table[:, place.unit].astype(np.float64))


def read_controls(check: LabelCheck, unit: CheckedUnit, progress: Progress) -> tuple[float, ...]:
    """Return the unit's activations on the pilot, a uniform sample; empty if the dataset holds out no images. Raises
    Cancelled."""
    try:
        return tuple(read_held_out(check, unit, progress).activations.tolist())
    except MissingPart:
        return ()
