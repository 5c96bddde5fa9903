"""Small versions of images, as WebP: made with each image that is stored, in the background for those that lack them.

Lists show these; a page that comes before them is sent the whole image.
"""

from __future__ import annotations

import logging
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
QUALITY, EFFORT = 82, 2


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


def write_missing() -> None:
    """Make those of older and imported images; another job goes on where many are left."""
    from workers.jobs.images import read_image

    keys = list(Image.objects.filter(has_thumbnails=False).order_by("key").values_list("key", flat=True)[:AT_ONCE])
    for key in keys:
        if lease.stopping.is_set():
            return
        try:
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
    if Image.objects.filter(has_thumbnails=False).exists():
        ask_for("write_thumbnails")
