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


def alike(read: Callable[[Run, Params], dict[str, Any]]) -> Callable[[Run, Params, Names], dict[str, Any]]:
    """For a tab that names no system."""
    return lambda run, params, names: read(run, params)  # noqa: ARG005 - as all tabs have it


def by_person(run: Run, params: Params) -> dict[str, Any]:  # noqa: ARG001 - as all tabs have it
    """Nothing: what a tab shows to some and not to others, its template asks for."""
    return {}


TABS = {
    tab.name: tab
    for tab in (
        Tab("transcript", "Transcript", transcript.read),
        Tab("experiments", "Experiments", alike(experiments.read), "offer"),
        Tab("images", "Images", alike(images.read), "offer"),
        Tab("activations", "Activations", alike(activations.read), "redraw"),
        Tab("hypotheses", "Hypotheses", alike(hypotheses.read), "redraw"),
        Tab("cost", "Cost", alike(cost.read), "redraw"),
        Tab("raw", "Raw", raw.read, "offer"),
        Tab("comments", "Comments", alike(by_person)),
    )
}


def chosen(name: str) -> Tab:
    """The tab of this name; the transcript where there is none."""
    return TABS.get(name, TABS["transcript"])
