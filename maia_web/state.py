"""Protect the state folder, which holds sessions, password hashes, images and imports."""

from __future__ import annotations

import os
from pathlib import Path

OURS = ("secret_key", "maia.sqlite3", "images", "toybox")
"""Files that identify a state folder."""


def umask_for(state: Path) -> int:
    """Close our state folder to others; return a umask that keeps new files as private as the folder.

    A folder that its group may write to is shared on purpose, and stays so. A folder that is not ours, or was not empty
    and holds nothing of ours, is left as it is; `manage.py check` reports it.
    """
    try:
        about = state.stat()
        shared = 0o070 if about.st_mode & 0o020 else 0
        known = any((state / name).exists() for name in OURS) or not any(state.iterdir())
        if about.st_uid == os.geteuid() and known and about.st_mode & 0o077 & ~shared:
            state.chmod(about.st_mode & (0o7700 | shared))
    except OSError:  # missing so far; otherwise `secret_key` and the checks report the problem
        return 0o077
    return 0o077 & ~shared
