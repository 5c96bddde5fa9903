"""Who may look into the state folder: sessions, password hashes, images and imports lie there."""

from __future__ import annotations

import os
from pathlib import Path

OURS = ("secret_key", "maia.sqlite3", "images", "toybox")
"""What tells a state folder from another."""


def umask_for(state: Path) -> int:
    """Shut a state folder of ours to others; the umask that keeps what is made later as private as the folder.

    A folder that its group may write to is shared on purpose, and stays so. One that is not ours, or holds nothing of
    ours yet and was not empty, is left as it is; `manage.py check` tells of it.
    """
    try:
        about = state.stat()
        shared = 0o070 if about.st_mode & 0o020 else 0
        known = any((state / name).exists() for name in OURS) or not any(state.iterdir())
        if about.st_uid == os.geteuid() and known and about.st_mode & 0o077 & ~shared:
            state.chmod(about.st_mode & (0o7700 | shared))
    except OSError:  # it is not there yet; or `secret_key` and the checks say what is wrong with it
        return 0o077
    return 0o077 & ~shared
