"""How many comments each thing of a transcript has, and where quotes stand: what the browser marks events with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from django.db.models import Count, Q

from experiments.comments import reading
from experiments.models import Run, Thread
from experiments.models.comment import On


@dataclass
class Mark:
    """What an element of the transcript is marked with: comments, and how many threads are not resolved."""

    spot: str
    comments: int = 0
    open: int = 0
    images: dict[str, int] = field(default_factory=dict)
    """Key of an image -> comments on it."""


@dataclass(frozen=True)
class Marks:
    spots: Sequence[Mark]
    quotes: Sequence[tuple[str, Thread]]
    """Where unresolved threads on words stand: the id of the element, and the thread with its quote."""
    open: int
    """Threads of the run that are not resolved, whatever they hang on."""


def of(run: Run) -> Marks:
    """All of a run. Three queries at most."""
    counted = Count("comments", filter=Q(comments__deleted=None))
    rows = list(run.threads.select_related("experiment", "observation").annotate(said=counted).order_by("pk"))
    spots = reading.spots_of(run, rows)
    marks: dict[str, Mark] = {}
    for row in rows:
        spot = spots[row.pk][0]
        if not spot:
            continue
        mark = marks.setdefault(spot, Mark(spot))
        mark.comments += row.said
        mark.open += row.resolved is None
        if row.observation is not None:
            key = row.observation.image_id
            mark.images[key] = mark.images.get(key, 0) + row.said
    quotes = [(spots[row.pk][0], row) for row in rows if row.on == On.WORDS and row.resolved is None]
    return Marks(list(marks.values()), quotes, sum(row.resolved is None for row in rows))
