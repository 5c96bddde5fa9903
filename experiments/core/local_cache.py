"""A bounded file cache in a folder that several processes share. The least recently used files are removed first."""

from __future__ import annotations

import os
import secrets
import threading
from contextlib import suppress
from pathlib import Path

_SHARE = 20
"""The folder is checked each time a twentieth of the limit has been written."""
_LEFT = 0.9
"""The share of the limit that remains after files were removed."""


class LocalCache:
    """`most` is in bytes. A file is complete or absent. If the disk is full or away, nothing is cached."""

    def __init__(self, folder: Path, most: int) -> None:
        self._folder, self._most = folder, most
        self._written = most  # so that the first write checks the folder
        self._lock = threading.Lock()

    def read(self, name: str) -> bytes | None:
        path = self._folder / name
        try:
            data = path.read_bytes()
            # The files used longest ago are removed first.
            os.utime(path)
        except OSError:
            return None
        return data

    def write(self, name: str, data: bytes) -> None:
        # One file must not push out most of the others.
        if len(data) > self._most // _SHARE:
            return
        path = self._folder / name
        part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            part.write_bytes(data)
            part.replace(path)
        except OSError:
            # The cache only saves time: a full disk must not fail the request.
            with suppress(OSError):
                part.unlink(missing_ok=True)
            return
        with self._lock:
            self._written += len(data)
            if self._written < self._most // _SHARE:
                return
            self._written = 0
        # Outside the lock: it walks the whole folder.
        self._make_room()

    def remove(self, name: str) -> None:
        with suppress(OSError):
            (self._folder / name).unlink(missing_ok=True)

    def _make_room(self) -> None:
        """Remove old files. Other processes do the same, so a file that is already gone is no error."""
        found = []
        for path in self._folder.rglob("*"):
            with suppress(OSError):
                if path.is_file():
                    about = path.stat()
                    found.append((about.st_mtime, about.st_size, path))
        total = sum(size for _, size, _ in found)
        if total <= self._most:
            return
        for _, size, path in sorted(found):
            with suppress(OSError):
                path.unlink(missing_ok=True)
            total -= size
            if total <= self._most * _LEFT:
                return
