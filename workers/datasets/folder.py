"""Any folder of images as a dataset: every file in it, however deep, in the order of their paths.

The list of files is made once and kept in the state folder; it is made anew when the folder has changed. Nothing in
the folder is trusted: what a path leads to and what a file holds is looked at when it is read, and whatever is no image
keeps its position and is a `BrokenImage`. Loaded through the registry.
"""

# ruff: noqa: PTH111, PTH116, PTH118 - paths are bytes here: names of files need not be text
from __future__ import annotations

import hashlib
import os
import stat
import threading
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from workers.errors import BrokenImage, MissingPart
from workers.files import atomic_write
from workers.lab.imaging import decode_file
from workers.protocols import LabSettings, Picture, Progress, no_progress

PICTURES = (b".jpg", b".jpeg", b".png", b".webp", b".gif", b".bmp", b".tif", b".tiff", b".jfif")
"""How names of images end; a file without an ending may be one too."""
BUNDLES = (b".tar", b".parquet", b".arrow", b".zip", b".tar.gz", b".tgz", b".tfrecord")
"""How names of files end that hold many images, which are not looked into."""
LOOKED_AT = 100_000
"""Files whose size and time are compared before a kept list is trusted; of folders, all."""
MAX_BYTES = 1 << 30
_OFTEN = 5_000  # files between two reports of progress


def missing(settings: LabSettings, path: str) -> str:  # noqa: ARG001 - the registry's contract
    """Says so if there is no such folder."""
    if Path(os.path.expanduser(path)).is_dir():
        return ""
    return f"There is no folder {path!r}. Name one that holds images and that the worker may read."


def load(settings: LabSettings, path: str) -> ImageFolder:
    """The dataset; nothing is listed yet. Raises MissingPart if there is no such folder."""
    if message := missing(settings, path):
        raise MissingPart(message)
    return ImageFolder(Path(os.path.expanduser(path)).resolve(), settings)


class ImageFolder:
    """The dataset "folder:PATH". See `protocols.Dataset`. Safe for threads."""

    def __init__(self, root: Path, settings: LabSettings) -> None:
        self.name = root.name or "root"
        self._root = root
        self._limit = settings.dataset_images
        digest = hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
        self._kept = settings.state / "datasets" / f"folder-{digest}.npz"
        self._lock = threading.Lock()
        self._known: FileList | None = None

    @property
    def revision(self) -> str:
        """Names paths, sizes and times of all files, and the limit if it leaves some out."""
        listing = self._listing()
        return listing.digest if len(self) == len(listing) else f"{listing.digest}-{len(self)}"

    def __len__(self) -> int:
        """Files, whether they are images or not."""
        found = len(self._listing())
        return min(self._limit or found, found)

    def __getitem__(self, index: int) -> Picture:
        """The image at a position, reduced as `imaging.decode_file` says.

        Raises BrokenImage, naming the file and the reason; IndexError; MissingPart if the folder is gone.
        """
        if not 0 <= index < len(self):
            raise IndexError(f"There is no file {index}: they are numbered 0 to {len(self) - 1}.")
        try:
            with self._open(self._listing().path(index)) as file:
                return Picture(decode_file(file))
        except BrokenImage as error:
            raise BrokenImage(f"{self.source(index)}: {error}.") from error
        except OSError as error:
            if not self._root.is_dir():
                raise MissingPart(f"The folder {str(self._root)!r} is no longer there. Bring it back.") from error
            raise BrokenImage(f"{self.source(index)}: it cannot be read ({error.strerror}).") from error

    def count(self) -> int:
        """Files that are images by their names, which is all that can be told without reading them.

        Raises MissingPart where there are none, but files that bundle them.
        """
        listing = self._listing()
        names = [listing.path(at).rpartition(b"/")[2].lower() for at in range(len(self))]
        found = sum(name.endswith(PICTURES) or b"." not in name for name in names)
        bundles = [os.fsdecode(name) for name in names if name.endswith(BUNDLES)]
        if bundles and not found:
            raise MissingPart(
                f"The folder {str(self._root)!r} holds no images but {len(bundles)} files such as {bundles[0]!r}, "
                "which are not looked into. Unpack them into a folder, or save the dataset with the library "
                "`datasets` (load_dataset, then save_to_disk) and name that."
            )
        return found

    def source(self, index: int) -> str:
        """The file's path within the folder, fit to be shown."""
        path = os.fsdecode(self._listing().path(index)) or "."
        return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in path)

    def list_files(self, progress: Progress = no_progress) -> None:
        """List the files, if no list is kept or the folder has changed. What `progress` raises passes through."""
        self._listing(progress)

    def _listing(self, progress: Progress = no_progress) -> FileList:
        with self._lock:
            if self._known is None:
                kept = FileList.read(self._kept)
                if kept is None or not kept.is_current(self._root):
                    kept = FileList.of(self._root, progress)
                    kept.write(self._kept)
                self._known = kept
            return self._known

    def _open(self, path: bytes) -> IO[bytes]:
        """The file, if it is one and lies in the folder. Opening never waits, as it would for a pipe."""
        root = os.fsencode(self._root)
        real = os.path.realpath(os.path.join(root, path))
        if os.path.commonpath([root, real]) != root:
            raise BrokenImage("it is a link that leads out of the folder")
        descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or not 0 < status.st_size <= MAX_BYTES:
            os.close(descriptor)
            raise BrokenImage(_name_oddity(status))
        return os.fdopen(descriptor, "rb")


