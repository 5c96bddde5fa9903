"""A folder of images as a dataset: every file in it, at any depth, in the order of their paths.

"folder:PATH" reads what lies in the folder, or in the cache of the hub that it is part of. "links:PATH" also follows
links out of it, which a user with the right to add datasets allows for this one. A file that is not an image, or a
duplicate, keeps its position and is a `BrokenImage`. Loaded through the registry.
"""

# ruff: noqa: PTH111 - Path.expanduser raises for a user who does not exist
from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path

from workers.datasets.folder import hub_cache
from workers.datasets.folder.file_checks import Reach
from workers.datasets.folder.file_list import FileList
from workers.errors import BrokenImage, MissingPart
from workers.lab.decoding import decode_file
from workers.protocols import LabSettings, Picture, Progress, no_progress

BUNDLES = (b".tar", b".parquet", b".arrow", b".zip", b".tar.gz", b".tgz", b".tfrecord")
"""Endings of files that hold many images, which are not opened."""


def missing(settings: LabSettings, path: str) -> str:  # noqa: ARG001 - the registry's contract
    """Return a message if there is no such folder; "" otherwise."""
    if Path(os.path.expanduser(path)).is_dir():
        return ""
    return f"There is no folder {path!r}. Name one that holds images and that the worker may read."


def load(settings: LabSettings, path: str) -> ImageFolder:
    """Return the dataset "folder:PATH"; nothing is listed yet. Raises MissingPart if there is no such folder."""
    return _open_folder(settings, path, follows=False)


def load_linked(settings: LabSettings, path: str) -> ImageFolder:
    """Return the dataset "links:PATH"; nothing is listed yet. Raises MissingPart if there is no such folder."""
    return _open_folder(settings, path, follows=True)


def _open_folder(settings: LabSettings, path: str, *, follows: bool) -> ImageFolder:
    if message := missing(settings, path):
        raise MissingPart(message)
    return ImageFolder(Path(os.path.expanduser(path)).resolve(), settings, follows=follows)


class ImageFolder:
    """The dataset "folder:PATH" or "links:PATH". See `protocols.Dataset`. Safe for threads."""

    def __init__(self, root: Path, settings: LabSettings, *, follows: bool = False) -> None:
        self._root = hub_cache.find_snapshot(root)
        self.title = hub_cache.repository_name(self._root)
        """Its name for people if it is in the hub's cache: its path ends in a revision."""
        self.name = self.title or root.name or "root"
        self._follows = follows
        self._reach = _get_reach(self._root, follows)
        self._limit = settings.dataset_images
        # A hash, since paths may be longer than a file name, and hold any byte.
        digest = hashlib.sha256(os.fsencode(self._root)).hexdigest()[:16]
        kept = f"{'links' if follows else 'folder'}-{digest}.npz"
        self._kept = settings.state / "datasets" / kept
        self._lock = threading.Lock()
        self._known: FileList | None = None

    @property
    def revision(self) -> str:
        """Hash of paths, sizes and times of all files, and the limit if it leaves some out."""
        listing = self._listing()
        # Another limit leaves out other files, so it is another dataset.
        return listing.digest if len(self) == len(listing) else f"{listing.digest}-{len(self)}"

    def __len__(self) -> int:
        """Return the number of files, whether they are images or not."""
        found = len(self._listing())
        return min(self._limit or found, found)

    def __getitem__(self, index: int) -> Picture:
        """Return the image at a position, reduced as `decoding.decode_file` says.

        Raises BrokenImage, naming the file and the reason; IndexError; MissingPart if the folder is gone.
        """
        if not 0 <= index < len(self):
            raise IndexError(f"There is no file {index}: they are numbered 0 to {len(self) - 1}.")
        listing = self._listing()
        if (same := int(listing.first[index])) != index:
            raise BrokenImage(f"{self.source(index)}: it is the same file as {self.source(same)}.")
        try:
            # Checked when it is read: the target of a path may have changed since the folder was listed.
            with self._reach.open(listing.path(index)) as file:
                return Picture(decode_file(file))
        except BrokenImage as error:
            raise BrokenImage(f"{self.source(index)}: {error}.") from error
        except OSError as error:
            # The whole folder may be gone, such as a drive that was unmounted.
            if not self._root.is_dir():
                raise MissingPart(f"The folder {str(self._root)!r} is no longer there. Bring it back.") from error
            raise BrokenImage(f"{self.source(index)}: it cannot be read ({error.strerror}).") from error

    def count(self) -> int:
        """Count the images by their headers, each once; other defects show only on decoding.

        Raises MissingPart where there are none.
        """
        listing = self._listing()
        if found := listing.count_images(len(self)):
            return found
        what = f"The folder {str(self._root)!r} has {len(self):,} files, and none is an image that can be read."
        names = (listing.path(at).rpartition(b"/")[2] for at in range(len(self)))
        bundle = next((os.fsdecode(name) for name in names if name.lower().endswith(BUNDLES)), "")
        if bundle:
            raise MissingPart(
                f"{what} Files such as {bundle!r} are not looked into: unpack them into a folder, or save the dataset "
                "with the library `datasets` (load_dataset, then save_to_disk) and name that."
            )
        raise MissingPart(f"{what}{self._first_reason()} Put images there, or choose another folder.")

    def _first_reason(self) -> str:
        """Say why the first file cannot be read; "" if there is no file."""
        if not len(self):
            return ""
        try:
            self[0]
        except BrokenImage as error:
            return f" The first: {error}"
        return ""

    def source(self, index: int) -> str:
        """Return the file's path within the folder, fit to be shown."""
        path = os.fsdecode(self._listing().path(index)) or "."
        # The name of a file may hold control characters, or bytes that are no text.
        return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in path)

    def list_files(self, progress: Progress = no_progress) -> None:
        """List the files, if no list is kept or the folder has changed. What `progress` raises passes through."""
        self._listing(progress)

    def _listing(self, progress: Progress = no_progress) -> FileList:
        with self._lock:
            # Listed once in a process, so that positions keep their meaning.
            if self._known is None:
                kept = FileList.read(self._kept)
                if kept is None or not kept.is_current(self._root):
                    kept = FileList.of(self._root, self._reach, progress, follows=self._follows)
                    kept.write(self._kept)
                self._known = kept
            return self._known


def _get_reach(root: Path, follows: bool) -> Reach:
    """Return where files may lie: in the folder and in the blobs of the cache that it is part of, or anywhere."""
    # Files of a snapshot are links into the blobs of the cache.
    homes = (Path("/"),) if follows else (root, hub_cache.find_blobs(root) or root)
    return Reach(os.fsencode(root), tuple(map(os.fsencode, homes)))
