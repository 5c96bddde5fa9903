"""Render a run's events, and the parts of the page that sum the run up, as HTML, for the first load and live viewers.
If the page already has an element with the event's id, as of a running experiment, the new one replaces it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Max, Min, Q, QuerySet
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.safestring import SafeString

from experiments.core import parts, transcript
from experiments.core.system_names import SystemNameMasker
from experiments.display import cited_figures, hypothesis_strips, image_cards, log_entries, rounds, window
from experiments.display.functions.plots import plot_samples
from experiments.display.functions.samples import MAX_RECENT_SAMPLES, read_function
from experiments.display.hypothesis_strips import Bearings, ListedHypothesis
from experiments.display.image_cards import ImageCard, ImageSource
from experiments.display.parameter_plots import draw_parameters
from experiments.display.plots import SMALL, Scale, activation_plot
from experiments.models import Event, Run
from workers.record import grades, tasks
from workers.record.decoding import encode
from workers.record.events import Audience, Ended, ExperimentEnded, ExperimentStarted, Graded, Replied, Started
from workers.record.statuses import ACTIVE, Status
from workers.record.titles import read_title

PARTS = ("backbone", "model", "dataset", "toolset", "generator", "editor", "describer")
"""The parts of a run, in the order in which a page names them."""

SHORTLY = 20
"""Maximum events from the start of an experiment to its result, with errors and retries in between."""
NEWEST_TEXTS = 5
"""Samples of a function of texts that the side panel shows."""
CHARTED = 400
"""Images, or samples, in the small chart: those of the newest experiments. A tab shows all."""


@dataclass(frozen=True)
class RenderContext:
    """What rendering a run's events needs, looked up once for all of them."""

    run: Run
    scale: Scale
    codes: Mapping[int, str] = field(default_factory=dict)
    ended: frozenset[int] = frozenset()
    """Numbers of the experiments whose result is among the events, or came later in the run as it was read."""
    starts: Mapping[int, int] = field(default_factory=dict)
    """Number of an experiment -> `seq` of the event that started it."""
    originals: Mapping[str, ImageCard] = field(default_factory=dict)
    """The run's first log of the images that its edits were made from, by key."""
    names: SystemNameMasker = field(default_factory=lambda: SystemNameMasker(None))
    """The names of systems for the viewer."""
    audience: Audience = Audience.TEAM
    strips: Mapping[ListedHypothesis, SafeString] = field(default_factory=dict)
    """The strips that compare images with and without what a hypothesis says."""
    pictures: ImageSource | None = None
    """Where viewers outside the team find the images."""
    sketched: bool = False
    """True if experiments come without pictures and colours, at full height, with the address of these."""


def render_event(event: Event, run: Run) -> SafeString:
    """Return one event as HTML, safe to insert."""
    return _draw(event, _load_context(run, [event]))


def render_events(
    run: Run,
    events: Iterable[Event],
    names: SystemNameMasker | None = None,
    audience: Audience = Audience.TEAM,
    pictures: ImageSource | None = None,
    *,
    folded: bool = True,
    sketched: bool = False,
    bearings: Bearings | None = None,
) -> list[tuple[Event, SafeString]]:
    """Render many events. If `folded`, experiments with a result are left out: the result shows all of it.

    Viewers outside the team get no script, no link into the site, and `pictures` of their own. Experiments are
    `sketched` if the page loads their pictures when the reader comes near. `bearings` are shared with `side`.
    """
    shown = list(events)
    around = _load_context(run, shown, names, bearings)
    around = replace(around, audience=audience, pictures=pictures, sketched=sketched)
    # The card of the result shows everything that the card of the start does.
    if folded:
        shown = [each for each in shown if each.kind != "experiment" or each.number not in around.ended]
    return [(event, _draw(event, around)) for event in shown]


