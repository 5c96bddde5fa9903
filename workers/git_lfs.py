"""Pointers of Git LFS: the few lines that replace a file in a clone that did not fetch it."""

from __future__ import annotations

MARK = b"version https://git-lfs.github.com/spec/"
EXPLAINED = "a pointer of Git LFS and not the file itself: run `git lfs pull` in its repository"


def is_pointer(start: bytes) -> bool:
    """True if a file with this beginning, 64 bytes or more of it, is a pointer."""
    return start.startswith(MARK)
