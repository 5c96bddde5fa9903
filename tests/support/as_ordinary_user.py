"""Runs a command as an ordinary user, who may not look into root's folders: `python as_ordinary_user.py COMMAND…`.

Where the interpreter lies in a folder that is closed to others, the command gets a view of the file system in which
that folder holds the interpreter and nothing else. Needs root; ends with 77 where even root may not mount.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

NOBODY = 65534
CANNOT = 77
NEW_MOUNTS, BIND, RECURSIVE, PRIVATE = 0x00020000, 4096, 16384, 1 << 18


def closed_folder(path: Path) -> Path | None:
    """The outermost folder on the way to `path` that others may not pass."""
    return next((each for each in reversed(path.parents) if not each.stat().st_mode & 0o001), None)


def mount(source: str, target: Path, kind: bytes | None, flags: int, options: bytes | None = None) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(source.encode(), str(target).encode(), kind, ctypes.c_ulong(flags), options) != 0:
        raise OSError(ctypes.get_errno(), f"cannot mount {target}")


def make_reachable(paths: list[Path]) -> None:
    """Show these folders to everybody, for this process and its children alone."""
    closed = {path: folder for path in paths if (folder := closed_folder(path))}
    if not closed:
        return
    if ctypes.CDLL(None).unshare(NEW_MOUNTS) != 0:
        raise OSError("no mount namespace")
    mount("none", Path("/"), None, RECURSIVE | PRIVATE)
    opened = {path: os.open(path, os.O_PATH) for path in closed}
    for folder in set(closed.values()):
        mount("none", folder, b"tmpfs", 0, b"mode=755")
    for path, number in opened.items():
        path.mkdir(parents=True, exist_ok=True)
        mount(f"/proc/self/fd/{number}", path, None, BIND)


def main(command: list[str]) -> None:
    os.umask(0o022)  # what is made here on the way is for others
    root = Path(__file__).resolve().parents[2]
    try:
        make_reachable(list(dict.fromkeys(Path(each).resolve() for each in (sys.base_prefix, sys.prefix, root))))
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(CANNOT)
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    os.execv(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
