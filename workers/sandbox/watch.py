"""Check bounds that the kernel does not enforce for an ordinary user: threads, and the size of the scratch folder.

The zygote checks at intervals; between two checks a program may exceed them. Knows only processes and folders.
"""

from __future__ import annotations

import contextlib
import os
import select
import stat
from collections.abc import Iterator
from pathlib import Path

from workers.sandbox.jail import FILE_BYTES

LOOK_SECONDS = 0.05
THREADS = 64
SCRATCH_BYTES = 256 << 20
SCRATCH_FILES = 1000


def find_excess(pidfd: int, scratch: str) -> str:
    """Say what the process behind `pidfd` did too much of; empty if nothing, or if it is gone."""
    try:
        # Through the pidfd: the number of a process that has ended may belong to another one.
        process = Path("/proc", read_field(Path(f"/proc/self/fdinfo/{pidfd}"), "Pid")[0])
        if int(read_field(process / "status", "Threads")[0]) > THREADS:
            return f"started more than {THREADS} threads"
        # A deleted file takes up space while it is open or mapped.
        nameless = _list_deleted(process, os.path.realpath(scratch))
    except (OSError, ValueError):
        # Whether the process has ended; it may not be reaped yet
        poller = select.poll()
        poller.register(pidfd, select.POLLIN)
        # A living process that hides something from the check counts as having too much.
        return "" if bool(poller.poll(0)) else "hid how many threads and files it has"
    try:
        sizes = [*_list_sizes(scratch), *nameless]
        if len(sizes) > SCRATCH_FILES:
            return f"made more than {SCRATCH_FILES} files and folders"
        return f"wrote more than {SCRATCH_BYTES >> 20} MiB of files" if sum(sizes) > SCRATCH_BYTES else ""
    except OSError:
        return "made folders that cannot be looked into"


def _list_sizes(scratch: str) -> Iterator[int]:
    """Return the bytes of each file and folder, at most a few too many. Raises OSError for a folder that hides its
    content.
    """
    left, count = [scratch], 0
    while left and count <= SCRATCH_FILES:
        with contextlib.suppress(FileNotFoundError), os.scandir(left.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    if entry.is_dir(follow_symlinks=False):
                        left.append(entry.path)
                    # Blocks, not length: a sparse file takes up only what was written.
                    yield entry.stat(follow_symlinks=False).st_blocks * 512
                count += 1
                # Enough to refuse the program; listing millions of files would hold up the zygote.
                if count > SCRATCH_FILES:
                    return


def _list_deleted(process: Path, scratch: str) -> list[int]:
    """Return the bytes of each deleted file that is still open or mapped. Raises OSError if reading is not
    permitted."""
    # All threads share files and memory, so one that lives will do; the first may have ended before the others.
    for thread in (process / "task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if maps := (thread / "maps").read_bytes():  # it lives
                held = _list_open_deleted(thread)
                # Mappings do not tell sizes, so each file counts as the largest possible one.
                return [*held.values(), *(FILE_BYTES for inode in _list_mapped(maps, scratch) if inode not in held)]
    return []


def _list_open_deleted(thread: Path) -> dict[int, int]:
    """Return inode -> bytes of each open file that was deleted.

    Raises OSError if reading is not permitted, ProcessLookupError if the thread ended meanwhile.
    """
    held = {}
    try:
        with os.scandir(thread / "fd") as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    found = Path(entry.path).stat()
                    if stat.S_ISREG(found.st_mode) and found.st_nlink == 0:
                        held[found.st_ino] = found.st_blocks * 512
    except PermissionError:
        # What remains of a thread that has ended belongs to root, and would look as if the process hid something.
        if (thread / "maps").read_bytes():
            raise
        raise ProcessLookupError(f"{thread} has ended") from None
    return held


def _list_mapped(maps: bytes, scratch: str) -> set[int]:
    """Return the inodes of the deleted files of the scratch folder in a list of mappings."""
    ours = os.fsencode(scratch) + b"/"
    lines = maps.split(b"\n") if b" (deleted)" in maps else []
    fields = (line.split(None, 5) for line in lines if line.endswith(b" (deleted)"))
    return {int(each[4]) for each in fields if each[5].startswith(ours)}


def read_field(path: Path, name: str) -> list[str]:
    """Return the words of a line "name: words" of a file in /proc. Raises OSError, ValueError."""
    # Split as bytes, only at line feeds: the kernel escapes these in the name of a process, and a program can choose
    # any other byte there.
    for line in path.read_bytes().split(b"\n"):
        key, _, value = line.partition(b":")
        if key == name.encode():
            return value.decode("utf-8", "replace").split()
    raise ValueError(f"{path} has no {name}")