def _load_context(
    run: Run, events: Sequence[Event], names: SystemNameMasker | None = None, bearings: Bearings | None = None
) -> RenderContext:
    """Return the context for these events. The number of queries does not depend on the number of events."""
    names, scale = names or SystemNameMasker(None), scale_of(run)
    numbers = {event.number for event in events if event.number}
    strips = hypothesis_strips.draw_strips(run, _list_hypotheses(events), scale, bearings)
    if not numbers:
        return RenderContext(run, scale, names=names, strips=strips)
    # Find where the experiments with results among these events started, among them or shortly before.
    starts = {event.number: event.seq for event in events if event.kind == "experiment"}
    ends = {event.number: event.seq for event in events if event.kind == "result"}
    before = [(seq - SHORTLY, seq) for number, seq in ends.items() if number not in starts]
    # Events after the run was read are sent to live viewers.
    after = [(seq, min(seq + SHORTLY, run.last_seq)) for number, seq in starts.items() if number not in ends]
    if before:
        starts |= {each.number: each.seq for each in _list_near(run, "experiment", before)}
    if after:
        ends |= {each.number: each.seq for each in _list_near(run, "result", after)}
    return RenderContext(
        run,
        scale,
        dict(run.experiments.filter(number__in=numbers).values_list("number", "code")),
        frozenset(ends),
        starts,
        log_entries.originals(run, [each.content for each in events if isinstance(each.content, ExperimentEnded)]),
        names,
        strips=strips,
    )


def _list_hypotheses(events: Sequence[Event]) -> set[ListedHypothesis]:
    """Return the hypotheses that the replies among these events list."""
    replies = [each.content for each in events if isinstance(each.content, Replied)]
    return {ListedHypothesis(reply.round, each.text) for reply in replies for each in reply.hypotheses}


def _list_near(run: Run, kind: str, ranges: Sequence[tuple[int, int]]) -> QuerySet[Event]:
    """Return the run's events of this kind within any of the ranges of `seq`, both ends included."""
    return run.events.filter(reduce(or_, (Q(seq__range=each) for each in ranges)), kind=kind)


def _draw(event: Event, around: RenderContext) -> SafeString:
    run, team = around.run, around.audience == Audience.TEAM
    content = around.names.content(run, event)
    template = "unreadable" if event.is_unreadable else event.row.template
    context: dict[str, Any] = {"event": event, "run": run, "payload": content, "scale": around.scale}
    context |= {"team": team, "pictures": around.pictures, "link": window.link(run, event.seq) if team else ""}
    if isinstance(content, ExperimentStarted | ExperimentEnded):
        code = around.codes.get(content.number, "")
        context |= {"start": around.starts.get(content.number), "code": code, "lines": len(code.splitlines())}
        context |= _describe_result(content, around) if isinstance(content, ExperimentEnded) else {"running": True}
    elif isinstance(content, Replied):
        context["title"] = read_title(content.code or "")
        context["listed"] = [
            (each, around.strips.get(ListedHypothesis(content.round, each.text), "")) for each in content.hypotheses
        ]
    elif isinstance(content, Graded):
        context["cards"] = [image_cards.ImageCard.from_log(each) for each in content.images]
        context |= {"verdict": grades.name_verdict(content), "direction": grades.describe_direction(content)}
        context["figures"] = grades.list_figures(content)
    elif isinstance(content, Started):
        # What the agent was told before its first reply
        texts = ("System prompt", content.instructions), ("First message", content.assignment)
        context["told"] = [(name, text) for name, text in texts if text]
        # The parts first, then the versions of everything else by name: databases keep no order.
        places = {name: place for place, name in enumerate(PARTS)}
        context["made"] = sorted(content.versions.items(), key=lambda made: (places.get(made[0], len(PARTS)), made))
    elif isinstance(content, Ended) and event.row.status:
        # The run's check is of its last conclusion, and is fetched once for all its events.
        context["checks"] = event.seq == run.last_seq
        context["status"] = event.row.status
        context["recounted"] = cited_figures.recount(run, encode(content.conclusion))
    return render_to_string(f"display/events/{template}.html", context)


def _describe_result(content: ExperimentEnded, around: RenderContext) -> dict[str, Any]:
    """Return what the card of a finished experiment shows besides the payload."""
    return {
        "running": False,
        "seconds": content.seconds + content.tool_seconds,
        "entries": log_entries.entries(content, around.originals),
        "parameter_plots": draw_parameters(content.observations, team=around.audience == Audience.TEAM),
        "wrong": sum(each.differs for each in content.observations),
        "described": content.usage.tokens,
        "sketched": around.sketched and bool(content.observations),
    }


# --- the parts that sum the run up -------------------------------------------------------------------


def head(run: Run) -> SafeString:
    """Render the question, the status, and what the run has used of its limits."""
    used = {"rounds": run.rounds, "tokens": run.tokens, "cost": run.known_cost, "seconds": seconds_of_work(run)}
    meters = {name: (value, run.limits.get(name)) for name, value in used.items()}
    context = {"run": run, "meters": meters, "paused_by": _get_pause_author(run)}
    return render_to_string("runs/page/head.html", context)


