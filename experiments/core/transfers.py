"""Keep files of exports and imports that pass between the web process and workers.

They lie in the state folder, or in the bucket if images lie there. Names are paths such as `exports/3.csv`.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from django.conf import settings
from django.core.files.storage import storages

from experiments.core.bucket import Bucket


def move_file(path: Path, name: str) -> None:
    """Move a complete file there. It must lie in `waiting_folder`."""
    if bucket := _bucket():
        bucket.upload(path, name)
        path.unlink()
        return
    target = _place(name)
    target.parent.mkdir(parents=True, exist_ok=True)
    # `waiting_folder` is on the same disk, so the file is complete or absent.
    path.replace(target)


def waiting_folder() -> Path:
    """Return the folder in which files are made until they are complete."""
    folder = Path(settings.STATE) / "transfers"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def file_exists(name: str) -> bool:
    return bucket.exists(name) if (bucket := _bucket()) else _place(name).exists()


@contextmanager
def fetch(name: str) -> Iterator[Path]:
    """Yield the file on this machine, within a block. Raises FileNotFoundError."""
    bucket = _bucket()
    if bucket is None:
        yield _place(name)
        return
    with tempfile.TemporaryDirectory(dir=waiting_folder()) as folder:
        path = Path(folder) / "file"
        bucket.download(name, path)
        yield path


def stream(name: str) -> IO[bytes]:
    """Open the file to be read in pieces; the caller closes it. Raises FileNotFoundError."""
    # Unbuffered: the caller reads in large pieces.
    return bucket.stream(name) if (bucket := _bucket()) else _place(name).open("rb", buffering=0)


def remove(name: str) -> None:
    """Remove the file, if it exists."""
    if bucket := _bucket():
        bucket.delete(name)
    else:
        _place(name).unlink(missing_ok=True)


def remove_others(folder: str, names: set[str], seconds: float) -> None:
    """Remove files of a folder that have other names and are older than `seconds`: a newer one may be in use before
    its row is saved."""
    before = time.time() - seconds
    if bucket := _bucket():
        found = [(name, written) for name, _, written in bucket.list_names(folder)]
    else:
        place = _place(folder)
        paths = list(place.glob("*")) if place.exists() else []
        found = [(f"{folder}/{path.name}", path.stat().st_mtime) for path in paths]
    for name, written in found:
        if written < before and name.rpartition("/")[2] not in names:
            remove(name)


def remove_broken(seconds: float) -> None:
    """Remove partial files that are older than `seconds`."""
    for path in waiting_folder().iterdir():
        if path.is_file() and path.stat().st_mtime < time.time() - seconds:
            path.unlink(missing_ok=True)


def _bucket() -> Bucket | None:
    kept = storages["default"]
    return kept if isinstance(kept, Bucket) else None


def _place(name: str) -> Path:
    return Path(settings.STATE) / name
