"""Landlock: limit the process to given paths, and let it bind or connect no TCP port. Linux 5.13 and newer.

Called by `jail`. Landlock allows stat, chdir, readlink, and changes of owner, mode and times everywhere; `seccomp`
refuses those that matter.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterable
from pathlib import Path

from workers.sandbox import kernel

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
_VERSION_FLAG = 1
_PATH_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _REMOVE_DIR, _REMOVE_FILE = (1 << bit for bit in range(6))
_MAKE_DIR, _MAKE_FILE = 1 << 7, 1 << 8
_TRUNCATE = 1 << 14

_KNOWN = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
"""Version -> all rights on files that it knows; later versions know no more."""
_TCP = 0b11
_UNLOGGED = 1
"""From version 7 on: denials of a program do not fill the system's log."""
_SCOPES = 0b11
"""Unix sockets without a path, and signals, of outside processes."""

READ = _READ_FILE | _READ_DIR
WRITE = READ | _WRITE_FILE | _TRUNCATE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_FILE
_ON_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE


class _Ruleset(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64)]


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32)]


def version() -> int:
    """Return the kernel's version of Landlock, from 1. Raises OSError if it has none."""
    try:
        return kernel.syscall("Landlock", _CREATE, None, ctypes.c_size_t(0), _VERSION_FLAG)
    except OSError as error:
        if error.errno == errno.EOPNOTSUPP:
            raise OSError(errno.EOPNOTSUPP, "Landlock is not among the security modules it was booted with") from None
        raise


def restrict(rules: Iterable[tuple[Path, int]], known: int) -> None:
    """Allow READ or WRITE beneath each path, for good; missing paths are skipped.

    `known` is the version to use, at most `version()`. Raises OSError.
    """
    # The kernel refuses rights that its version does not know, so a newer right is asked for only where it exists.
    handled = _KNOWN[min(known, max(_KNOWN))]
    network, scopes = (_TCP if known >= 4 else 0), (_SCOPES if known >= 6 else 0)
    attributes = _Ruleset(handled, network, scopes)
    # An older kernel refuses a structure with fields that it does not know, unless it is cut.
    size = 24 if known >= 6 else 16 if known >= 4 else 8
    ruleset = kernel.syscall("a Landlock ruleset", _CREATE, ctypes.byref(attributes), ctypes.c_size_t(size), 0)
    try:
        for path, rights in rules:
            _allow(ruleset, path, rights & handled)
        kernel.syscall("landlock_restrict_self", _RESTRICT, ruleset, _UNLOGGED if known >= 7 else 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: Path, rights: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError, NotADirectoryError):
        # A path that is missing needs no rule: what is not allowed is refused.
        return
    try:
        # The kernel refuses rights on folders in a rule for a file.
        rights = rights if path.is_dir() else rights & _ON_FILES
        rule = _Beneath(rights, opened)
        kernel.syscall(f"a Landlock rule for {path}", _ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(opened)
