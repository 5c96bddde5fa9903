"""What this worker says of itself for the Workers page: device, memory, what is loaded, what it is doing.

A thread looks every second and tells when something changed, else every few seconds. It loads and probes nothing: of
the laboratory and of PyTorch it says only what is there already.
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
from workers.jobs.routine import Routine

LOOK_EVERY = 1.0
"""Seconds between two looks."""
ROUND = "round"
"""What a round of a run is called among the jobs."""
TELL_EVERY = 5.0
"""Seconds between two reports while nothing changes."""


class Heartbeat:
    """One worker's place on the list. `began` and `ended` may be called from any thread."""

    def __init__(self, threads: int) -> None:
        self.name = f"{socket.gethostname()}:{os.getpid()}"
        self.threads = threads
        self.up_since = time.time()
        self._jobs: dict[str, tuple[str, float]] = {}
        self._rounds: dict[str, int] = {}
        self._lock = threading.Lock()
        self._told: tuple[object, ...] = ()
        self._last = float("-inf")
        self._stay = ExitStack()

    def start(self) -> None:
        self._stay.enter_context(Routine("presence", LOOK_EVERY, self.look))

    def leave(self) -> None:
        """Take the worker off the list."""
        self._stay.close()
        worker_status.remove_worker(self.name)

    def began(self, message_id: str, job: str) -> None:
        """A job is under way."""
        with self._lock:
            self._jobs[message_id] = (job, time.monotonic())

    def began_round(self, key: str, run_id: int) -> None:
        """A round of a run is under way."""
        with self._lock:
            self._rounds[key] = run_id
        self.began(key, ROUND)

    def ended(self, message_id: str) -> None:
        with self._lock:
            self._jobs.pop(message_id, None)
            self._rounds.pop(message_id, None)

    def report(self) -> dict[str, Any]:
        """All that the page shows, as plain data. Sizes are in bytes, times in seconds."""
        now = time.monotonic()
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
        """Tell how this worker is, if it is time or anything is new."""
        report = self.report()
        news = summarize_report(report)
        if news != self._told or time.monotonic() - self._last >= TELL_EVERY:
            worker_status.publish_status(self.name, report)
            self._told, self._last = news, time.monotonic()
        return True


def summarize_report(report: dict[str, Any]) -> tuple[object, ...]:
    """What of a report is worth telling at once."""
    places = tuple((place["name"], place["bytes"], place["busy"]) for place in report["places"])
    problems, plugins = tuple(report["problems"]), tuple(each["path"] for each in report["plugins"])
    return tuple((job["name"], job["row"]) for job in report["jobs"]), places, report["refuses"], problems, plugins


def laboratory() -> Any:
    """The laboratory of this process, None while it is not there."""
    build = getattr(sys.modules.get("workers.jobs.laboratory"), "build_laboratory", None)
    if build is None or not build.cache_info().currsize:  # not imported, or not to its end
        return None
    return build()


def list_held_models() -> Sequence[str]:
    """Keys of the vision models whose weights are loaded, latest use first."""
    found = laboratory()
    return found.list_held_models() if found else ()


def list_problems() -> list[str]:
    """What was left out, each a sentence: spans without their package, plug-ins that cannot be used, broken files of
    toys."""
    found = laboratory()
    plugins = [each.problem for each in _read_reports() if each.problem]
    spans = [problem] if (problem := explain_missing_package()) else []
    return spans + plugins + (found.list_problems() if found else [])


def list_plugins() -> list[dict[str, Any]]:
    """The plug-ins that this worker loaded: path, version, and what each adds."""
    return [
        {"path": each.path, "version": each.version, "adds": list(each.keys)}
        for each in _read_reports()
        if not each.problem
    ]


def _read_reports() -> Sequence[Any]:
    """What came of each plug-in; nothing before the laboratory is there."""
    return sys.modules["workers.jobs.laboratory"].plugin_reports if laboratory() else ()


def device() -> str:
    """Where networks run; what the settings ask for while nobody has looked what is there."""
    found = laboratory()
    return found.settings.device if found else settings.LAB_DEVICE


def describe_cache() -> dict[str, Any]:
    """What is loaded, and the budget; nothing of either before the laboratory is there."""
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
    """Bytes used and there in all: of the CUDA device once it is in use, with its name, else of this machine."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)  # neither is whole while another thread imports it
    begun = getattr(cuda, "is_initialized", None)
    where = device()
    if cuda and begun and where.startswith("cuda") and begun():
        free, total = cuda.mem_get_info(where)
        return {"of": cuda.get_device_name(where), "used": total - free, "total": total}
    return {"of": "", "used": resident(), "total": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")}


def resident() -> int:
    """Bytes of this process that lie in memory, 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
