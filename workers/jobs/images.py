"""The laboratory's memory of images, in the database and the image store.

Encoding and writing go on beside the experiment in threads of their own; `flush` waits for them and writes the rows,
before the step that refers to the images is recorded.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from io import BytesIO

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from PIL import Image as Pillow

from experiments.models import Image
from workers.lab.imaging import encode_png, image_key
from workers.protocols import Provenance

WRITERS = ThreadPoolExecutor(2, thread_name_prefix="image-writer")


class ImagesInDatabase:
    """An `ImageMemory` over `Image` rows. One instance for each job; not shared between threads."""

    def __init__(self) -> None:
        self.known: dict[str, tuple[Pillow.Image, Provenance]] = {}
        self.unsaved: set[str] = set()
        self.writing: list[Future[None]] = []

    def remember(self, image: Pillow.Image, provenance: Provenance) -> str:
        key = image_key(image)
        before = self.recall(key)
        if before and (before.origin != "uploaded" or provenance.origin == "uploaded"):
            provenance = before
        elif before != provenance:
            self.unsaved.add(key)
        if key not in self.known:
            self.writing.append(WRITERS.submit(write, key, image))
        self.known[key] = (image, provenance)
        return key

    def recall(self, key: str) -> Provenance | None:
        if key in self.known:
            return self.known[key][1]
        row = Image.objects.filter(key=key).first()
        return provenance_of(row) if row else None

    def load(self, key: str) -> Pillow.Image:
        if key in self.known:
            return self.known[key][0]
        return read(key)

    def flush(self) -> None:
        """Wait for the files, then write the rows. Raises what a write raised, OSError for a full disk."""
        for future in self.writing:
            future.result()
        self.writing.clear()
        rows = [row_of(key, *self.known[key]) for key in sorted(self.unsaved)]
        # Another worker may have stored the same pixels meanwhile: only "uploaded" gives way.
        better = ["origin", "prompt", "seed", "scene", "raw", "original"]
        known = [row for row in rows if row.origin != "uploaded"]
        Image.objects.bulk_create(known, update_conflicts=True, unique_fields=["key"], update_fields=better)
        Image.objects.bulk_create([row for row in rows if row.origin == "uploaded"], ignore_conflicts=True)
        self.unsaved.clear()


def read(key: str) -> Pillow.Image:
    """The image from the store. Raises KeyError if it was never stored."""
    try:
        with default_storage.open(Image.path_of(key)) as file:
            image = Pillow.open(BytesIO(file.read()))
            image.load()
            return image
    except FileNotFoundError:
        raise KeyError(f"No image {key} is stored.") from None


def write(key: str, image: Pillow.Image) -> None:
    """Store the file once; the same pixels have the same key, so a file that is there is the right one."""
    path = Image.path_of(key)
    if not default_storage.exists(path):
        default_storage.save(path, ContentFile(encode_png(image)))


def provenance_of(row: Image) -> Provenance:
    return Provenance(row.origin, row.prompt, row.seed, row.scene, row.raw or None, row.original or None)  # type: ignore[arg-type]


def row_of(key: str, image: Pillow.Image, provenance: Provenance) -> Image:
    return Image(
        key=key,
        width=image.width,
        height=image.height,
        origin=provenance.origin,
        prompt=provenance.prompt,
        seed=provenance.seed,
        scene=provenance.scene,
        raw=provenance.raw or "",
        original=provenance.original or "",
    )
