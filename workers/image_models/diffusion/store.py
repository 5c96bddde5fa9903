"""Keep the images of pipelines by request, so that the same request never runs twice: a PNG file each, with its remark.

Files lie in `<state>/generated/ab/<key>.png`. They are not compressed: reading one takes a millisecond or two.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from PIL import Image
from PIL.PngImagePlugin import PngInfo

from workers.errors import MachineryError
from workers.files import atomic_write, hold_lock
from workers.protocols import Json, Picture


def request_key(**parts: Json) -> str:
    """Return the SHA-256, in hex, of all that a request depends on."""
    # Sorted, so that the order of arguments does not matter.
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class ImageStore:
    """Pictures by key, shared by the threads and processes of an installation."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, key: str) -> Picture | None:
        """Return what was made for the request; None if nothing was, or its file is damaged."""
        try:
            # Only PNG is written here, so no other decoder is started.
            with Image.open(self._path(key), formats=["PNG"]) as file:
                file.load()
                return Picture(file.convert("RGB"), note=str(file.info.get("remark", "")))
        except Exception:  # noqa: BLE001  a damaged file raises anything, and is made again
            return None

    def keep(self, key: str, picture: Picture) -> None:
        """Write an image whole or not at all, without compression. Raises MachineryError if the disk fails."""
        about = PngInfo()
        # iTXt, since remarks quote prompts in any script; half characters cannot be encoded.
        about.add_itxt("remark", picture.note.encode(errors="replace").decode())
        with self._on_disk(), atomic_write(self._path(key)) as file:
            picture.image.save(file, "PNG", compress_level=0, pnginfo=about)

    @contextmanager
    def alone(self, keys: Sequence[str], waiting: Callable[[], None]) -> Iterator[None]:
        """Hold the locks of these requests, which `keep` needs. Raises MachineryError, as `keep` does.

        `waiting` is called while another process holds one; its exception ends the wait. Keys that begin alike share a
        lock. Locks are taken in order, to avoid deadlocks.
        """
        with ExitStack() as held:
            # One lock for a folder: 256 files at most, however many images are kept.
            for folder in sorted({self._path(key).parent for key in keys}):
                with self._on_disk():
                    held.enter_context(hold_lock(folder / "lock", waiting))
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
        # Folders of two digits, so that none holds very many files.
        return self._folder / key[:2] / f"{key}.png"
