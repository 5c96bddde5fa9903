"""Which workers there are, what they hold in memory and what they do: told by each of them through Redis, every
second or so, and forgotten when it stays silent.

Called by `workers.jobs.heartbeat` to tell, by the Workers page to read. Nothing here is kept, and nothing loads a
model.
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
"""How long a worker that says nothing more is still listed."""
LATE_SECONDS = 15
"""Silence after which a worker counts as lost from sight."""
MAX_PLACES = 4
"""Loaded models that a line names."""

_PREFIX = "maia:worker:"


def publish_status(name: str, report: dict[str, Any]) -> bool:
    """Say how a worker is; False if Redis is away."""
    try:
        notify.redis().set(_PREFIX + name, json.dumps(report), ex=KEPT_SECONDS)
    except RedisError:
        return False
    return True


def remove_worker(name: str) -> None:
    """Take a worker that ends off the list."""
    with suppress(RedisError):
        notify.redis().delete(_PREFIX + name)


def present() -> list[dict[str, Any]] | None:
    """What the workers said last, by name, each with the seconds since as `silent`; None if Redis is away."""
    try:
        names = sorted(notify.redis().scan_iter(match=f"{_PREFIX}*", count=500))
        reports = [(notify.redis().get(name), notify.redis().pttl(name)) for name in names]
    except RedisError:
        return None
    return [
        json.loads(cast("str", report)) | {"silent": max(0.0, KEPT_SECONDS - left / 1000)}
        for report, left in reports
        if report and left > 0
    ]


def is_here() -> bool:
    """Whether any worker was heard of in time; False also where Redis is away. Every page asks here."""
    return any(state(each) != "late" for each in present() or ())


def describe_worker(report: dict[str, Any]) -> dict[str, Any]:
    """A report with what only the page needs: its state, shares for bars, and words for what it does."""
    places = report.get("places", [])
    weights = sum(place["bytes"] for place in places)
    return report | {
        "state": state(report),
        "refuses": report.get("refuses", ""),
        "problems": report.get("problems", []),
        "plugins": report.get("plugins", []),
        "weights": weights,
        "scale": max([report.get("budget") or weights, weights, 1]),
        "doing": [_describe_job(each) for each in report.get("jobs", [])],
        "idle": max(0, report.get("threads", 0) - len(report.get("jobs", []))),
    }


def state(report: dict[str, Any]) -> str:
    """How a worker is: "late"; "refuses", since its code is not of the database's version; "busy" or "ready"."""
    if report["silent"] > LATE_SECONDS:
        return "late"
    return "refuses" if report.get("refuses") else "busy" if report.get("jobs") else "ready"


def describe_places(report: dict[str, Any]) -> str:
    """What a worker has loaded, in a line: each name once, with how often where it is more than once."""
    counts = Counter(str(place["name"]) for place in report.get("places", []))
    said = [name if count == 1 else f"{name} ({count} times)" for name, count in counts.items()]
    more = len(said) - MAX_PLACES
    return ", ".join(said[:MAX_PLACES]) + (f" and {more} more" if more > 0 else "")


def _describe_job(job: dict[str, Any]) -> dict[str, Any]:
    """A job under way in words: what, on what, with a run's address, how far it is and since how many seconds."""
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


# --- their sandbox: nothing is probed here ---


def publish_sandbox(warning: str, on: int, of: int) -> None:
    """Called by a worker, again and again: how many of its layers are on, and what everybody should know of it, ""
    where all is well. Kept for some minutes."""
    notify.keep_report("sandbox", warning, on, of)


def warn_of_sandbox() -> str:
    """The warning that every page shows; what this process knows by itself where no worker has told."""
    reports = notify.read_report("sandbox")
    if reports is not None:
        return str(reports["what"])
    return "MAIA_SANDBOX_OVERRIDE is on: programs may run in a sandbox with holes." if settings.SANDBOX_OVERRIDE else ""
