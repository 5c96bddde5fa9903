"""Thumbnails of images, as WebP: made after an image is stored, and by a job for images without them.

Lists show thumbnails; without one, a page sends the whole image.
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
"""Maximum number of images per job, so that other jobs get their turn."""
QUALITY, EFFORT = 75, 4
MAX_WAITING = 1000
"""Maximum number of images that wait in this process with their pixels. The recovery job handles more."""

_pool = ThreadPoolExecutor(1, thread_name_prefix="thumbnails")
_making: dict[str, Future[None]] = {}


def write_soon(images: Mapping[str, Pillow.Image]) -> None:
    """Make thumbnails of these images in the background. Their rows must exist. Also records finished ones."""
    mark_made()
    for key, image in images.items():
        # Making them takes ten times as long as storing the image, so nothing waits for them; the recovery job requests
        # the rest.
        if key not in _making and len(_making) < MAX_WAITING:
            _making[key] = _pool.submit(write, key, image)


def mark_made(*, wait: bool = False) -> None:
    """Record in their rows which images have thumbnails. With `wait`, finish all that this process started."""
    made = []
    for key in [key for key, future in list(_making.items()) if wait or future.done()]:
        future = _making.pop(key, None)  # Another thread may have taken it
        if future and (error := future.exception()):
            log.warning("No thumbnails of image %s yet: %s", key, error)  # The recovery job tries again
        elif future:
            # Collected, then recorded in one query.
            made.append(key)
    if made:
        Image.objects.filter(key__in=made).update(has_thumbnails=True)


def write(key: str, image: Pillow.Image) -> None:
    """Store the missing thumbnails of an image."""
    for size in SIZES:
        path = Image.thumbnail_of(key, size)
        if not default_storage.exists(path):
            # No side longer than `size`; small images keep their size
            # WebP takes RGB and RGBA; `thumbnail` changes the image, so it is copied.
            small = image.copy() if image.mode in {"RGB", "RGBA"} else image.convert("RGB")
            small.thumbnail((size, size), Pillow.Resampling.LANCZOS)
            file = BytesIO()
            small.save(file, "WEBP", quality=QUALITY, method=EFFORT)
            default_storage.save(path, ContentFile(file.getvalue()))


def _has_all(key: str) -> bool:
    return all(default_storage.exists(Image.thumbnail_of(key, size)) for size in SIZES)


def write_missing() -> None:
    """Make thumbnails of older and imported images. If many are left, another job continues."""
    from workers.jobs.images import read_image

    keys = list(Image.objects.filter(has_thumbnails=False).order_by("key").values_list("key", flat=True)[:AT_ONCE])
    for key in keys:
        # Missing thumbnails are only slow, so a shutdown does not wait
        if lease.stopping.is_set():
            return
        try:
            if not _has_all(key):
                write(key, read_image(key))
        except (KeyError, ValueError, OSError, Pillow.DecompressionBombError) as error:
            if getattr(error, "errno", None) is not None:  # The disk failed, not the image: the next job tries again
                raise
            log.warning("No thumbnails of image %s: %s", key, error)  # Pages show the image itself, if it exists
        # Also for an image that cannot be read, or each job would try it again.
        Image.objects.filter(key=key).update(has_thumbnails=True)
    if len(keys) == AT_ONCE:
        ask_for("write_thumbnails")


def request_missing() -> None:
    """Request a job for missing thumbnails."""
    mark_made()
    if Image.objects.filter(has_thumbnails=False).exists():
        ask_for("write_thumbnails")
