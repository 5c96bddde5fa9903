"""The list of runs: filters, columns and order in its address; one page of it at a time."""

from __future__ import annotations

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
from experiments.display.narrowing import build_field, list_fields
from experiments.display.run_pictures import find_pictures
from experiments.display.tables import ListColumn, choose_columns
from experiments.models import Role, Run
from experiments.runs import lists
from experiments.runs.filter_words import describe_filter
from experiments.runs.filters import FILTERS
from workers.record.statuses import ACTIVE

PER_PAGE = 50
UNSHOWN = ("options", "limits", "versions")
"""What no column shows, and is long."""


COLUMNS = (
    ListColumn("number", "Run", "number", "number"),
    ListColumn("unit", "Unit", "system", wide=True),
    ListColumn("status", "Status", "status"),
    ListColumn("labels", "Labels"),
    ListColumn("check", "Label check", "check"),
    ListColumn("verdict", "Verdict", "verdict"),
    ListColumn("tags", "Tags"),
    ListColumn("backbone", "Agent", "backbone", "secondary"),
    ListColumn("seed", "Seed", "seed", "number"),
    ListColumn("fork", "Comes from", kind="secondary"),
    ListColumn("rounds", "Rounds", "rounds", "number", wide=True),
    ListColumn("images", "Images", "images", "number", wide=True),
    ListColumn("best", "Best", "best", "number", wide=True),
    ListColumn("tokens", "Tokens", "tokens", "number"),
    ListColumn("cost", "Cost", "cost", "number"),
    ListColumn("asked", "Created", "created", "secondary"),
    ListColumn("owner", "By", "owner", "secondary", wide=True),
    ListColumn("time", "Time", "seconds", "number", wide=True),
)
DEFAULT_COLUMNS = ("number", "status", "labels", "check", "verdict", "backbone", "asked")
"""Columns of a list that names none."""


@require_safe
def index(request: HtmxRequest) -> HttpResponse:
    """Show the runs that the address selects; htmx gets only the list."""
    user = access.require(request)
    role = access.role_in(request) or Role.VIEWER
    found = lists.runs_from(request.GET.dict(), user)
    # Owners are fetched apart: joined, SQLite would begin with them and sort all runs of each.
    runs = found.runs.prefetch_related("owner", "tags", fetch_checks()).defer(*UNSHOWN)
    page = Page.of(request.GET, found.runs.count(), PER_PAGE)
    rows = list(runs[page.start : page.end])
    columns = choose_columns(COLUMNS, DEFAULT_COLUMNS, request.GET.getlist("col"))
    part = request.htmx and not request.htmx.history_restore_request
    context: dict[str, Any] = {
        "page": page,
        "rows": rows,
        "found": found,
        "past_the_end": number_of(request.GET.get("page", "")) != page.number,
        "columns": columns,
        "shown": columns.has,
        "pictures": find_pictures(run.pk for run in rows),
        "words": describe_filter("runs", found.values),
        "moving": any(run.status in ACTIVE for run in rows),
        "any": bool(page.count.rows) or Run.objects.exists(),
        "may_act": role != Role.VIEWER,
        "may_queue": role >= MAKES_QUEUES,
        "verdicts": verdicts.find_verdicts(rows, user) if "verdict" in columns.has else {},
        "address": request.get_full_path(),
    }
    if not part:
        context |= {
            "statuses": FILTERS["status"].choices,
            "fields": list_fields(FILTERS, found.values, found.names),
            "narrowed": len(found.values.keys() - {"q", "status"}),
        }
    elif request.htmx.trigger == "filters":  # what may be chosen next depends on what was
        context["again"] = build_field(FILTERS["layer"], FILTERS, found.values, found.names)
    response = render(request, "runs/list.html" if part else "runs/index.html", context)
    # One address answers htmx with a part of the page: caches must tell the two apart.
    response.headers["Vary"] = "HX-Request, HX-History-Restore-Request, Cookie"
    return response
