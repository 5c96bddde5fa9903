"""A run as one HTML file that opens without network and runs no script: styles and small pictures lie within it.

All that is said in a run is untrusted. Templates escape it, and the policy at the head of the file lets nothing run
and nothing be fetched, whatever it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Max, Min
from django.template.loader import render_to_string
from django.utils.html import escape

from experiments.core.system_names import Names
from experiments.display.cited_figures import recount
from experiments.display.plots import Scale
from experiments.exchange.run_record import asked_by
from experiments.models import Event, Observation, Run
from workers.record import tasks
from workers.record.statuses import ENDED, Status

Small = Callable[[str], str]
"""Key of an image -> the address of a picture of it: in a file, the picture itself as a data URL."""

STYLES = ("display/base", "display/code", "exchange/standalone")
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'"
HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{styles}</style>
</head>
<body>
"""
FOOT = "</body>\n</html>\n"


@dataclass(frozen=True)
class Picture:
    """An observation with its pictures. `raw` is empty where nothing is masked."""

    title: str
    activation: float
    claimed: float | None
    measured: bool
    differs: bool
    origin: str
    prompt: str
    seed: int | None
    masked: str
    raw: str
    whole: str = ""
    """Where the picture lies in full; empty in a file that stands alone."""


def document(run: Run, events: Iterable[Event], small: Small, viewer: User | None = None) -> Iterator[str]:
    """The file for a person, piece by piece: no more than one event is held at a time."""
    yield HEAD.format(policy=POLICY, title=escape(f"{run.question[:120]} · MAIA Web"), styles=styles())
    yield render_to_string("exchange/exports/head.html", head(run) | {"names": Names(viewer)})
    scale = scale_of(run)
    for event in events:
        yield draw(event, {"scale": scale, **(result(event.payload, small) if event.kind == "result" else {})})
    yield "</main>\n" + FOOT


def head(run: Run) -> dict[str, Any]:
    return {"run": run, "task": tasks.label(run.task), "asked_by": asked_by(run)}


def styles() -> str:
    """Our own style sheets; there is no address in them."""
    folder = Path(settings.BASE_DIR) / "static" / "css"
    return "\n".join((folder / f"{name}.css").read_text() for name in STYLES)


def draw(event: Event, around: Mapping[str, Any]) -> str:
    context: dict[str, Any] = {"event": event, "payload": event.payload, **around}
    if event.kind in ENDED:
        context["ends"] = Status(event.kind).label
        context["recounted"] = recount(event.run, event.payload.get("conclusion") or {})
    return render_to_string("exchange/exports/event.html", context)


def scale_of(run: Run) -> Scale:
    """What the bars are measured on."""
    found = Observation.objects.filter(experiment__run=run).aggregate(low=Min("activation"), high=Max("activation"))
    return Scale.of(found.values(), run.threshold)


def result(payload: Mapping[str, Any], small: Small, whole: Small = lambda _: "") -> dict[str, Any]:
    """What the result of an experiment shows beside the payload: its images, and what it took."""
    logged = [
        {"text": entry["text"], "pictures": [picture(each, small, whole) for each in entry["observations"]]}
        for entry in payload["entries"]
    ]
    return {"entries": logged, "seconds": payload["seconds"] + payload["tool_seconds"]}


def picture(observation: Mapping[str, Any], small: Small, whole: Small) -> Picture:
    raw, masked = observation["image"], observation["masked"] or observation["image"]
    return Picture(
        title=observation["title"],
        activation=observation["activation"],
        claimed=observation.get("claimed"),
        measured=observation.get("measured", False),
        differs=observation.get("differs", False),
        origin=observation["origin"],
        prompt=observation["prompt"],
        seed=observation["seed"],
        masked=small(masked),
        raw=small(raw) if masked != raw else "",
        whole=whole(masked),
    )
