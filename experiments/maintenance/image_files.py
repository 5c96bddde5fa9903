"""Check that the file of each image exists and has the pixels that its key names; and count files without an image.

The caller passes the function from a file to its key, since workers decode images and the web process does not.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from django.core.files.storage import default_storage, storages

from experiments.core.bucket import Bucket
from experiments.core.thumbnails import SIZES, is_key
from experiments.maintenance.findings import Finding, FindingKind
from experiments.models import Image

KeyOf = Callable[[bytes], str]
"""Returns the key of the image in a file. Raises ValueError or OSError, with the reason, if there is none."""
Progress = Callable[[str, int, int], None]

THREADS = 4
"""Files that are checked in parallel: decoding and hashing release the interpreter's lock."""
CHUNK = 500
_RESTORE = "Restore its file from a backup, or remove every reference to it."


@dataclass(frozen=True)
class Orphans:
    """Images and files that nothing refers to. They are no fault, since a worker may be about to refer to them;
    `manage.py prune` removes them."""

    files: int = 0
    """Files in the store whose image is unknown."""


def check_images(key_of: KeyOf, progress: Progress, sample: int | None = None) -> Iterator[Finding]:
    """Yield problems with the files of all images, or of a random `sample`."""
    if isinstance(kept := storages["default"], Bucket):
        # A cached copy would hide that the file is gone
        kept.look_past_cache()
    total = Image.objects.count()
    wanted, done = total if sample is None else min(sample, total), 0
    with ThreadPoolExecutor(THREADS, thread_name_prefix="image-check") as pool:
        for rows in _list_chunks(wanted, is_sample=sample is not None):
            for found in pool.map(partial(_check_image, key_of), rows):
                done += 1
                progress("Looking at images", done, wanted)
                yield from found


def _list_chunks(wanted: int, *, is_sample: bool) -> Iterator[list[tuple[str, bool]]]:
    """Yield keys, and whether there are thumbnails. Keys are hashes, so the keys after a random one are random too."""
    first = start = secrets.token_hex(32) if is_sample else ""
    wrapped = not is_sample
    while wanted > 0:
        # From a random key to the last one, then from the first one up to it
        rows = Image.objects.filter(key__gt=start)
        if is_sample and wrapped:
            rows = rows.filter(key__lte=first)
        chunk = list(rows.order_by("key").values_list("key", "has_thumbnails")[: min(CHUNK, wanted)])
        if not chunk:
            if wrapped:
                return
            start, wrapped = "", True
            continue
        yield chunk
        wanted, start = wanted - len(chunk), chunk[-1][0]


def _check_image(key_of: KeyOf, row: tuple[str, bool]) -> list[Finding]:
    """Return the problems of one image."""
    key, has_thumbnails = row
    found = []
    if reason := _explain_file(key_of, key):
        found.append(Finding(FindingKind.IMAGE, reason, _RESTORE, image=key))
    for size in SIZES if has_thumbnails else ():
        if not default_storage.exists(Image.thumbnail_of(key, size)):
            remedy = "manage.py verify --redraw has workers make it anew."
            found.append(Finding(FindingKind.THUMBNAIL, f"its thumbnail of {size} pixels is gone.", remedy, image=key))
    return found


def _explain_file(key_of: KeyOf, key: str) -> str:
    """Explain the problem of an image's file in a sentence; "" for none."""
    try:
        with default_storage.open(Image.path_of(key)) as file:
            data = file.read()
    except FileNotFoundError:
        return "its file is gone."
    except OSError as error:
        return f"its file cannot be read ({error})."
    return explain_data(key_of, key, data)


def explain_data(key_of: KeyOf, key: str, data: bytes) -> str:
    """Explain the problem of a file's content in a sentence; "" for none."""
    try:
        really = key_of(data)
    except (ValueError, OSError) as error:
        return f"its file holds no image ({error})."
    return "" if really == key else f"its file holds other pixels, those of {really}."


def count_orphans(progress: Progress) -> Orphans:
    """Count orphans by going through the store."""
    files = 0
    # Files lie under the first two digits of their key.
    folders = sorted(each for each in _list_folders() if len(each) == 2)
    for done, folder in enumerate(folders, 1):
        progress("Looking for orphans", done, len(folders))
        keys = [key for name in default_storage.listdir(folder)[1] if is_key(key := folder + name.removesuffix(".png"))]
        for start in range(0, len(keys), CHUNK):
            some: Sequence[str] = keys[start : start + CHUNK]
            files += len(some) - Image.objects.filter(key__in=some).count()
    return Orphans(files)


def _list_folders() -> list[str]:
    try:
        return list(default_storage.listdir("")[0])
    except FileNotFoundError:  # nothing was ever stored
        return []
