"""Define what verification can find wrong with an installation's data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FindingKind(StrEnum):
    EVENTS = "events"
    """A transcript with a gap, or with an event that cannot be read."""
    ROWS = "rows"
    """A row that does not follow from the events."""
    IMAGE = "image"
    """An image that is referred to or listed, and is missing or different."""
    THUMBNAIL = "thumbnail"
    """A thumbnail that is recorded but missing; pages show the whole image instead."""


@dataclass(frozen=True)
class Finding:
    """A problem, its place, and the remedy."""

    kind: FindingKind
    reason: str
    remedy: str
    run: int | None = None
    seq: int | None = None
    """The event with the problem, or the one from which the row follows."""
    image: str = ""
    """Key of the image."""

    def __str__(self) -> str:
        places = [
            f"run {self.run}" if self.run is not None else "",
            f"event {self.seq}" if self.seq is not None else "",
            f"image {self.image}" if self.image else "",
        ]
        return f"{', '.join(filter(None, places))}: {self.reason} {self.remedy}"
