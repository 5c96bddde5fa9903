"""The laboratory's memory of images. `ImagesInMemory` keeps it for one process; the database has its own.

Programs hand back images as mere pixels. The functions here identify them. Called by `System` and `Tools`.
"""

from __future__ import annotations

import base64
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from PIL.Image import Image

from workers.errors import ToolMisuse
from workers.lab.imaging import encode_png, image_key, parse_image, placeholder, reduce_image
from workers.protocols import Bounds, ImageMemory, MapImage, Progress, Provenance, no_progress
from workers.record.engine_parameters import read_parameters
from workers.record.experiments import ActivationMap
from workers.record.origins import Origin

MAX_TEXTS = 20_000
"""Texts of images that are recognised without decoding, a hundred bytes each."""


@dataclass
class StorageBudget:
    """The bytes of images that an experiment, and its run, may store, at three a pixel."""

    experiment: int = Bounds.image_bytes
    run: int = Bounds.run_image_bytes
    spent_before: int = 0
    """What earlier experiments of the run used."""
    spent: int = 0

    def spend(self, image: Image) -> None:
        """Count an image that is about to be stored. Raises ToolMisuse if it exceeds the budget."""
        # As uncompressed pixels: the size of a PNG is known only after encoding.
        wanted = 3 * image.width * image.height
        before = self.spent_before + self.spent
        for taken, most, whose, remedy in (
            (self.spent, self.experiment, "experiment", "Measure smaller or fewer images, or go on in the next one."),
            (before, self.run, "run", "Use images that were measured before, or conclude."),
        ):
            if taken + wanted > most:
                raise ToolMisuse(
                    f"This {whose} has stored {taken:,} bytes of images, at 3 a pixel, and {image.width} x "
                    f"{image.height} pixels more came: one {whose} stores {most >> 20:,} MiB at most. {remedy}"
                )
        self.spent += wanted


class ImagesInMemory:
    """An `ImageMemory` in a dict, for scripts and tests. Safe for threads; not persistent."""

    def __init__(self, budget: StorageBudget | None = None) -> None:
        self.budget = budget
        self._lock = threading.Lock()
        self._images: dict[str, Image] = {}
        self._known: dict[str, Provenance] = {}

    def remember(self, image: Image, provenance: Provenance, key: str = "") -> str:
        key = key or image_key(image)
        with self._lock:
            if key not in self._images:
                if self.budget:
                    self.budget.spend(image)
                # A copy: the caller may draw on the image later.
                self._images[key] = image.copy()
            known = self._known.get(key)
            # What is better known replaces what was only external.
            if known is None or is_better_known(known, provenance):
                self._known[key] = provenance
        return key

    def recall(self, key: str) -> Provenance | None:
        return self._known.get(key)

    def load(self, key: str) -> Image:
        return self._images[key].copy()

    def png(self, key: str) -> bytes:
        return encode_png(self._images[key])

    def expect(self, keys: Sequence[str]) -> None:
        """Do nothing: there is nothing to prefetch."""


@dataclass(frozen=True)
class StoredImage:
    """An image in memory, with its key and provenance."""

    key: str
    image: Image
    provenance: Provenance
    refused: str = ""
    """Why it was not made just now: the image is then a placeholder."""


