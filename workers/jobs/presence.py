"""What this worker says of itself for the Workers page: device, memory, what is loaded, what it is doing.

A thread looks every second and tells when something changed, else every few seconds. It loads and probes nothing: of
the laboratory and of PyTorch it says only what is there already.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection

from experiments import roster
from workers.jobs.queue import row_of

log = logging.getLogger(__name__)

LOOK_EVERY = 1.0
"""Seconds between two looks."""
TELL_EVERY = 5.0
"""Seconds between two reports while nothing changes."""


class Presence:
    """One worker's place on the list. `began` and `ended` may be called from any thread."""

    def __init__(self, threads: int) -> None:
        self.name = f"{socket.gethostname()}:{os.getpid()}"
        self.threads = threads
        self.up_since = time.time()
        self._jobs: dict[str, tuple[str, float]] = {}
        self._lock = threading.Lock()
        self._gone = threading.Event()
        self._thread = threading.Thread(target=self._stay, name="presence", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def leave(self) -> None:
        """Take the worker off the list."""
        self._gone.set()
        self._thread.join(2 * LOOK_EVERY)
        roster.leave(self.name)

    def began(self, message_id: str, job: str) -> None:
        """A job is under way."""
        with self._lock:
            self._jobs[message_id] = (job, time.monotonic())

    def ended(self, message_id: str) -> None:
        with self._lock:
            self._jobs.pop(message_id, None)

    def report(self) -> dict[str, Any]:
        """All that the page shows, as plain data. Sizes are in bytes, times in seconds."""
        now = time.monotonic()
        with self._lock:
            jobs = dict(self._jobs)
        return {
            "name": self.name,
            "device": settings.LAB_DEVICE,
            "precision": settings.LAB_PRECISION,
            "threads": self.threads,
            "up": time.time() - self.up_since,
            "jobs": [
                {"name": name, "row": row_of(message_id) or None, "seconds": now - since}
                for message_id, (name, since) in jobs.items()
            ],
            **shelf(),
            "memory": memory(),
        }

    def _stay(self) -> None:
        told: tuple[object, ...] = ()
        last = float("-inf")
        try:
            while not self._gone.wait(LOOK_EVERY):
                report = self.report()
                if gist(report) != told or time.monotonic() - last >= TELL_EVERY:
                    roster.tell(self.name, report)
                    told, last = gist(report), time.monotonic()
        except Exception:
            log.exception("This worker is no longer seen on the Workers page.")
        finally:
            connection.close()


def gist(report: dict[str, Any]) -> tuple[object, ...]:
    """What of a report is worth telling at once."""
    places = tuple((place["name"], place["bytes"], place["busy"]) for place in report["places"])
    return tuple((job["name"], job["row"]) for job in report["jobs"]), places


def shelf() -> dict[str, Any]:
    """What is loaded, and the budget; nothing of either before the laboratory is there."""
    build = getattr(sys.modules.get("workers.jobs.laboratory"), "build_laboratory", None)
    if build is None or not build.cache_info().currsize:  # not imported, or not to its end
        return {"budget": int(settings.LAB_MEMORY_GB * (1 << 30)), "places": []}
    held = build().settings.shelf
    return {
        "budget": held.budget,
        "places": [
            {"name": each.name, "bytes": each.bytes, "used": each.used, "busy": each.busy} for each in held.loaded()
        ],
    }


def memory() -> dict[str, Any]:
    """Bytes used and there in all: of the CUDA device once it is in use, with its name, else of this machine."""
    torch = sys.modules.get("torch")
    if torch is not None and settings.LAB_DEVICE.startswith("cuda") and torch.cuda.is_initialized():
        free, total = torch.cuda.mem_get_info(settings.LAB_DEVICE)
        return {"of": torch.cuda.get_device_name(settings.LAB_DEVICE), "used": total - free, "total": total}
    return {"of": "", "used": resident(), "total": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")}


def resident() -> int:
    """Bytes of this process that lie in memory, 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
