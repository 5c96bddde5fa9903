"""Pointers of Git LFS: the few lines that stand where a file would, in a clone that did not fetch it."""

from __future__ import annotations

MARK = b"version https://git-lfs.github.com/spec/"
EXPLAINED = "a pointer of Git LFS and not the file itself: run `git lfs pull` in its repository"


def is_pointer(start: bytes) -> bool:
    """Whether a file that begins so, with 64 bytes or more, is a pointer."""
    return start.startswith(MARK)
