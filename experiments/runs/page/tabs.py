"""The tabs: what each is called, and which module reads what it shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from experiments.core.system_names import Names
from experiments.models import Run
from experiments.runs.page import activations, cost, experiments, hypotheses, images, raw, transcript

Params = Mapping[str, str]


@dataclass(frozen=True)
class Tab:
    """One tab. `read` gives what its template, `run/tabs/<name>.html`, shows; `grows` if new events change it."""

    name: str
    label: str
    read: Callable[[Run, Params, Names], dict[str, Any]]
    grows: str = ""
    """What the browser does when there is more: "redraw" at once, or "offer" to; the transcript grows by itself."""

    @property
    def template(self) -> str:
        return f"runs/page/tabs/{self.name}.html"


def ignore_names(read: Callable[[Run, Params], dict[str, Any]]) -> Callable[[Run, Params, Names], dict[str, Any]]:
    """For a tab that names no system."""
    return lambda run, params, names: read(run, params)  # noqa: ARG005 - as all tabs have it


def by_person(run: Run, params: Params) -> dict[str, Any]:  # noqa: ARG001 - as all tabs have it
    """Nothing: what a tab shows to some and not to others, its template asks for."""
    return {}


TABS = {
    tab.name: tab
    for tab in (
        Tab("transcript", "Transcript", transcript.read_transcript),
        Tab("experiments", "Experiments", ignore_names(experiments.read_experiments), "offer"),
        Tab("images", "Images", ignore_names(images.read_images), "offer"),
        Tab("activations", "Activations", ignore_names(activations.read_activations), "redraw"),
        Tab("hypotheses", "Hypotheses", ignore_names(hypotheses.read_hypotheses), "redraw"),
        Tab("cost", "Cost", ignore_names(cost.read_cost), "redraw"),
        Tab("raw", "Raw", raw.read_raw, "offer"),
        Tab("comments", "Comments", ignore_names(by_person)),
    )
}


def find_tab(name: str) -> Tab:
    """The tab of this name; the transcript where there is none."""
    return TABS.get(name, TABS["transcript"])
