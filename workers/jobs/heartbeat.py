"""Report this worker's state for the Workers page: device, memory, loaded models, current jobs.

A thread checks every second and reports changes at once, otherwise every few seconds.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from django.conf import settings

from experiments.core import code_version, worker_status
from experiments.core.otel_package import explain_missing_package
from experiments.core.queue import row_of
from workers.jobs import counters
from workers.jobs.periodic_thread import PeriodicThread

LOOK_EVERY = 1.0
"""Interval between checks, in seconds."""
ROUND = "round"
"""Name of a run's round among the jobs."""
TELL_EVERY = 5.0
"""Interval between reports without changes, in seconds."""


class Heartbeat:
    """One worker's entry in the list. `began` and `ended` may be called from any thread."""

    def __init__(self, threads: int) -> None:
        # Host and process: several workers may run on one machine.
        self.name = f"{socket.gethostname()}:{os.getpid()}"
        self.threads = threads
        self.up_since = time.time()
        self._jobs: dict[str, tuple[str, float]] = {}
        self._rounds: dict[str, int] = {}
        # Jobs begin and end on other threads than the one that reports
        self._lock = threading.Lock()
        self._told: tuple[object, ...] = ()
        self._last = float("-inf")
        self._stay = ExitStack()

    def start(self) -> None:
        self._stay.enter_context(PeriodicThread("presence", LOOK_EVERY, self.look))

    def leave(self) -> None:
        """Remove the worker from the list."""
        self._stay.close()
        worker_status.remove_worker(self.name)

    def began(self, message_id: str, job: str) -> None:
        """Record that a job started."""
        with self._lock:
            self._jobs[message_id] = (job, time.monotonic())

    def began_round(self, key: str, run_id: int) -> None:
        """Record that a round of a run started."""
        with self._lock:
            self._rounds[key] = run_id
        self.began(key, ROUND)

    def ended(self, message_id: str) -> None:
        with self._lock:
            self._jobs.pop(message_id, None)
            self._rounds.pop(message_id, None)

    def report(self) -> dict[str, Any]:
        """Return everything that the page shows, as plain data. Sizes in bytes, times in seconds."""
        now = time.monotonic()
        # Copied under the lock, then read outside it: the report takes longer than a job should wait.
        with self._lock:
            jobs, rounds = dict(self._jobs), dict(self._rounds)
        return {
            "name": self.name,
            "device": device(),
            "precision": settings.LAB_PRECISION,
            "threads": self.threads,
            "up": time.time() - self.up_since,
            "refuses": code_version.recall_difference(),
            "jobs": [
                {"name": name, "row": rounds.get(message_id) or row_of(message_id) or None, "seconds": now - since}
                for message_id, (name, since) in jobs.items()
            ],
            **describe_cache(),
            "problems": list_problems(),
            "plugins": list_plugins(),
            "memory": memory(),
            "counters": counters.read_counters(),
        }

    def look(self) -> bool:
        """Publish the state if it changed or the interval is over."""
        report = self.report()
        news = summarize_report(report)
        if news != self._told or time.monotonic() - self._last >= TELL_EVERY:
            worker_status.publish_status(self.name, report)
            self._told, self._last = news, time.monotonic()
        return True


def summarize_report(report: dict[str, Any]) -> tuple[object, ...]:
    """Return the part of a report whose changes are published at once."""
    places = tuple((place["name"], place["bytes"], place["busy"]) for place in report["places"])
    problems, plugins = tuple(report["problems"]), tuple(each["path"] for each in report["plugins"])
    return tuple((job["name"], job["row"]) for job in report["jobs"]), places, report["refuses"], problems, plugins


def laboratory() -> Any:
    """Return the laboratory of this process, None before it exists."""
    # Only what is already imported: a heartbeat must not load or probe anything.
    build = getattr(sys.modules.get("workers.jobs.laboratory"), "build_laboratory", None)
    # `cache_info` tells whether it was built, without building it.
    if build is None or not build.cache_info().currsize:  # Not imported, or the import has not finished
        return None
    return build()


def list_held_models() -> Sequence[str]:
    """Return the keys of vision models with loaded weights, latest use first."""
    found = laboratory()
    return found.list_held_models() if found else ()


def list_problems() -> list[str]:
    """Return what was left out, as sentences: spans without their package, unusable plug-ins, broken files of toys."""
    found = laboratory()
    plugins = [each.problem for each in _read_reports() if each.problem]
    spans = [problem] if (problem := explain_missing_package()) else []
    return spans + plugins + (found.list_problems() if found else [])


def list_plugins() -> list[dict[str, Any]]:
    """Return the plug-ins that this worker loaded: path, version, and added keys."""
    return [
        {"path": each.path, "version": each.version, "adds": list(each.keys)}
        for each in _read_reports()
        if not each.problem
    ]


def _read_reports() -> Sequence[Any]:
    """Return the reports on plug-ins; empty before the laboratory exists."""
    return sys.modules["workers.jobs.laboratory"].plugin_reports if laboratory() else ()


def device() -> str:
    """Return the device of networks; before the laboratory exists, the one of the settings."""
    found = laboratory()
    return found.settings.device if found else settings.LAB_DEVICE


def describe_cache() -> dict[str, Any]:
    """Return loaded models and the memory budget. Before the laboratory exists, nothing is loaded."""
    found = laboratory()
    if found is None:
        return {"budget": int(settings.LAB_MEMORY_GB * (1 << 30)), "places": []}
    held = found.settings.model_cache
    counters.MODEL_LOADS.set(held.loads)
    names = ("name", "bytes", "used", "busy")
    return {
        "budget": held.budget,
        "places": [{name: getattr(each, name) for name in names} for each in held.loaded()],
    }


def memory() -> dict[str, Any]:
    """Return used and total bytes: of the CUDA device with its name once it is in use, else of this machine."""
    # Another thread may be importing torch: attributes can be missing
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    begun = getattr(cuda, "is_initialized", None)
    where = device()
    if cuda and begun and where.startswith("cuda") and begun():
        free, total = cuda.mem_get_info(where)
        return {"of": cuda.get_device_name(where), "used": total - free, "total": total}
    return {"of": "", "used": resident(), "total": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")}


def resident() -> int:
    """Return the resident memory of this process in bytes, 0 if the system does not report it."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
