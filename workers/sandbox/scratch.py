"""Remove the folders that programs write in, whatever a program made of them. Used by `launcher` and `zygote`."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_folder(folder: Path) -> None:
    """Remove a folder and everything in it, following no link; stops at anything that is not ours to remove."""
    with contextlib.suppress(OSError):
        folder.chmod(0o700)
        here = os.open(folder, _FOLDER)
        try:
            # Step by step, since folders may be nested deeper than a path or a stack of calls can follow.
            left = [("", _empty_folder(here))]
            while left:
                name, inner = left[-1]
                if inner:
                    here = _step(inner[-1], here)
                    left.append((inner.pop(), _empty_folder(here)))
                elif left.pop() and left:
                    here = _step("..", here)
                    os.rmdir(name, dir_fd=here)
        finally:
            os.close(here)
        folder.rmdir()


def _step(name: str, here: int) -> int:
    """Go from an open folder to one beside or above it."""
    if name != "..":
        # A program can make folders that grant no rights, not even to their owner.
        os.chmod(name, 0o700, dir_fd=here)
    # O_NOFOLLOW: a link in place of a folder would lead out of it.
    there = os.open(name, _FOLDER, dir_fd=here)
    os.close(here)
    return there


def _empty_folder(here: int) -> list[str]:
    """Delete the files of an open folder; return the names of its folders."""
    with os.scandir(here) as entries:
        found = list(entries)
    for entry in found:
        if not entry.is_dir(follow_symlinks=False):
            os.unlink(entry.name, dir_fd=here)
    return [entry.name for entry in found if entry.is_dir(follow_symlinks=False)]
