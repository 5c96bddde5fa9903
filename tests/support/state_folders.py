"""State folders of installations, made from those that are there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def copied(source: Path, target: Path) -> Path:
    """The folder again, its files shared where they lie on the same disk; locks are each folder's own."""
    no_locks = shutil.ignore_patterns("lock", "*.lock")
    shutil.copytree(source, target, ignore=no_locks, copy_function=os.link, dirs_exist_ok=True)
    return target


def with_tables(migrated: Path, state: Path) -> Path:
    """The state folder with a copy of the empty database."""
    shutil.copy(migrated / "maia.sqlite3", state)
    return state
