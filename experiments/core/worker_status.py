"""Publish and read what each worker does and holds in memory, through Redis.

Each worker reports about every second, and is forgotten when it stays silent. `workers.jobs.heartbeat` publishes,
the Workers page reads. Nothing here is permanent, and nothing loads a model.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from typing import Any, cast

from django.conf import settings
from redis import RedisError

from experiments.core import notify
from experiments.models import Job, Run, UnitProfile

KEPT_SECONDS = 120
"""Seconds for which a silent worker is still listed."""
MAX_SILENT_SECONDS = 15
"""Seconds of silence after which a worker counts as lost."""
MAX_PLACES = 4
"""Maximum loaded models that a line names."""

_PREFIX = "maia:worker:"


def publish_status(name: str, report: dict[str, Any]) -> bool:
    """Publish a worker's report; return False if Redis is away."""
    try:
        notify.redis().set(_PREFIX + name, json.dumps(report), ex=KEPT_SECONDS)
    except RedisError:
        return False
    return True


def remove_worker(name: str) -> None:
    """Remove a worker that ends from the list."""
    with suppress(RedisError):
        notify.redis().delete(_PREFIX + name)


def alive_workers() -> list[dict[str, Any]] | None:
    """Return the last reports of workers by name, each with the seconds since as `silent`; None if Redis is away."""
    try:
        names = sorted(notify.redis().scan_iter(match=f"{_PREFIX}*", count=500))
        # The remaining lifetime tells the age: clocks of machines need not agree.
        reports = [(notify.redis().get(name), notify.redis().pttl(name)) for name in names]
    except RedisError:
        return None
    # A report may have expired between the two reads.
    return [
        json.loads(cast("str", report)) | {"silent": max(0.0, KEPT_SECONDS - left / 1000)}
        for report, left in reports
        if report and left > 0
    ]


def has_worker() -> bool:
    """True if any worker reported recently; False if Redis is away. Every page calls it."""
    return any(state(each) != "late" for each in alive_workers() or ())


def describe_worker(report: dict[str, Any]) -> dict[str, Any]:
    """Return a report with what only the page needs: its state, shares for bars, and words for what it does."""
    places = report.get("places", [])
    weights = sum(place["bytes"] for place in places)
    return report | {
        "state": state(report),
        "refuses": report.get("refuses", ""),
        "problems": report.get("problems", []),
        "plugins": report.get("plugins", []),
        "weights": weights,
        # A divisor. Weights may exceed the budget while a model is in use.
        "scale": max([report.get("budget") or weights, weights, 1]),
        "doing": [_describe_job(each) for each in report.get("jobs", [])],
        "idle": max(0, report.get("threads", 0) - len(report.get("jobs", []))),
    }


def state(report: dict[str, Any]) -> str:
    """Return a worker's state: "late"; "refuses" if its code is not of the database's version; "busy" or "ready"."""
    if report["silent"] > MAX_SILENT_SECONDS:
        return "late"
    return "refuses" if report.get("refuses") else "busy" if report.get("jobs") else "ready"


def describe_places(report: dict[str, Any]) -> str:
    """Return a line of what a worker has loaded: each name once, with its count if more than one."""
    counts = Counter(str(place["name"]) for place in report.get("places", []))
    said = [name if count == 1 else f"{name} ({count} times)" for name, count in counts.items()]
    more = len(said) - MAX_PLACES
    return ", ".join(said[:MAX_PLACES]) + (f" and {more} more" if more > 0 else "")


def _describe_job(job: dict[str, Any]) -> dict[str, Any]:
    """Describe a job in progress: what it does, on what, with a run's address, its progress and its seconds so far."""
    kind, row = str(job["name"]).rpartition(".")[2], int(job.get("row") or 0)
    words = _WORDS.get(kind, kind.replace("_", " ").capitalize())
    found = {"words": words, "subject": "", "url": "", "progress": "", "seconds": job.get("seconds", 0.0)}
    report = None
    if kind == "round" and (run := Run.objects.filter(pk=row).first()):
        found |= {"subject": run.question, "url": run.get_absolute_url()}
        _, report = notify.current(run.pk)
    elif kind == "work" and (task := Job.objects.filter(pk=row).first()):
        found |= {"words": task.get_kind_display(), "subject": task.subject}
        report = notify.read_report(task.topic)
    elif kind == "write_exemplars":
        profile = UnitProfile.objects.filter(pk=row).select_related("unit__layer__model").first()
        found["subject"] = str(profile.unit) if profile else ""
        report = notify.read_report(f"profile:{row}")
    if report:
        found["progress"] = f"{report['what']}: {report['done']} of {report['total']}"
    return found


_WORDS = {
    "round": "A round of a run",
    "work": "A job",
    "write_exemplars": "Exemplars of a unit",
    "write_catalogue": "Looking at every model and dataset",
    "recover": "Looking for what was lost",
}


# --- the workers' sandbox: nothing is probed here ---


def publish_sandbox(warning: str, on: int, of: int) -> None:
    """Publish how many sandbox layers a worker has on, and a warning for everyone, "" if all is well. Workers call
    it repeatedly; it lasts some minutes."""
    notify.keep_report("sandbox", warning, on, of)


def warn_of_sandbox() -> str:
    """Return the warning that every page shows; if no worker has reported, what this process knows by itself."""
    reports = notify.read_report("sandbox")
    if reports is not None:
        return str(reports["what"])
    return "MAIA_SANDBOX_OVERRIDE is on: programs may run in a sandbox with holes." if settings.SANDBOX_OVERRIDE else ""
