"""Open untrusted files of a folder, and take a first look at all of them.

Used by `file_list` and `dataset`.
"""

# ruff: noqa: PTH118 - paths are bytes here: names of files need not be text
from __future__ import annotations

import hashlib
import os
import stat
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import IO

import numpy as np
from numpy.typing import NDArray

from workers.errors import BrokenImage
from workers.lab.decoding import check_file

MAX_BYTES = 1 << 30
_THREADS = 4
_TOGETHER = 5_000  # files between two reports of progress
_PART = 1 << 20
_EDGE = 4_096
"""Bytes of a file's beginning, and of its end, that distinguish most files: the rest is read only if these agree."""


@dataclass(frozen=True)
class Reach:
    """The root of the paths, and where the files that they lead to may lie."""

    root: bytes
    homes: tuple[bytes, ...]

    def open(self, path: bytes) -> IO[bytes]:
        """Open the file, if it is a regular one in a permitted folder. Raises BrokenImage, OSError."""
        # The real path, since a link in the middle of a path leads out as well as one at its end.
        real = os.path.realpath(os.path.join(self.root, path))
        if not any(os.path.commonpath([home, real]) == home for home in self.homes):
            raise BrokenImage("it is a link that leads out of the folder, and this dataset does not follow such links")
        # Without waiting, as opening a pipe would until someone writes to it.
        descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        # Of the open file, which cannot be exchanged any more.
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or not 0 < status.st_size <= MAX_BYTES:
            os.close(descriptor)
            raise BrokenImage(_name_oddity(status))
        return os.fdopen(descriptor, "rb")


def look_at_files(
    reach: Reach, paths: Sequence[bytes], report: Callable[[int], None]
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return which files are images by their headers, (n,), and the position of the first file with the same bytes,
    (n,).

    `report` gets the number of files done; its exceptions pass through.
    """
    # 1. Size and edges distinguish most files, without reading them whole.
    marks: list[bytes] = []
    first = np.arange(len(paths), dtype=np.int64)
    with ThreadPoolExecutor(_THREADS, "look") as threads:
        for start in range(0, len(paths), _TOGETHER):
            report(start)
            marks += threads.map(lambda path: _mark(reach, path), paths[start : start + _TOGETHER])
        # 2. Read whole only those whose marks agree.
        often = Counter(marks)
        alike = [at for at, mark in enumerate(marks) if mark and often[mark] > 1]
        known: dict[bytes, int] = {}
        for start in range(0, len(alike), _TOGETHER):
            report(len(paths))
            some = alike[start : start + _TOGETHER]
            for at, digest in zip(some, threads.map(lambda at: _digest(reach, paths[at]), some), strict=True):
                first[at] = known.setdefault(digest, at) if digest else at
    return np.array([bool(mark) for mark in marks], dtype=np.bool_), first


def _mark(reach: Reach, path: bytes) -> bytes:
    """Return a digest of a file's size and edges; empty if it is no image by its header."""
    try:
        with reach.open(path) as file:
            check_file(file)
            # The size alone tells most files apart.
            size = file.seek(0, os.SEEK_END)
            digest = hashlib.blake2b(size.to_bytes(8, "big"), digest_size=16)
            # Both edges, since formats begin alike.
            for start in (0, max(0, size - _EDGE)):
                file.seek(start)
                digest.update(file.read(_EDGE))
            return digest.digest()
    except (BrokenImage, OSError):
        return b""


def _digest(reach: Reach, path: bytes) -> bytes:
    """Return the SHA-256 of the whole file; empty if it has become unreadable."""
    try:
        digest = hashlib.sha256()
        with reach.open(path) as file:
            # In parts: a file may have a gigabyte.
            while part := file.read(_PART):
                digest.update(part)
        return digest.digest()
    except (BrokenImage, OSError):
        return b""


def _name_oddity(status: os.stat_result) -> str:
    if stat.S_ISDIR(status.st_mode):
        return "it is a folder that cannot be read, or a link to a folder; this dataset does not follow such links"
    if not stat.S_ISREG(status.st_mode):
        return "it is no file but a device, a pipe or a socket"
    return "it is empty" if not status.st_size else f"it has over {MAX_BYTES:,} bytes"