@dataclass(frozen=True)
class FileList:
    """The files of a folder, by path, and its folders. Arrays, since there may be a million."""

    paths: NDArray[np.uint8]
    """Bytes of all paths, one after another."""
    ends: NDArray[np.int64]
    """Where each path ends."""
    stamps: NDArray[np.int64]
    """(files, 2): bytes, and time of the last change in ns."""
    folders: NDArray[np.uint8]
    """Bytes of the paths of the folders, each with a NUL after it."""
    folder_times: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ends)

    def path(self, index: int) -> bytes:
        """Relative to the folder."""
        return self.paths[self.ends[index - 1] if index else 0 : self.ends[index]].tobytes()

    @cached_property
    def digest(self) -> str:
        digest = hashlib.sha256()
        for array in (self.paths, self.ends, self.stamps):
            digest.update(array.tobytes())
        return digest.hexdigest()[:12]

    def is_current(self, root: Path) -> bool:
        """Whether no folder, and none of the first `LOOKED_AT` files, has changed since."""
        top = os.fsencode(root)
        try:
            folders = self.folders.tobytes().split(b"\0")[:-1]
            times = [os.stat(os.path.join(top, folder)).st_mtime_ns for folder in folders]
            stamps = [_stamp(os.lstat(os.path.join(top, self.path(at)))) for at in range(min(len(self), LOOKED_AT))]
        except OSError:
            return False
        return times == self.folder_times.tolist() and stamps == self.stamps[:LOOKED_AT].tolist()

    @classmethod
    def of(cls, root: Path, progress: Progress = no_progress) -> FileList:
        """List the files of a folder; those whose names begin with a dot are left out, and links are not followed."""
        found: list[tuple[bytes, list[int]]] = []
        folders: list[tuple[bytes, int]] = []
        for entry in _walk(os.fsencode(root), folders):
            if len(found) % _OFTEN == 0:
                progress(f"Listing the files of {root.name}, {len(found):,} so far", 0, 1)
            found.append(entry)
        found.sort()
        paths, stamps = [path for path, _ in found], [stamp for _, stamp in found]
        return cls(
            _bytes(b"".join(paths)),
            np.cumsum([len(path) for path in paths], dtype=np.int64),
            np.array(stamps, dtype=np.int64).reshape(-1, 2),
            _bytes(b"".join(path + b"\0" for path, _ in folders)),
            np.array([time for _, time in folders], dtype=np.int64),
        )

    def write(self, path: Path) -> None:
        """Keep it, in one step. Where that fails it is made again next time."""
        with suppress(OSError), atomic_write(path) as file:
            np.savez(file, **{each.name: getattr(self, each.name) for each in fields(self)})

    @classmethod
    def read(cls, path: Path) -> FileList | None:
        """The list that was kept; None if there is none or it is damaged."""
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as saved:
                return cls(**{each.name: saved[each.name] for each in fields(cls)})
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None


def _walk(root: bytes, folders: list[tuple[bytes, int]]) -> Iterator[tuple[bytes, list[int]]]:
    """Path and stamp of every file below, and of every folder that cannot be read; fills `folders` meanwhile."""
    waiting = [b""]
    while waiting:
        folder = waiting.pop()
        try:
            folders.append((folder, os.stat(os.path.join(root, folder)).st_mtime_ns))
            entries = list(os.scandir(os.path.join(root, folder)))
        except OSError:
            yield folder, [0, 0]
            continue
        for entry in entries:
            if entry.name.startswith(b"."):
                continue
            if entry.is_dir(follow_symlinks=False):
                waiting.append(os.path.join(folder, entry.name))
            else:
                with suppress(FileNotFoundError):  # gone meanwhile
                    yield os.path.join(folder, entry.name), _stamp(entry.stat(follow_symlinks=False))


def _stamp(status: os.stat_result) -> list[int]:
    return [status.st_size, status.st_mtime_ns]


def _name_oddity(status: os.stat_result) -> str:
    if stat.S_ISDIR(status.st_mode):
        return "it is a folder that cannot be read, or a link to a folder; links to folders are not followed"
    if not stat.S_ISREG(status.st_mode):
        return "it is no file but a device, a pipe or a socket"
    return "it is empty" if not status.st_size else f"it has over {MAX_BYTES:,} bytes"


def _bytes(text: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(text, dtype=np.uint8)