def seconds_of_work(run: Run) -> float:
    """Return the run's seconds of work so far, including the current step."""
    # A run that no worker holds does not spend time.
    if run.taken is None or not run.is_leased():
        return run.seconds
    newest = run.events.order_by("-seq").values_list("time", flat=True).first()
    # `seconds` is stored with each event, so only the time since then is missing.
    since = max(run.taken, newest) if newest else run.taken
    return run.seconds + max(0.0, (timezone.now() - since).total_seconds())


def _get_pause_author(run: Run) -> str:
    """Return who paused the run, or asked to pause it after its round; "" if it is not paused."""
    if run.status != Status.PAUSED:
        return run.pause_requested if run.is_pausing else ""
    stop = transcript.last_stop(run)
    return getattr(stop.content, "who", "") if stop else ""


def is_stopping(run: Run) -> bool:
    """True if a person has stopped the run and its worker has not released it yet."""
    return run.cancel_requested and not run.has_ended


def tail(run: Run) -> SafeString:
    """Render what happens next, if nothing else shows it; empty once the run has ended."""
    last = run.events.order_by("-seq").values_list("kind", flat=True).first()
    before = Run.objects.filter(status__in=ACTIVE, pk__lt=run.pk)
    context = {
        "run": run,
        "last": last,
        "ahead": before.count() if run.status == Status.QUEUED else 0,
        "stopping": is_stopping(run),
        "paused_by": _get_pause_author(run),
        "waiting_for_person": transcript.awaits_reply(run),
    }
    return render_to_string("runs/page/tail.html", context)


def outline(run: Run, around: int | None = None) -> SafeString:
    """Render the rounds, each with a few words and the best activation of its images; most of many are grouped."""
    return render_to_string("runs/page/outline.html", {"run": run, "lines": rounds.outline(run, around)})


def side(run: Run, names: SystemNameMasker | None = None, bearings: Bearings | None = None) -> SafeString:
    """Render the state of knowledge: hypotheses, activations of the newest images by round (for a function, its
    samples), and how the run was made."""
    latest = run.hypotheses.aggregate(Max("round"))["round__max"]
    listed = list(run.hypotheses.filter(round=latest))
    # Evidence up to now: `draw_strips` leaves out what was logged in the given round or later.
    asked = [ListedHypothesis(run.rounds + 1, each.text) for each in listed]
    run_scale = scale_of(run)
    strips = hypothesis_strips.draw_strips(run, asked, run_scale, bearings)
    context = {
        "run": run,
        "hypotheses": [(each, strips.get(key, "")) for each, key in zip(listed, asked, strict=True)],
        **(_chart_activations(run) if run.takes_images else _chart_function(run)),
        "names": names or SystemNameMasker(None),
        "backbone": run.versions.get("backbone") or backbone_of(run),
        "tools": parts.label_toolset(run.toolset),
        "task": tasks.label(run.task),
        "scale": run_scale,
    }
    return render_to_string("runs/page/side.html", context)


def _chart_activations(run: Run) -> dict[str, Any]:
    rows = image_cards.newest_logged(run, MAX_RECENT_SAMPLES).values_list("experiment__round", "activation", "title")
    # Newest first from the database, oldest first in the chart.
    values = list(rows[:CHARTED])[::-1]
    scale = Scale.of((value for _, value, _ in values), run.exemplar_mean)
    return {"chart": activation_plot(values, scale) if values else None}


def _chart_function(run: Run) -> dict[str, Any]:
    """Return a plot of numbers, or the newest texts."""
    found = read_function(run, MAX_RECENT_SAMPLES)
    chart = plot_samples(found, SMALL, CHARTED) if found.is_numeric else None
    if chart:
        chart.legend, chart.table = (
            [],
            None,
        )  # no room for a legend: hypotheses below have the colours, the tab has the rest
    return {"found": found, "chart": chart, "newest": found.samples[: -1 - NEWEST_TEXTS : -1]}


def backbone_of(run: Run) -> str:
    """Return the backbone that the run asked for."""
    label = parts.label_backbone(run.backbone)
    return f"{label}, {run.backbone_model}" if run.backbone_model else label


def scale_of(run: Run) -> Scale:
    """Return the current scale of the run's bars."""
    ends = run.observations.aggregate(low=Min("activation"), high=Max("activation"))
    return Scale.of(ends.values(), run.exemplar_mean)
