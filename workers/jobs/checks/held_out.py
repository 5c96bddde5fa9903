"""The natural images that a check looks at: held-out ones, without the exemplars of its unit, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.models import LabelCheck
from workers.jobs.checks.answers import Floats
from workers.jobs.checks.subject import CheckedUnit
from workers.lab.probe import ProbeSet
from workers.protocols import Progress


@dataclass(frozen=True)
class HeldOut:
    """Images of a probe set: `positions` (n,), and what each unit of the layer answers to them, `table` (n, units)."""

    probe: ProbeSet
    positions: NDArray[np.int64]
    table: NDArray[np.float32]
    activations: Floats
    """Of the checked unit, (n,)."""


def read_held_out(check: LabelCheck, unit: CheckedUnit, progress: Progress) -> HeldOut:
    """Raises MissingPart if the dataset has no images of natural frequency, and Cancelled."""
    probe = unit.lab.probe(unit.spec.model, check.dataset)
    positions, table = probe.activations(unit.spec.layer, progress)
    own = set() if probe.is_fresh else {each.index for each in unit.exemplars}
    held = np.array([at for at, position in enumerate(positions) if int(position) not in own])
    return HeldOut(probe, positions[held], table[held], table[held, unit.spec.unit].astype(np.float64))
