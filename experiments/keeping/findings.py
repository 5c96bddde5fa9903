"""One thing that is wrong with what an installation keeps."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FindingKind(StrEnum):
    EVENTS = "events"
    """A transcript with a gap, or with an event that cannot be read."""
    ROWS = "rows"
    """A row that does not follow from the events."""
    IMAGE = "image"
    """An image that is referred to or listed, and is not there or is another."""
    THUMBNAIL = "thumbnail"
    """A small version that is said to be there; pages show the whole image instead."""


@dataclass(frozen=True)
class Finding:
    """What is wrong, where, and what to do about it."""

    kind: FindingKind
    reason: str
    remedy: str
    run: int | None = None
    seq: int | None = None
    """The event in question, or the one that the row follows from."""
    image: str = ""
    """Key of the image in question."""

    def __str__(self) -> str:
        places = [
            f"run {self.run}" if self.run is not None else "",
            f"event {self.seq}" if self.seq is not None else "",
            f"image {self.image}" if self.image else "",
        ]
        return f"{', '.join(filter(None, places))}: {self.reason} {self.remedy}"
