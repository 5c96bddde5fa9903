"""Checks that the database, Redis and the file store answer, for load balancers and containers: `/readyz`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from django.core.files.storage import FileSystemStorage, default_storage, storages
from django.db import connection

from experiments.core import notify
from experiments.core.bucket import Bucket
from experiments.models import Run

MIN_FREE = 64 << 20
"""Bytes of free disk space below which a round may not be able to write."""
PATIENCE = 4.0
"""Timeout of each check, in seconds."""
_NEVER = "f" * 64
"""A name that no file has."""


def probe() -> dict[str, str]:
    """Return for each part why it is not ready; "" if it is. Takes about `PATIENCE` seconds at most."""
    # Not as a context, whose end would wait for a check that hangs
    pool = ThreadPoolExecutor(len(_PARTS), thread_name_prefix="probe")
    asked = {name: pool.submit(_try, ask) for name, ask in _PARTS.items()}
    found = {}
    for name, answer in asked.items():
        try:
            found[name] = answer.result(PATIENCE)
        except TimeoutError:
            found[name] = f"It has not answered within {PATIENCE:g} s."
    # A part that hangs must not hold up the answer.
    pool.shutdown(wait=False, cancel_futures=True)
    return found


def _try(ask: Callable[[], str]) -> str:
    """Return the result of a check. Any error means that the part is not ready."""
    try:
        return ask()
    except Exception as error:  # noqa: BLE001 - whatever it is
        return f"{type(error).__name__}: {error}"
    finally:
        # Connections belong to threads: without this, each check would leave one open
        connection.close()


def _ask_database() -> str:
    """Query a real table, so that a database without tables is not ready."""
    Run.objects.order_by("-pk").values_list("status").first()
    return ""


def _ask_redis() -> str:
    notify.redis().ping()
    return ""


def _ask_storage() -> str:
    """Check that files can be looked up, and for a folder, that it can be written to and has space."""
    if isinstance(storages["default"], Bucket):
        storages["default"].ask()
        return ""
    default_storage.exists(_NEVER)
    if not isinstance(default_storage, FileSystemStorage):
        return ""
    folder = default_storage.location
    Path(folder).mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        return f"Nothing can be written to {folder}: give its user the right."
    free = shutil.disk_usage(folder).free
    return "" if free >= MIN_FREE else f"The disk of {folder} has {free >> 20} MiB left: make room."


_PARTS: Mapping[str, Callable[[], str]] = {
    "database": _ask_database,
    "redis": _ask_redis,
    "storage": _ask_storage,
}
