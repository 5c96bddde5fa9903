"""How many labels of a set say something of their own, as a share with its interval; counted by `record.label_repeats`.

A labeller that calls many units alike can score well on each; only the set shows it (2605.12874).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workers.metrics.intervals import estimate_share
from workers.record.estimates import Estimate
from workers.record.label_repeats import count_repeats


@dataclass(frozen=True)
class Uniqueness:
    """Of labels of different units."""

    share: Estimate
    """Labels that no other unit has, with Wilson's interval."""
    distinct: int
    repeated: tuple[tuple[str, int], ...]
    """Labels that several units have and how many, the commonest first."""


def measure_uniqueness(labels: Sequence[str]) -> Uniqueness:
    """Of one label a unit, as `count_repeats` takes them."""
    found = count_repeats(labels)
    return Uniqueness(estimate_share(found.unique, found.labels), found.distinct, found.repeated)
