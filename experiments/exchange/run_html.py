"""Write a run as one HTML file that works offline and runs no script: styles and small images are embedded.

The text of a run is untrusted. Templates escape it, and the Content-Security-Policy of the file blocks scripts and
requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.template.loader import render_to_string
from django.utils.html import escape

from experiments.core.system_names import SystemNameMasker
from experiments.display.answers import render_answer
from experiments.display.events import render_events
from experiments.exchange.run_record import get_author_name
from experiments.models import Event, Run
from workers.record import tasks
from workers.record.events import Audience

Small = Callable[[str], str]
"""Return the address of an image's picture by its key: in a file, a data URL."""

STYLES = ("display/base", "display/code", "display/plots", "display/answer", "exchange/standalone")
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'"
HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
{look}
</head>
<body>
<main class="page">
"""
CLOSE = "</main>\n</body>\n</html>\n"
AT_ONCE = 20
"""Number of events rendered together; the rows they need are fetched once per batch."""


@dataclass(frozen=True)
class Embedded:
    """Embedded images of a file: small ones only."""

    small: Small

    def whole(self, key: str) -> str:
        del key
        return ""


def document(
    run: Run, events: Iterable[Event], small: Small, viewer: User | None = None, *, fine: Small | None = None
) -> Iterator[str]:
    """Yield the file in pieces, as this person may see it; only a few events are in memory at a time. The answer shows
    `fine` images, the transcript `small` ones."""
    folder = Path(settings.BASE_DIR) / "static" / "css"
    styles = "\n".join((folder / f"{name}.css").read_text() for name in STYLES)
    title = f"{run.question[:120]} · MAIA Web"
    yield HEAD.format(policy=POLICY, title=escape(title), look=f"<style>{styles}</style>")
    yield render_to_string("exchange/exports/head.html", head(run) | {"names": SystemNameMasker(viewer)})
    if run.has_ended:
        yield render_answer(run, SystemNameMasker(viewer), Audience.FILE, Embedded(fine or small))
    left = iter(events)
    while some := list(islice(left, AT_ONCE)):
        for _, html in render_events(run, some, SystemNameMasker(viewer), Audience.FILE, Embedded(small)):
            yield html
    yield CLOSE


def head(run: Run) -> dict[str, Any]:
    return {"run": run, "task": tasks.label(run.task), "asked_by": get_author_name(run)}
