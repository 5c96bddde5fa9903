"""Count labels that several units share. A labeller that labels many units alike can score well on each
(2605.12874)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

MAX_COMMONEST = 5


@dataclass(frozen=True)
class LabelRepeats:
    """Counts over one label per unit: all labels, those that only one unit has, and different labels."""

    labels: int
    unique: int
    distinct: int
    repeated: tuple[tuple[str, int], ...]
    """Labels that several units have, with counts, most common first."""

    @property
    def commonest(self) -> tuple[tuple[str, int], ...]:
        """The repeated labels that a page names."""
        return self.repeated[:MAX_COMMONEST]


def count_repeats(labels: Iterable[str]) -> LabelRepeats:
    """Count labels. Case, spaces and a final full stop are ignored, and so are empty labels."""
    texts = [text for label in labels if (text := " ".join(label.casefold().split()).rstrip("."))]
    counts = Counter(texts)
    repeated = tuple((text, count) for text, count in counts.most_common() if count > 1)
    return LabelRepeats(len(texts), sum(count == 1 for count in counts.values()), len(counts), repeated)
