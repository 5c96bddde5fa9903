"""The list of runs: filters, columns and order in its address; one page of it at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from experiments.core import access
from experiments.core.access import HtmxRequest
from experiments.core.blindness import MAKES_QUEUES
from experiments.core.paging import Page, number_of
from experiments.display import verdicts
from experiments.display.label_checks import fetch_checks
from experiments.models import Backbone, Layer, Member, Role, Run, Tag, VisionModelRow
from experiments.runs import lists
from experiments.runs.saved_views.actions import list_views
from workers.record import tasks
from workers.record.statuses import ACTIVE

PER_PAGE = 50
UNSHOWN = ("options", "limits", "versions")
"""What no column shows, and is long."""


@dataclass(frozen=True)
class ListColumn:
    """One column of the list; `sort` is its name in the address, "" for one that cannot be sorted by."""

    name: str
    title: str
    sort: str = ""
    numeric: bool = False


COLUMNS = (
    ListColumn("number", "Run", "number", numeric=True),
    ListColumn("status", "Status", "status"),
    ListColumn("labels", "Labels"),
    ListColumn("check", "Check", "check"),
    ListColumn("verdict", "Verdict", "verdict"),
    ListColumn("tags", "Tags"),
    ListColumn("backbone", "Backbone", "backbone"),
    ListColumn("seed", "Seed", "seed", numeric=True),
    ListColumn("fork", "Comes from"),
    ListColumn("rounds", "Rounds", "rounds", numeric=True),
    ListColumn("images", "Images", "images", numeric=True),
    ListColumn("best", "Best", "best", numeric=True),
    ListColumn("tokens", "Tokens", "tokens", numeric=True),
    ListColumn("cost", "Cost", "cost", numeric=True),
    ListColumn("asked", "Asked", "created"),
    ListColumn("time", "Time", "seconds", numeric=True),
)
USUAL = ("number", "status", "labels", "check", "verdict", "backbone", "rounds", "images", "asked", "time")
"""Columns of a list that names none."""


@require_safe
def index(request: HtmxRequest) -> HttpResponse:
    """The runs that the address chooses; the list alone for htmx."""
    user = access.require(request)
    role = access.role_in(request) or Role.VIEWER
    found = lists.runs_from(request.GET.dict(), user)
    # Owners are fetched apart: joined, SQLite would begin with them and sort all runs of each.
    runs = found.runs.prefetch_related("owner", "tags", fetch_checks()).defer(*UNSHOWN)
    page = Page.of(request.GET, found.runs.count(), PER_PAGE)
    rows = list(runs[page.start : page.end])
    known = {each.name for each in COLUMNS}
    chosen = (known & set(request.GET.getlist("col"))) or set(USUAL)
    part = request.htmx and not request.htmx.history_restore_request
    context: dict[str, Any] = {
        "page": page,
        "rows": rows,
        "found": found,
        "past_the_end": number_of(request.GET.get("page", "")) != page.number,
        "columns": [each for each in COLUMNS if each.name in chosen],
        "shown": {each.name: each.name in chosen for each in COLUMNS},
        "moving": any(run.status in ACTIVE for run in rows),
        "any": bool(page.count.rows) or Run.objects.exists(),
        "may_act": role != Role.VIEWER,
        "may_queue": role >= MAKES_QUEUES,
        "verdicts": verdicts.find_verdicts(rows, user) if "verdict" in chosen else {},
        "address": request.get_full_path(),
    }
    if not part:
        context |= choices(found) | {"saved_views": list_views(user), "all_columns": COLUMNS}
    response = render(request, "runs/list.html" if part else "runs/index.html", context)
    response.headers["Vary"] = "HX-Request, HX-History-Restore-Request, Cookie"
    return response


def choices(found: lists.Filtered) -> dict[str, Any]:
    """What there is to filter by."""
    backbones: list[tuple[str, str]] = []  # and each model of those that have several
    for backbone in Backbone.objects.all():
        backbones.append((backbone.key, backbone.label or backbone.key))
        backbones += [(f"{backbone.key}:{name}", name) for name in backbone.model_names]
    return {
        "statuses": lists.STATUSES,
        "verdict_choices": verdicts.CHOICES,
        "tasks": tasks.choices(),
        "models": VisionModelRow.objects.values_list("name", flat=True),
        "layers": Layer.objects.filter(model__name=found.values.get("model")).values_list("name", flat=True),
        "backbones": backbones,
        "owners": Member.objects.order_by("user__username").values_list("user__username", flat=True),
        "tags": Tag.objects.values_list("name", flat=True),
        "narrowed": set(found.values) - {"q", "status"},
    }
