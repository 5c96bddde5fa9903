"""Copy images from the folder to the bucket or back, while the installation runs.

Existing files are not copied again, so it can be stopped and restarted. New images go where MAIA_STORAGE says; the
others are copied later.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import Storage, storages

from experiments.core.bucket import Bucket
from experiments.core.storage import WholeFileStorage
from experiments.maintenance.image_files import Progress
from workers.errors import Outage, RequestError

_THREADS = 8
_AT_ONCE = 200
"""Files in progress before each check whether to stop."""
_ENDS = (".png", ".webp")
"""Endings of images and thumbnails; files of exports and imports expire within days."""
_NO_BUCKET = (
    "Images lie in a folder here. Name a bucket first: MAIA_STORAGE=s3://bucket, with MAIA_S3_ENDPOINT, "
    "MAIA_S3_ACCESS_KEY and MAIA_S3_SECRET_KEY where they are needed."
)


@dataclass
class Copied:
    """How many files were copied, their bytes, and how many existed before."""

    files: int = 0
    size: int = 0
    there: int = 0


def find_bucket() -> Bucket:
    """Return the installation's bucket, without its cache. Raises RequestError if there is none."""
    kept = storages["default"]
    if not isinstance(kept, Bucket):
        raise RequestError(_NO_BUCKET)
    kept.look_past_cache()
    return kept


def copy(progress: Progress, *, back: bool = False) -> Copied:
    """Copy every image and thumbnail that the other side lacks: to the bucket, or `back` to the folder.

    Raises Outage; files copied until then stay.
    """
    bucket, folder = find_bucket(), WholeFileStorage(settings.MEDIA_ROOT)
    source, target, names = (bucket, folder, _list_bucket) if back else (folder, bucket, _list_folder)
    # By name alone: the bytes under a name never change.
    there = {name for name, _ in (_list_folder if back else _list_bucket)()}
    sizes = dict(names())
    wanted = sorted(sizes.keys() - there)
    copied = Copied(there=len(sizes) - len(wanted))
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="copy") as pool:
        # In portions: the pool would else hold all files, and could not be stopped.
        for start in range(0, len(wanted), _AT_ONCE):
            for name in pool.map(_copier(source, target), wanted[start : start + _AT_ONCE]):
                copied.files += 1
                copied.size += sizes[name]
                progress("Copying images", copied.files, len(wanted))
    return copied


def _copier(source: Storage, target: Storage) -> Callable[[str], str]:
    def copy_one(name: str) -> str:
        with source.open(name) as file:
            target.save(name, ContentFile(file.read()))
        return name

    return copy_one


def _list_folder() -> Iterator[tuple[str, int]]:
    root = Path(settings.MEDIA_ROOT)
    for path in root.rglob("*"):
        if path.name.endswith(_ENDS) and not path.name.startswith("."):
            yield path.relative_to(root).as_posix(), path.stat().st_size


def _list_bucket() -> Iterator[tuple[str, int]]:
    for name, size, _ in find_bucket().list_names():
        if name.endswith(_ENDS):
            yield name, size


def try_out() -> list[str]:
    """Try everything that an installation does with its bucket, and return what was done, in words. Raises Outage."""
    bucket, name = find_bucket(), f"trial/{secrets.token_hex(8)}"
    first, second = b"first", b"second"
    bucket.ask()
    bucket.save(name, ContentFile(first))
    # The second write must change nothing
    bucket.save(name, ContentFile(second))
    with bucket.open(name) as file:
        kept = file.read()
    listed = [found for found, _, _ in bucket.list_names("trial")]
    bucket.delete(name)
    if kept != first:
        raise Outage(
            "The store writes over what is there: it does not heed If-None-Match. Take one that does, such as AWS S3, "
            "SeaweedFS or a recent MinIO."
        )
    if name not in listed:
        raise Outage("The store does not list what was just written: take one whose lists are true at once.")
    return ["answers", "writes", "keeps what was written first", "reads", "lists", "removes"]
