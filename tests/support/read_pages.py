"""The pages that a reader may open, and the files: where tests look for what nobody is to be told."""

from __future__ import annotations

import io

from django.contrib.auth.models import User

from experiments.exchange import export_query, tables
from experiments.models import ExportSubject, Format
from tests.support.addresses import ADMIN_READ, READ, RESEARCH, REVIEW_READ

TELLING = [
    "/",
    "/runs/",
    "/runs/{run}/?tab=raw",
    "/runs/{run}/events.jsonl",
    "/runs/{run}/experiments/1/",
    "/runs/{run}/fork/",
    "/runs/{parent}/",
    "/experiments/",
    "/experiments/?view=list",
    "/images/{key}/",
    "/compare/?run={run}&run={parent}",
    "/compare/?run={run}",
    "/search/?q=red",
    "/review/{queue}/",
    "/review/{queue}/items/1/",
    "/api/v1/runs",
    "/api/v1/runs/{run}",
    "/api/v1/runs/{run}/events",
    "/api/v1/runs/{run}/events/stream",
    "/api/v1/observations",
    "/api/v1/search?q=red",
    "/api/v1/comparisons?run={run}&run={parent}",
]
"""What names the system once it may."""
MORE = [
    *(
        f"/runs/{{run}}/?tab={name}"
        for name in ("experiments", "images", "activations", "hypotheses", "cost", "comments")
    ),
    "/jump/?q=red",
    "/search/?q=likes",
    "/compare/?run={run}&run={child}",
    "/exports/?what=labels",
    "/settings/audit/audit.jsonl",
    "/query/?from={run}",
    "/query/?like={run}",
    "/query/command/?parent={run}",
]


def pages() -> list[str]:
    """Addresses with names in braces where numbers stand."""
    tables_here = (READ, RESEARCH, REVIEW_READ, ADMIN_READ)
    known = [path for table in tables_here for name, path in table.items() if name != "exports-file"]
    return list(dict.fromkeys([*known, *MORE, *TELLING]))


def table(what: ExportSubject, viewer: User) -> str:
    """An export as CSV."""
    target = io.BytesIO()
    rows = export_query.select_rows(what, "", viewer)
    tables.write(tables.TABLES[what], Format.CSV, rows, target, lambda *_: None, viewer)
    return target.getvalue().decode()
