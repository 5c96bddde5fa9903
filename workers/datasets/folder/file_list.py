"""List the files of a folder, in the order of their paths: read once, and kept in the state folder.

Used by `dataset`.
"""

# ruff: noqa: PTH116, PTH118 - paths are bytes here: names of files need not be text
from __future__ import annotations

import hashlib
import os
import zipfile
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from workers.datasets.folder.file_checks import Reach, look_at_files
from workers.files import atomic_write
from workers.protocols import Progress, no_progress

LOOKED_AT = 100_000
"""Files whose size and time are compared before a kept list is trusted; all folders are."""
_OFTEN = 5_000  # files between two reports of progress


@dataclass(frozen=True)
class FileList:
    """The files of a folder, by path, and its folders. Arrays, since there may be a million."""

    paths: NDArray[np.uint8]
    """Bytes of all paths, one after another."""
    ends: NDArray[np.int64]
    """Where each path ends."""
    stamps: NDArray[np.int64]
    """(files, 2): bytes, and time of the last change in ns."""
    images: NDArray[np.bool_]
    """(files,): True for an image, by its header."""
    first: NDArray[np.int64]
    """(files,): the first image with the same bytes; its own position where there is none before it."""
    folders: NDArray[np.uint8]
    """Bytes of the paths of the folders, each with a NUL after it."""
    folder_times: NDArray[np.int64]
    follows: NDArray[np.bool_]
    """(1,): True if stamps are those of what links lead to."""

    def __len__(self) -> int:
        return len(self.ends)

    def path(self, index: int) -> bytes:
        """Return the path relative to the folder."""
        return self.paths[self.ends[index - 1] if index else 0 : self.ends[index]].tobytes()

    def count_images(self, limit: int) -> int:
        """Return images among the first `limit` files, each once."""
        there = self.images[:limit] & (self.first[:limit] == np.arange(min(limit, len(self))))
        return int(np.count_nonzero(there))

    @cached_property
    def digest(self) -> str:
        """Hash of the files, and of which are left out as duplicates: none in most folders."""
        # Only the exceptions are hashed, so that lists without duplicates keep one digest.
        repeated = np.flatnonzero(self.first != np.arange(len(self)))
        digest = hashlib.sha256()
        for array in (self.paths, self.ends, self.stamps, repeated):
            digest.update(array.tobytes())
        return digest.hexdigest()[:12]

    def is_current(self, root: Path) -> bool:
        """True if no folder, and none of the first `LOOKED_AT` files, has changed since."""
        top, follows = os.fsencode(root), bool(self.follows[0])
        try:
            # The last one ends in a NUL, too.
            folders = self.folders.tobytes().split(b"\0")[:-1]
            times = [os.stat(os.path.join(top, folder)).st_mtime_ns for folder in folders]
            files = (os.path.join(top, self.path(at)) for at in range(min(len(self), LOOKED_AT)))
            stamps = [_stamp(path, follows) for path in files]
        # A file or folder that is gone is a change.
        except OSError:
            return False
        return times == self.folder_times.tolist() and stamps == self.stamps[:LOOKED_AT].tolist()

    @classmethod
    def of(cls, root: Path, reach: Reach, progress: Progress = no_progress, *, follows: bool = False) -> FileList:
        """List and look at the files of a folder; those whose names begin with a dot are left out.

        Links are not followed unless `follows` is set: then a folder that several lead to counts once.
        """
        found: list[tuple[bytes, list[int]]] = []
        walk = _Walk(os.fsencode(root), follows)
        for entry in walk.files():
            # A long walk can be stopped by a person.
            if len(found) % _OFTEN == 0:
                progress(f"Listing the files of {root.name}, {len(found):,} so far", 0, 1)
            found.append(entry)
        # The order of a folder's entries differs between disks.
        found.sort()
        paths, stamps = [path for path, _ in found], [stamp for _, stamp in found]

        def report(done: int) -> None:
            progress(f"Looking at the files of {root.name}", done, len(paths))

        images, first = look_at_files(reach, paths, report)
        return cls(
            _bytes(b"".join(paths)),
            np.cumsum([len(path) for path in paths], dtype=np.int64),
            np.array(stamps, dtype=np.int64).reshape(-1, 2),
            images,
            first,
            _bytes(b"".join(path + b"\0" for path in walk.folders)),
            np.array(list(walk.folders.values()), dtype=np.int64),
            np.array([follows]),
        )

    def write(self, path: Path) -> None:
        """Write the list. If that fails it is made again next time."""
        with suppress(OSError), atomic_write(path) as file:
            np.savez(file, **{each.name: getattr(self, each.name) for each in fields(self)})

    @classmethod
    def read(cls, path: Path) -> FileList | None:
        """Return the list that was kept; None if there is none or it is damaged."""
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as saved:
                return cls(**{each.name: saved[each.name] for each in fields(cls)})
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None


class _Walk:
    """One walk over a folder and all below it."""

    def __init__(self, root: bytes, follows: bool) -> None:
        self._root = root
        self._follows = follows
        self._seen: set[tuple[int, int]] = set()
        self.folders: dict[bytes, int] = {}
        """Path of each folder that was met -> time of its last change in ns."""

    def files(self) -> Iterator[tuple[bytes, list[int]]]:
        """Yield path and stamp of every file, and of every folder that cannot be read."""
        # Breadth first, so that a folder with several paths is listed under its shortest.
        waiting = deque([b""])
        while waiting:
            folder = waiting.popleft()
            try:
                if not self._enter(folder):
                    continue
                entries = sorted(os.scandir(os.path.join(self._root, folder)), key=lambda entry: entry.name)
            # Listed like a file, so that people are told of it.
            except OSError:
                yield folder, [0, 0]
                continue
            for entry in entries:
                if entry.name.startswith(b"."):
                    continue
                if _is_link_to_folder(entry, self._follows):
                    waiting.append(os.path.join(folder, entry.name))
                else:
                    with suppress(FileNotFoundError):  # gone meanwhile
                        yield os.path.join(folder, entry.name), _stamp(entry.path, self._follows)

    def _enter(self, folder: bytes) -> bool:
        """True if a folder was not met before, under another path. Raises OSError."""
        status = os.stat(os.path.join(self._root, folder))
        # By device and number, which end a circle of links too.
        place = (status.st_dev, status.st_ino)
        if place in self._seen:
            return False
        self._seen.add(place)
        self.folders[folder] = status.st_mtime_ns
        return True


def _is_link_to_folder(entry: os.DirEntry[bytes], follows: bool) -> bool:
    """True for a folder, or a link to one that is followed; False for a link that leads to itself."""
    try:
        return entry.is_dir(follow_symlinks=follows)
    except OSError:
        return False


def _stamp(path: bytes, follows: bool) -> list[int]:
    """Return bytes and time of a file, or of the link itself. Raises OSError."""
    status = os.lstat(path)
    if follows:
        with suppress(OSError):
            # Of what the link leads to, so that a change there is noticed; a link that leads nowhere keeps its own
            # stamp.
            status = os.stat(path)
    return [status.st_size, status.st_mtime_ns]


def _bytes(text: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(text, dtype=np.uint8)
