"""Context of the Overview: active, waiting and recently concluded runs, workers, and models.

Plain data for templates. The number of queries is constant.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.db.models.fields.json import KT
from django.utils import timezone

from experiments.core import notify, worker_status
from experiments.core.visibility import visible_to
from experiments.display.label_checks import fetch_checks
from experiments.display.plots import Scale
from experiments.models import Backbone, Event, Observation, Run, Toolset, VisionModelRow
from workers.record.statuses import ACTIVE, Status

MAX_RUNS = 8
"""Maximum number of runs in each part. The rest is counted."""
CONCLUDED = 6
"""Number of conclusions shown."""
PICTURES = 4
"""Images beside a conclusion."""
WORDS = 320
"""Characters of a reply that are shown."""
FENCE = re.compile(r"^```\w*\n?", re.MULTILINE)
TAG = re.compile(r"^\[[A-Z][A-Z 0-9]*\]:?", re.MULTILINE)
RECENT = timedelta(days=7)
"""How long a failed run is still counted."""


def read_dashboard() -> dict[str, Any]:
    """Return the context of the Overview's templates."""
    concluded = (
        visible_to(Run.objects.filter(status__in=[Status.CONCLUDED, Status.LIMIT_REACHED]))
        .select_related("owner")
        .prefetch_related(fetch_checks())
    )
    # Runs under way before those in the queue, each with the newest of its words
    replies = Event.objects.filter(run=OuterRef("pk"), kind="reply").order_by("-seq")
    rows: QuerySet[Any] = visible_to(Run.objects.filter(status__in=ACTIVE)).select_related("owner")
    newest = Subquery(replies.annotate(prose=KT("payload__prose")).values("prose")[:1])
    chosen = list(rows.annotate(said=newest).order_by("-status", "created", "pk")[:MAX_RUNS])
    drafts = notify.all_current([run.pk for run in chosen])
    return {
        **_count_runs(),
        **_read_machinery(),
        "any": Run.objects.exists(),
        "active": [_active_run(run, *drafts[run.pk]) for run in chosen],
        "waiting": visible_to(Run.objects.filter(status=Status.WAITING)).select_related("owner")[:MAX_RUNS],
        **_read_conclusions(list(concluded.order_by("-ended", "-pk")[:CONCLUDED])),
    }


def _count_runs() -> dict[str, int]:
    """Count active, waiting and recently failed runs."""
    recent = Q(status=Status.FAILED, ended__gt=timezone.now() - RECENT)
    asked = Q(status__in=[*ACTIVE, Status.WAITING]) | recent
    rows = dict(Run.objects.filter(asked).order_by().values_list("status").annotate(Count("pk")))
    return {
        "active_count": sum(rows.get(status, 0) for status in ACTIVE),
        "waiting_count": rows.get(Status.WAITING, 0),
        "failed_count": rows.get(Status.FAILED, 0),
    }


# --- runs alive ------------------------------------------------------------------------------------------


def _active_run(run: Any, draft: str, progress: dict[str, Any] | None) -> dict[str, Any]:
    """Return an active run, its worker's progress, and the latest words of its agent.

    A reply that is being written is shown by its end, a finished one by its beginning, both without programs.
    """
    parts = FENCE.split(draft)
    writing = _strip_marks(" ".join(parts[::2]))
    words = ending(writing) if writing else shorten(_strip_marks(run.said or ""))
    # Fences split the draft into prose and code in turn: an even number of parts means an open program
    programming = len(parts) % 2 == 0
    return {"run": run, "words": words, "writing": bool(writing), "programming": programming, "progress": progress}


def _strip_marks(text: str) -> str:
    """Return the words without Markdown and without the tags of the reply's grammar."""
    return " ".join(TAG.sub(" ", str(text)).replace("#", " ").replace("*", " ").replace("`", " ").split())


def ending(text: str) -> str:
    return text if len(text) <= WORDS else "…" + text[-WORDS:].partition(" ")[2]


def shorten(text: str) -> str:
    return text if len(text) <= WORDS else text[:WORDS].rpartition(" ")[0] + "…"


# --- runs that came to an end ------------------------------------------------------------------------------


def _read_conclusions(runs: Sequence[Run]) -> dict[str, Any]:
    """Return the newest run with a label or statement for its card, and the others as rows."""
    latest = next((run for run in runs if run.labels or run.statement), None)
    return {"latest": latest, "concluded": [_describe_concluded_run(run) for run in runs if run is not latest]}


def _describe_concluded_run(run: Run) -> dict[str, Any]:
    """Return a run, the scale of its activations, and its strongest images without repeats."""
    # A query for each run uses its index, and is cheaper than one query for all
    rows = Observation.objects.filter(run=run).select_related("experiment").order_by("-activation", "-pk")
    found: dict[str, Observation] = {}
    for row in rows[: 3 * PICTURES]:  # one image may have been logged again and again
        found.setdefault(row.image_id, row)
    scale = Scale.of([run.best_activation], run.exemplar_mean)
    return {"run": run, "scale": scale, "pictures": list(found.values())[:PICTURES]}


# --- workers and models -----------------------------------------------------------------------------------


def _read_machinery() -> dict[str, Any]:
    """Return the workers' last reports (None if Redis does not answer), the available parts, and the number of
    missing ones."""
    workers = worker_status.alive_workers()
    kinds: tuple[tuple[Any, str], ...] = ((VisionModelRow, "name"), (Backbone, "key"), (Toolset, "key"))
    parts = [row for kind, key in kinds for row in kind.objects.values_list("label", key, "available")]
    return {
        "workers": None if workers is None else [_describe_worker(each) for each in workers],
        "here": [label or name for label, name, available in parts if available],
        "missing": sum(not available for _, _, available in parts),
    }


def _describe_worker(report: dict[str, Any]) -> dict[str, Any]:
    return report | {"state": worker_status.state(report), "places_said": worker_status.describe_places(report)}
