"""The laboratory's memory of images, in the database and the image store.

Encoding and writing go on beside the experiment in threads of their own; `flush` waits for them and writes the rows,
before the step that refers to the images is recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from io import BytesIO

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from PIL import Image as Pillow

from experiments.models import Image
from workers.jobs import thumbnails
from workers.lab.imaging import encode_png, image_key
from workers.protocols import Provenance
from workers.record.origins import Origin

REMEMBERED = ("origin", "prompt", "seed", "scene", "raw", "original")
"""Columns of what is known of an image."""

io_pool = ThreadPoolExecutor(8, thread_name_prefix="image-writer")


class ImagesInDatabase:
    """An `ImageMemory` over `Image` rows. One instance for each job; not shared between threads."""

    def __init__(self) -> None:
        self.known: dict[str, tuple[Pillow.Image, Provenance]] = {}
        self.looked_up: dict[str, Provenance | None] = {}
        self.unsaved: set[str] = set()
        self.writing: dict[str, Future[bytes]] = {}

    def remember(self, image: Pillow.Image, provenance: Provenance, key: str = "") -> str:
        key = key or image_key(image)
        before = self.recall(key)
        if before and (before.origin != Origin.EXTERNAL or provenance.origin == Origin.EXTERNAL):
            provenance = before
        elif before != provenance:
            self.unsaved.add(key)
        if key not in self.known:
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
        """Read what is known of them in one query."""
        wanted = [key for key in dict.fromkeys(keys) if key not in self.known and key not in self.looked_up]
        if wanted:
            found = Image.objects.filter(key__in=wanted).values_list("key", *REMEMBERED)
            self.looked_up.update(dict.fromkeys(wanted))
            for key, origin, prompt, seed, scene, raw, original in found:
                known = Provenance(Origin(origin), prompt, seed, scene, raw or None, original or None)
                self.looked_up[key] = known

    def load(self, key: str) -> Pillow.Image:
        if key in self.known:
            return self.known[key][0]
        return read_image(key)

    def png(self, key: str) -> bytes:
        """What was written or is being written, else the file. What still waits to be encoded is encoded here."""
        if key not in self.writing:
            return _data_of(key)
        if self.writing[key].cancel():
            image, data = self.known[key][0], encode_png(self.known[key][0])
            self.writing[key] = io_pool.submit(write, key, image, data)
            return data
        return self.writing[key].result()

    def flush(self) -> None:
        """Wait for the files, then write the rows. Raises what a write raised, OSError for a full disk."""
        for future in self.writing.values():
            future.result()
        self.writing.clear()
        rows = [row_of(key, *self.known[key]) for key in sorted(self.unsaved)]
        # Another worker may have stored the same pixels meanwhile: only "external" gives way.
        known = [row for row in rows if row.origin != Origin.EXTERNAL]
        Image.objects.bulk_create(known, update_conflicts=True, unique_fields=["key"], update_fields=REMEMBERED)
        Image.objects.bulk_create([row for row in rows if row.origin == Origin.EXTERNAL], ignore_conflicts=True)
        self.unsaved.clear()


def read_image(key: str) -> Pillow.Image:
    """The image from the store. Raises KeyError if it was never stored."""
    image = Pillow.open(BytesIO(_data_of(key)))
    image.load()
    return image


def _data_of(key: str) -> bytes:
    """The file of an image. Raises KeyError if it was never stored."""
    try:
        with default_storage.open(Image.path_of(key)) as file:
            return file.read()
    except FileNotFoundError:
        raise KeyError(f"No image {key} is stored.") from None


def encode(key: str, image: Pillow.Image) -> bytes:
    """The file of an image, stored."""
    return write(key, image, encode_png(image))


def write(key: str, image: Pillow.Image, data: bytes) -> bytes:
    """Store the files once: the same pixels have the same key, so a file that is there is the right one."""
    path = Image.path_of(key)
    if not default_storage.exists(path):
        default_storage.save(path, ContentFile(data))
    thumbnails.write(key, image)
    return data


def row_of(key: str, image: Pillow.Image, provenance: Provenance) -> Image:
    known = {name: getattr(provenance, name) for name in REMEMBERED}
    known |= {"raw": provenance.raw or "", "original": provenance.original or ""}
    return Image(key=key, width=image.width, height=image.height, has_thumbnails=True, **known)
