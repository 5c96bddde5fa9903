"""The one renderer of a run: each event, and the parts of the page that sum the run up, as HTML.

The page's first load and the consumer both call this; the browser only inserts what it gets. An event's root element
has an id: where that id is on the page already (an experiment whose result has come), the new one takes its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.db.models import Max, Min
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from experiments import gallery
from experiments.charts import Chart, Scale, chart
from experiments.models import Event, Observation, Run
from experiments.models.run import ACTIVE, Status
from workers import registry

Json = Mapping[str, Any]

TEMPLATES = {
    "started": "started",
    "reply": "reply",
    "experiment": "experiment",
    "result": "experiment",
    "note": "note",
    "trouble": "trouble",
    "concluded": "end",
    "limit_reached": "end",
    "cancelled": "end",
    "failed": "end",
}
"""Kind of event -> its template in templates/events."""

CHARTED = 2_000
"""Observations that the chart and the scale look at, the newest."""


def render_event(event: Event, run: Run) -> str:
    """One event as HTML, safe to insert."""
    return draw(event, run, scale_of(run), code_of(run, [event]))


def render_events(run: Run, events: Sequence[Event]) -> list[tuple[Event, str]]:
    """Many events; an experiment whose result is among them is left out, since the result shows it whole."""
    if not events:
        return []
    scale, codes = scale_of(run), code_of(run, events)
    done = {event.payload["number"] for event in events if event.kind == "result"}
    shown = [event for event in events if event.kind != "experiment" or event.payload["number"] not in done]
    return [(event, draw(event, run, scale, codes)) for event in shown]


def draw(event: Event, run: Run, scale: Scale, codes: Mapping[int, str]) -> SafeString:
    payload = event.payload
    context: dict[str, Any] = {"event": event, "run": run, "payload": payload, "scale": scale}
    if event.kind in {"experiment", "result"}:
        context |= {"running": event.kind == "experiment", "code": codes.get(payload["number"], "")}
        context["seconds"] = payload.get("seconds", 0.0) + payload.get("tool_seconds", 0.0)
        context["entries"] = gallery.entries(run, payload)
    elif event.kind == "started":
        context["told"] = told(payload)
    elif TEMPLATES[event.kind] == "end":
        context |= {"status": Status(event.kind), "strongest": gallery.strongest(run)}
    return render_to_string(f"events/{TEMPLATES[event.kind]}.html", context)


def code_of(run: Run, events: Sequence[Event]) -> dict[int, str]:
    """The programs of the experiments that these events are about, by number."""
    numbers = [event.payload["number"] for event in events if event.kind in {"experiment", "result"}]
    return dict(run.experiments.filter(number__in=numbers).values_list("number", "code")) if numbers else {}


def told(payload: Json) -> list[tuple[str, str]]:
    """What the agent was told before its first reply."""
    texts = ("Instructions", payload["instructions"]), ("First message", payload["assignment"])
    return [(name, text) for name, text in texts if text]


# --- the parts that sum the run up -------------------------------------------------------------------


def pieces(run: Run) -> dict[str, SafeString]:
    """Header, outline, side and tail as they are now."""
    return {"head": head(run), "tail": tail(run), "outline": outline(run), "side": side(run)}


def head(run: Run) -> SafeString:
    """The question, how the run is, and what it has used of its limits."""
    used = {"rounds": run.rounds, "tokens": run.tokens, "cost": run.cost, "seconds": run.seconds}
    meters = {name: (value, run.limits.get(name)) for name, value in used.items()}
    context = {"run": run, "meters": meters, "task": registry.TASKS.get(run.task, run.task), "stopping": stopping(run)}
    return render_to_string("run/head.html", context)


def stopping(run: Run) -> bool:
    """Whether somebody has stopped the run and its worker has not let go of it yet."""
    return run.cancel_requested and not run.has_ended


def tail(run: Run) -> SafeString:
    """What happens next, while nothing else shows it; empty once the run has ended."""
    last = run.events.order_by("-seq").values_list("kind", flat=True).first()
    ahead = 0
    if run.status == Status.QUEUED:
        ahead = Run.objects.filter(status__in=ACTIVE, pk__lt=run.pk).count()
    return render_to_string("run/tail.html", {"run": run, "last": last, "ahead": ahead, "stopping": stopping(run)})


def outline(run: Run) -> SafeString:
    """The rounds, each with a few words and the best activation of its images."""
    best = dict(
        Observation.objects.filter(experiment__run=run).values_list("experiment__round").annotate(Max("activation"))
    )
    replies = run.events.filter(kind="reply").order_by("seq").values_list("payload", flat=True)
    rounds = {reply["round"]: (headline(reply), best.get(reply["round"])) for reply in replies}
    return render_to_string("run/outline.html", {"run": run, "rounds": rounds})


def headline(reply: Json) -> str:
    """The first sentence of a reply's words, without marks."""
    words = " ".join(reply["prose"].replace("#", " ").replace("*", " ").replace("`", " ").split())
    sentence = words.split(". ")[0].rstrip(".:")
    if sentence:
        return sentence if len(sentence) <= 60 else sentence[:59].rsplit(" ", 1)[0] + "…"
    return "Conclusion" if reply["conclusion"] else "Experiment" if reply["code"] else "Reply"


def side(run: Run) -> SafeString:
    """The state of knowledge: hypotheses, activations by round, the conclusion, how the run was made."""
    latest = run.hypotheses.aggregate(Max("round"))["round__max"]
    context = {
        "run": run,
        "hypotheses": run.hypotheses.filter(round=latest),
        "chart": chart_of(run),
        "agent": dict(registry.choices(registry.BACKBONES)).get(run.backbone, run.backbone),
        "task": registry.TASKS.get(run.task, run.task),
        "scale": scale_of(run),
    }
    return render_to_string("run/side.html", context)


def observed(run: Run) -> Iterator[tuple[int, float, str]]:
    rows = Observation.objects.filter(experiment__run=run).order_by("-pk")
    yield from reversed(rows.values_list("experiment__round", "activation", "title")[:CHARTED])


def chart_of(run: Run) -> Chart | None:
    values = list(observed(run))
    return chart(values, Scale.of((value for _, value, _ in values), run.threshold)) if values else None


def scale_of(run: Run) -> Scale:
    """What the bars of this run are measured on at this moment."""
    ends = Observation.objects.filter(experiment__run=run).aggregate(low=Min("activation"), high=Max("activation"))
    return Scale.of(ends.values(), run.threshold)
