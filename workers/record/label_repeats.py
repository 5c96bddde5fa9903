"""Labels that several units share: a labeller that calls many units alike can score well on each (2605.12874)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

MAX_COMMONEST = 5


@dataclass(frozen=True)
class LabelRepeats:
    """Of one label a unit: how many labels there are, how many that no other unit has, and how many differ."""

    labels: int
    unique: int
    distinct: int
    repeated: tuple[tuple[str, int], ...]
    """Labels that several units have and how many, the commonest first."""

    @property
    def commonest(self) -> tuple[tuple[str, int], ...]:
        """What a page names of the repeated ones."""
        return self.repeated[:MAX_COMMONEST]


def count_repeats(labels: Iterable[str]) -> LabelRepeats:
    """Capitals, spaces and a last full stop make no difference. Empty labels do not count."""
    texts = [text for label in labels if (text := " ".join(label.casefold().split()).rstrip("."))]
    counts = Counter(texts)
    repeated = tuple((text, count) for text, count in counts.most_common() if count > 1)
    return LabelRepeats(len(texts), sum(count == 1 for count in counts.values()), len(counts), repeated)
