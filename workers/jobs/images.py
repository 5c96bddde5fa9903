"""The laboratory's memory of images, in the database and the image store.

Each new image is encoded once and written by threads during the experiment. `flush` waits for the files, then writes
the
rows. Thumbnails follow later.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from io import BytesIO

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from PIL import Image as Pillow

from experiments.models import Image
from workers.jobs import counters, thumbnails
from workers.lab.imaging import encode_png, image_key
from workers.lab.memory import StorageBudget, is_better_known
from workers.protocols import Provenance
from workers.record.origins import Origin

REMEMBERED = ("origin", "prompt", "seed", "scene", "raw", "original")
"""Columns that record an image's origin."""

io_pool = ThreadPoolExecutor(4, thread_name_prefix="image-writer")
"""More threads would slow down the experiment, because they share the interpreter lock."""


class ImagesInDatabase:
    """An `ImageMemory` over `Image` rows. One instance per job; not shared between threads."""

    def __init__(self, budget: StorageBudget | None = None) -> None:
        self.budget = budget
        self.known: dict[str, tuple[Pillow.Image, Provenance]] = {}
        self.looked_up: dict[str, Provenance | None] = {}
        # Rows are written later, in one query and after their files
        self.unsaved: set[str] = set()
        self.writing: dict[str, Future[bytes]] = {}

    def remember(self, image: Pillow.Image, provenance: Provenance, key: str = "") -> str:
        key = key or image_key(image)
        before = self.recall(key)
        if before is None and self.budget:
            self.budget.spend(image)
        if before and not is_better_known(before, provenance):
            provenance = before
        elif before != provenance:
            self.unsaved.add(key)
        if before is None:  # An image with a row already has its file
            self.writing[key] = io_pool.submit(encode, key, image)
        self.known[key] = (image, provenance)
        return key

    def recall(self, key: str) -> Provenance | None:
        if key in self.known:
            return self.known[key][1]
        if key not in self.looked_up:
            self.expect([key])
        return self.looked_up[key]

    def expect(self, keys: Sequence[str]) -> None:
        """Read the provenance of these images in one query."""
        wanted = [key for key in dict.fromkeys(keys) if key not in self.known and key not in self.looked_up]
        if wanted:
            rows = Image.objects.filter(key__in=wanted).values_list("unused_since", "key", *REMEMBERED)
            if any(unused_since for unused_since, *_ in rows):
                # Pruning could otherwise remove them before a row refers to them.
                Image.claim(wanted)
                rows = rows.all()  # Read again: rows removed before the claim are gone
            self.looked_up.update(dict.fromkeys(wanted))
            for _, key, origin, prompt, seed, scene, raw, original in rows:
                known = Provenance(Origin(origin), prompt, seed, scene, raw or None, original or None)
                self.looked_up[key] = known

    def load(self, key: str) -> Pillow.Image:
        if key in self.known:
            return self.known[key][0]
        return read_image(key)

    def png(self, key: str) -> bytes:
        """Return the image as PNG: written or being written, else encoded from pixels, else the stored file."""
        if key not in self.writing:
            return encode_png(self.known[key][0]) if key in self.known else _data_of(key)
        # Not started yet: encoding here is faster than waiting for the queue
        if self.writing[key].cancel():
            data = encode_png(self.known[key][0])
            self.writing[key] = io_pool.submit(write, key, data)
            return data
        return self.writing[key].result()

    def flush(self) -> None:
        """Wait for the files, then write the rows. Raises the errors of writes, OSError for a full disk."""
        # Files before rows: a row without its file would show a broken image.
        for future in self.writing.values():
            future.result()
        # Sorted, so that two workers lock rows in the same order.
        rows = [row_of(key, *self.known[key]) for key in sorted(self.unsaved)]
        # Another worker may have stored the same pixels: only "external", the vaguest origin, gives way
        known = [row for row in rows if row.origin != Origin.EXTERNAL]
        external = [row for row in rows if row.origin == Origin.EXTERNAL]
        if known:
            Image.objects.bulk_create(known, update_conflicts=True, unique_fields=["key"], update_fields=REMEMBERED)
        if external:
            Image.objects.bulk_create(external, ignore_conflicts=True)
        # Rows must exist before thumbnails are noted in them.
        thumbnails.write_soon({key: self.known[key][0] for key in self.writing})
        self.writing.clear()
        self.unsaved.clear()


def read_image(key: str) -> Pillow.Image:
    """Return the image from the store. Raises KeyError if it was never stored."""
    image = Pillow.open(BytesIO(_data_of(key)))
    image.load()
    return image


def key_of_file(data: bytes) -> str:
    """Return the key of the image in a stored file. Raises ValueError or OSError with the reason if it is not an
    image."""
    try:
        # Only PNG, the one format of the store.
        with Pillow.open(BytesIO(data), formats=["PNG"]) as image:
            image.load()
            return image_key(image)
    except (SyntaxError, Pillow.DecompressionBombError) as error:  # Pillow raises these for broken PNGs
        raise ValueError(str(error)) from None


def _data_of(key: str) -> bytes:
    """Return the bytes of an image file. Raises KeyError if it was never stored."""
    try:
        with default_storage.open(Image.path_of(key)) as file:
            return file.read()
    except FileNotFoundError:
        raise KeyError(f"No image {key} is stored.") from None


def encode(key: str, image: Pillow.Image) -> bytes:
    """Encode and store an image. Return its file."""
    return write(key, encode_png(image))


def write(key: str, data: bytes) -> bytes:
    """Store the file. If another worker stored it meanwhile, the pixels are the same and either file may stay."""
    default_storage.save(Image.path_of(key), ContentFile(data))
    counters.IMAGE_BYTES.inc(len(data))
    return data


def row_of(key: str, image: Pillow.Image, provenance: Provenance) -> Image:
    known = {name: getattr(provenance, name) for name in REMEMBERED}
    known |= {"raw": provenance.raw or "", "original": provenance.original or ""}
    return Image(key=key, width=image.width, height=image.height, **known)
