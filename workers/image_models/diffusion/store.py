"""Keeps what pipelines made, by request, so that the same request never runs twice: a PNG file each, with its remark.

Files lie in `<state>/generated/ab/<key>.png`. They are not compressed: reading one takes a millisecond or two.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
from PIL import Image

from workers.errors import MachineryError
from workers.protocols import Json, Picture

_WAIT = 0.05
"""Seconds between two looks at a lock that another thread or process holds."""


def request_key(**parts: Json) -> str:
    """SHA-256, in hex, of all that a request depends on."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class ImageStore:
    """Pictures by key, shared by the threads and processes of an installation."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, key: str) -> Picture | None:
        """What was made for the request; None if nothing was, or its file is damaged."""
        try:
            with Image.open(self._path(key), formats=["PNG"]) as file:
                file.load()
                return Picture(file.convert("RGB"), remark=str(file.info.get("remark", "")))
        except Exception:  # noqa: BLE001  a damaged file raises anything, and is made again
            return None

    def keep(self, key: str, picture: Picture) -> None:
        """Write it whole or not at all. Raises MachineryError if the disk does not take it."""
        path = self._path(key)
        part = path.with_suffix(f".{os.getpid()}.{threading.get_ident()}.part")
        with self._on_disk():
            try:
                part.write_bytes(plain_png(picture.image, picture.remark))
                part.replace(path)
            finally:
                part.unlink(missing_ok=True)

    @contextmanager
    def alone(self, keys: Sequence[str], waiting: Callable[[], None]) -> Iterator[None]:
        """Hold the locks of these requests, without which nothing is kept. Raises MachineryError, as `keep` does.

        `waiting` is called while another holds one; what it raises ends the wait. Keys that begin alike share a lock.
        Locks are taken in order, so that nobody waits in a circle.
        """
        with ExitStack() as held:
            for folder in sorted({self._path(key).parent for key in keys}):
                with self._on_disk():
                    folder.mkdir(parents=True, exist_ok=True)
                    file = held.enter_context((folder / "lock").open("w"))
                while not _taken(file.fileno()):
                    waiting()
                    time.sleep(_WAIT)
            yield

    @contextmanager
    def _on_disk(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise MachineryError(
                f"Images that were drawn cannot be kept in {self._folder}: {error.strerror}. "
                "Make room there, or let this user write to it; the files in it may be deleted at any time."
            ) from error

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.png"


def plain_png(image: Image.Image, remark: str) -> bytes:
    """The RGB image as PNG with neither filters nor compression, and the remark as text in it."""
    pixels = np.asarray(image).reshape(image.height, -1)
    rows = np.pad(pixels, ((0, 0), (1, 0)))  # each row begins with the number of its filter: 0, none
    header = struct.pack(">IIBBBBB", image.width, image.height, 8, 2, 0, 0, 0)
    text = b"remark\0\0\0\0\0" + remark.encode(errors="replace")
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        _chunk(kind, data)
        for kind, data in [
            (b"IHDR", header),
            (b"iTXt", text),
            (b"IDAT", zlib.compress(rows.tobytes(), 0)),
            (b"IEND", b""),
        ]
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _taken(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
