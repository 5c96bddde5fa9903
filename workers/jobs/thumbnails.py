"""Small versions of images, as WebP: made after each image that is stored, by a job for those that lack them then.

Lists show these; a page that comes before them is sent the whole image. They take some ten times as long to make as the
image takes to store, so nobody waits for them: what a killed worker leaves undone its row tells, and the sweep asks.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from io import BytesIO

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from PIL import Image as Pillow

from experiments.core.queue import ask_for
from experiments.core.thumbnails import SIZES
from experiments.models import Image
from workers.jobs import lease

log = logging.getLogger(__name__)

AT_ONCE = 500
"""Images of one job, so that others get their turn."""
QUALITY, EFFORT = 75, 4
MAX_WAITING = 1000
"""Images that wait for theirs in this process, their pixels in memory; more are left to the sweep."""

_pool = ThreadPoolExecutor(1, thread_name_prefix="thumbnails")
_making: dict[str, Future[None]] = {}


def write_soon(images: Mapping[str, Pillow.Image]) -> None:
    """Have those of images, by key, made beside other work. Their rows are there; which others are made is noted."""
    mark_made()
    for key, image in images.items():
        if key not in _making and len(_making) < MAX_WAITING:
            _making[key] = _pool.submit(write, key, image)


def mark_made(*, wait: bool = False) -> None:
    """Note in their rows which images have theirs by now; `wait` for all that this process has begun."""
    made = []
    for key in [key for key, future in list(_making.items()) if wait or future.done()]:
        future = _making.pop(key, None)  # another round's thread may have taken it
        if future and (error := future.exception()):
            log.warning("No thumbnails of image %s yet: %s", key, error)  # the sweep tries again
        elif future:
            made.append(key)
    if made:
        Image.objects.filter(key__in=made).update(has_thumbnails=True)


def write(key: str, image: Pillow.Image) -> None:
    """Store the small versions of an image that are not there yet."""
    for size in SIZES:
        path = Image.thumbnail_of(key, size)
        if not default_storage.exists(path):
            # The image as WebP, no side longer than `size`; small images keep theirs
            small = image.copy() if image.mode in {"RGB", "RGBA"} else image.convert("RGB")
            small.thumbnail((size, size), Pillow.Resampling.LANCZOS)
            file = BytesIO()
            small.save(file, "WEBP", quality=QUALITY, method=EFFORT)
            default_storage.save(path, ContentFile(file.getvalue()))


def _has_all(key: str) -> bool:
    return all(default_storage.exists(Image.thumbnail_of(key, size)) for size in SIZES)


def write_missing() -> None:
    """Make those of older and imported images; another job goes on where many are left."""
    from workers.jobs.images import read_image

    keys = list(Image.objects.filter(has_thumbnails=False).order_by("key").values_list("key", flat=True)[:AT_ONCE])
    for key in keys:
        if lease.stopping.is_set():
            return
        try:
            if not _has_all(key):
                write(key, read_image(key))
        except (KeyError, ValueError, OSError, Pillow.DecompressionBombError) as error:
            if getattr(error, "errno", None) is not None:  # the disk, not the image: the next sweep tries again
                raise
            log.warning("No thumbnails of image %s: %s", key, error)  # it is shown as it is, if it is there
        Image.objects.filter(key=key).update(has_thumbnails=True)
    if len(keys) == AT_ONCE:
        ask_for("write_thumbnails")


def request_missing() -> None:
    """Ask for those that are missing."""
    mark_made()
    if Image.objects.filter(has_thumbnails=False).exists():
        ask_for("write_thumbnails")
