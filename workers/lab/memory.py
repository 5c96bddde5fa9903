"""What the laboratory remembers of images. `ImagesInMemory` keeps it for one process; the database has its own.

Programs hand back images as mere pixels. The functions here find out what they are: which raw image a masked one shows,
where it came from, which scene is behind it. Called by `System` and `Tools`.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from PIL.Image import Image

from workers.lab.imaging import as_image, image_key
from workers.protocols import ImageMemory, Provenance


class ImagesInMemory:
    """An `ImageMemory` in a dict, for scripts and tests. Safe for threads; forgets all when it goes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._images: dict[str, Image] = {}
        self._known: dict[str, Provenance] = {}

    def remember(self, image: Image, provenance: Provenance) -> str:
        key = image_key(image)
        with self._lock:
            self._images.setdefault(key, image.copy())
            known = self._known.get(key)
            if known is None or known.origin == "uploaded":
                self._known[key] = provenance
        return key

    def recall(self, key: str) -> Provenance | None:
        return self._known.get(key)

    def load(self, key: str) -> Image:
        return self._images[key].copy()


@dataclass(frozen=True)
class Kept:
    """An image in memory, with its key and what is known of it."""

    key: str
    image: Image
    provenance: Provenance


def keep(memory: ImageMemory, image: Image, provenance: Provenance) -> Kept:
    """Store an image. What was known of these pixels before stays true, so it wins."""
    key = memory.remember(image, provenance)
    return Kept(key, image, memory.recall(key) or provenance)


def look_up(memory: ImageMemory, value: Any, argument: str) -> Kept:
    """The image a program passed; pixels never seen before are kept as "uploaded".

    Raises ToolMisuse, naming `argument`, if it is no image.
    """
    image = as_image(value, argument)
    key = image_key(image)
    known = memory.recall(key)
    return Kept(key, image, known) if known else keep(memory, image, Provenance("uploaded"))


def unmasked(memory: ImageMemory, kept: Kept) -> Kept:
    """The raw image behind a masked one; a raw image is its own."""
    raw = kept.provenance.raw
    if raw is None:
        return kept
    return Kept(raw, memory.load(raw), memory.recall(raw) or Provenance("uploaded"))
