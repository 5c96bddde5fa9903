"""One run: the tabs of its page, and its events. Actions on it are in `steering`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_safe

from experiments.core import access
from experiments.core.access import HtmxRequest
from experiments.core.system_names import SystemNameMasker
from experiments.display import events as rendering
from experiments.display import window
from experiments.display.functions import tables
from experiments.models import Role, Run
from experiments.runs.events.socket import is_final
from experiments.runs.human import editor
from experiments.runs.page import activations, cost, effects, experiments, hypotheses, transcript
from experiments.runs.steering import actions
from workers.record import tasks

Params = Mapping[str, str]


@dataclass(frozen=True)
class Tab:
    """One tab. `read` returns what its template shows; `grows` if new events change it."""

    name: str
    label: str
    read: Callable[[Run, Params, SystemNameMasker], dict[str, Any]]
    grows: str = ""
    """What the browser does when there is more: "redraw" at once, or "offer" to; the transcript grows by itself."""
    of: str = ""
    """What only runs of some systems have: "images", or "functions"."""

    @property
    def template(self) -> str:
        return f"runs/page/tabs/{self.name}.html"


def _ignore_names(
    read: Callable[[Run, Params], dict[str, Any]],
) -> Callable[[Run, Params, SystemNameMasker], dict[str, Any]]:
    """Adapt the reader of a tab that names no system."""
    return lambda run, params, names: read(run, params)  # noqa: ARG005 - as all tabs have it


TABS: Mapping[str, Tab] = {
    tab.name: tab
    for tab in (
        Tab("transcript", "Transcript", transcript.read_transcript),
        Tab("experiments", "Experiments", _ignore_names(experiments.read_experiments), "offer"),
        Tab("images", "Images", _ignore_names(experiments.read_images), "offer", "images"),
        Tab("activations", "Activations", _ignore_names(activations.read_activations), "redraw", "images"),
        Tab("effects", "Effects", _ignore_names(effects.read_effects), "redraw", "images"),
        Tab("samples", "Samples", _ignore_names(tables.read_samples), "redraw", "functions"),
        Tab("hypotheses", "Hypotheses", _ignore_names(hypotheses.read_hypotheses), "redraw"),
        Tab("cost", "Cost", _ignore_names(cost.read_cost), "redraw"),
        Tab("raw", "Raw", transcript.read_raw, "offer"),
        Tab("comments", "Comments", lambda *_: {}),  # its template asks for what each may see
    )
}


def _list_tabs(run: Run) -> list[Tab]:
    """Return the tabs that suit the kind of system."""
    other = "functions" if run.takes_images else "images"
    return [tab for tab in TABS.values() if tab.of != other]


@require_safe
def page(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show one tab of the run; htmx gets only the tab. The browser then follows from the last event drawn."""
    run, names = access.get_run(request, pk), SystemNameMasker(request.user)
    role = access.role_in(request) or Role.VIEWER
    tabs = _list_tabs(run)
    # An unknown tab, or one of another kind of system, shows the transcript.
    tab = next((each for each in tabs if each.name == request.GET.get("tab", "")), TABS["transcript"])
    context = {
        "run": run,
        "tab": tab,
        "tabs": tabs,
        "complete": is_final(run),
        "may_stop": role != Role.VIEWER,
        "may": " ".join(actions.list_moves(run)),
        "head": rendering.head(run),
        "task": tasks.label(run.task),
        "names": names,
        "editor": editor.open_editor(run, request.user) if tab.name == "transcript" else None,
        **tab.read(run, request.GET, names),
    }
    # After "back", htmx asks for an address that it no longer has in its cache: it needs the whole page.
    part = request.htmx and not request.htmx.history_restore_request
    response = render(request, "runs/page/panel.html" if part else "runs/page.html", context)
    # One address answers htmx with a part of the page: caches must tell the two apart.
    patch_vary_headers(response, ["HX-Request", "HX-History-Restore-Request"])
    return response


@require_safe
def events(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the events of a gap in the transcript, and the rest of the gap; or one event in full that the page has as
    a sketch. Raises Http404 if there are no such events."""
    run = access.get_run(request, pk)
    after, before = window.number(request.GET, "after"), window.number(request.GET, "before")
    if after is None or before is None or not after + 1 < before <= run.last_seq + 1:
        raise Http404("There are no events between these.")
    pieces = window.fill_gap(run, window.Gap(after, before), request.GET.get("from") == "below")
    sketched = not transcript.is_whole(request.GET)
    drawn = transcript.render_pieces(run, pieces, SystemNameMasker(request.user), sketched=sketched)
    return render(request, "runs/page/pieces.html", {"run": run, "pieces": drawn})


@require_safe
def events_file(request: HttpRequest, pk: int) -> StreamingHttpResponse:
    """Return all events as a file of JSON lines."""
    run, names = access.get_run(request, pk), SystemNameMasker(request.user)
    names.is_masked(run)  # asked now: what streams must not ask the database
    name = f'attachment; filename="run-{run.pk}-events.jsonl"'
    headers = {"Content-Disposition": name, "X-Content-Type-Options": "nosniff"}
    lines = transcript.stream_lines(run, names)
    return StreamingHttpResponse(lines, content_type="application/jsonl; charset=utf-8", headers=headers)
