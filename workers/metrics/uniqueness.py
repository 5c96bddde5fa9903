"""How many labels of a set say something of their own.

A labeller that calls many units alike can score well on each; only the set shows it (2605.12874).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from workers.metrics.intervals import estimate_share
from workers.record.estimates import Estimate


@dataclass(frozen=True)
class Uniqueness:
    """Of labels of different units."""

    share: Estimate
    """Labels that no other unit has, with Wilson's interval."""
    distinct: int
    repeated: tuple[tuple[str, int], ...]
    """Labels that several units have and how many, the commonest first."""


def measure_uniqueness(labels: Sequence[str]) -> Uniqueness:
    """Of one label a unit; capitals, spaces and a last full stop make no difference. Empty labels do not count."""
    texts = [text for label in labels if (text := " ".join(label.casefold().split()).rstrip("."))]
    counts = Counter(texts)
    unique = sum(count == 1 for count in counts.values())
    repeated = tuple((text, count) for text, count in counts.most_common() if count > 1)
    return Uniqueness(estimate_share(unique, len(texts)), len(counts), repeated)