class ImageTexts:
    """Maps texts that programs were given to their images. Safe for threads. The same text is the same image in every
    run."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._keys: OrderedDict[bytes, str] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, text: str, key: str) -> None:
        with self._lock:
            # A digest, since a text may have megabytes. Programs return most texts unchanged, and decoding them is
            # slow.
            self._keys[_digest(text)] = key
            while len(self._keys) > self._most:
                self._keys.popitem(last=False)

    def key(self, text: str) -> str | None:
        """Return the key of the image that the text is; None if the text is not known."""
        digest = _digest(text)
        with self._lock:
            if digest in self._keys:
                self._keys.move_to_end(digest)
            return self._keys.get(digest)


image_texts = ImageTexts(MAX_TEXTS)
"""The texts of this process."""


def encode_text(memory: ImageMemory, key: str) -> str:
    """Encode a stored image as programs get it, a plain Base64 PNG string; `look_up` recognises it."""
    text = base64.b64encode(memory.png(key)).decode("ascii")
    image_texts.note(text, key)
    return text


def store_images(memory: ImageMemory, images: Sequence[tuple[Image, Provenance]]) -> list[StoredImage]:
    """Store images. What was known of their pixels before is kept."""
    keys = [image_key(image) for image, _ in images]
    # The database fetches what it knows of all keys in one query.
    memory.expect(keys)
    for key, (image, provenance) in zip(keys, images, strict=True):
        memory.remember(image, provenance, key)
    return [
        # The memory may know more of these pixels than the caller.
        StoredImage(key, image, memory.recall(key) or provenance)
        for key, (image, provenance) in zip(keys, images, strict=True)
    ]


def keep_map(memory: ImageMemory, found: MapImage | None, key: str = "") -> ActivationMap | None:
    """Store an activation map as an image."""
    if found is None:
        return None
    key = memory.remember(found.grey, Provenance(Origin.EXTERNAL), key)
    return ActivationMap(key, found.low, found.high, found.threshold)


def look_up(memory: ImageMemory, value: Any, argument: str) -> StoredImage:
    """Return the image a program passed; unknown pixels are stored as "external", reduced if they are many.

    Raises ToolMisuse, naming `argument`, if it is no image.
    """
    # A text that this process wrote needs no decoding.
    key = image_texts.key(value) if isinstance(value, str) else None
    known = memory.recall(key) if key else None
    if key and known:
        return StoredImage(key, memory.load(key), known)
    image = parse_image(value, argument)
    key = image_key(image)
    known = memory.recall(key)
    # Larger images would use up the run's budget.
    if known is None and (small := reduce_image(image)) is not image:
        image, key = small, image_key(small)
        known = memory.recall(key)
    if known is None:
        memory.remember(image, Provenance(Origin.EXTERNAL), key)
    return StoredImage(key, image, known or Provenance(Origin.EXTERNAL))


def look_up_all(
    memory: ImageMemory, given: Sequence[Any], argument: str, progress: Progress = no_progress
) -> list[StoredImage]:
    """Look up each image of a list that a program passed. Raises ToolMisuse; Cancelled between two of them."""
    found = []
    for at, value in enumerate(given):
        progress("Reading images", at, len(given))
        found.append(look_up(memory, value, f"{argument}[{at}]"))
    progress("Reading images", len(given), len(given))
    return found


def find_raw(memory: ImageMemory, kept: StoredImage) -> StoredImage:
    """Return the raw image behind a masked one; a raw image is returned as it is."""
    raw = kept.provenance.raw
    if raw is None:
        return kept
    return StoredImage(raw, memory.load(raw), memory.recall(raw) or Provenance(Origin.EXTERNAL))


def is_better_known(known: Provenance, provenance: Provenance) -> bool:
    """True if new provenance should replace what was known of the same pixels.

    "external" is replaced by anything else. A generator's image is replaced by the same one drawn by the game engine.
    """
    if known.origin == Origin.EXTERNAL:
        return provenance.origin != Origin.EXTERNAL
    if known.origin != Origin.GENERATED or provenance.origin != Origin.GENERATED:
        return False
    # At its usual view both draw the same pixels, but the engine's parameters would be lost.
    return bool(read_parameters(provenance.scene)) and not read_parameters(known.scene)


def raw_key(kept: StoredImage) -> str:
    """Return the key of the raw image, for a raw or a masked image."""
    return kept.provenance.raw or kept.key


def is_made(kept: StoredImage) -> bool:
    """True for a real image or masked image; False for the placeholder of a refused one."""
    return raw_key(kept) != _placeholder_key()


@cache
def _placeholder_key() -> str:
    return image_key(placeholder())


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()
