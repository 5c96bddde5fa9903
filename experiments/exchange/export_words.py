"""Describe what an export holds, and the form fields that select its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from experiments.core.params import clean_text
from experiments.exchange.export_query import KNOWN, LOOKS
from experiments.models import CheckStatus, Export, ItemStatus, ReviewQueue, Study
from experiments.models.exchange import ExportSubject
from experiments.pairwise import lists as trial_lists
from experiments.reviews import queue_lists
from experiments.reviews.lists import SHOWS
from experiments.runs.filter_choices import list_choices
from experiments.runs.filter_words import describe_filter
from experiments.runs.lists import runs_from
from experiments.sweeps import lists as sweep_lists
from workers.record.engine_parameters import ENGINE_PARAMETERS
from workers.record.origins import Origin

NOUNS: Mapping[str, str] = {
    ExportSubject.BUNDLE: "runs, whole",
    ExportSubject.RUNS: "runs",
    ExportSubject.EXPERIMENTS: "experiments",
    ExportSubject.OBSERVATIONS: "images",
    ExportSubject.LABELS: "labels",
    ExportSubject.CHECKS: "label checks",
    ExportSubject.EVALUATIONS: "items of evaluations",
    ExportSubject.REVIEWS: "reviews",
    ExportSubject.VERDICTS: "final verdicts",
    ExportSubject.AGREEMENT: "figures of agreement",
    ExportSubject.QUEUES: "review queues",
    ExportSubject.TRIALS: "pairwise trials",
    ExportSubject.SWEEPS: "sweeps",
    ExportSubject.STUDY: "studies",
}
LABELS: Mapping[str, str] = {
    "q": "Words",
    "status": "Status",
    "model": "Model",
    "layer": "Layer",
    "unit": "Unit",
    "task": "Task",
    "backbone": "Agent",
    "label": "Label",
    "check": "Label check, r",
    "verdict": "Verdict",
    "origin": "Origin",
    "low": "Activation from",
    "high": "Activation to",
    "tag": "Tag",
    "source": "Source",
    "kind": "Kind",
    "evaluation": "Evaluation",
    "queue": "Review queue",
    "show": "Items",
    "sweep": "Sweep",
    "study": "Study",
    "names": "Names of people",
    "run": "Runs",
    "owner": "Created by",
    "since": "Created since",
    "until": "Until",
    "differs": "Claims",
    "parameter": "Game engine",
    "parameter_low": "Parameter from",
    "parameter_high": "Parameter to",
}
HINTS: Mapping[str, str] = {"check": ">=0.5", "run": "12,15", "sweep": "its number", "evaluation": "its number"}
"""Form fields in their order, and placeholders for some of them."""


@dataclass(frozen=True)
class FilterField:
    """A field of the form. Without `choices` it is a text field."""

    name: str
    label: str
    value: str
    choices: list[tuple[str, str]] | None = None
    hint: str = ""


def describe_export(row: Export) -> str:
    """Return the filter of an export as a sentence."""
    return describe_query(row.what, row.query)


def describe_query(what: str, query: str) -> str:
    given = {name: ",".join(values) for name, values in QueryDict(query).lists() if name not in LOOKS}
    return describe_filter(NOUNS.get(what, "rows"), given)


def list_fields(what: ExportSubject, query: str) -> list[FilterField]:
    """Return the fields that select the rows of an export, filled in from a query."""
    given = {name: clean_text(",".join(filter(None, values))) for name, values in QueryDict(query).lists()}
    choices = _list_choices(what, given)
    return [
        FilterField(name, label, given.get(name, ""), _offer(choices.get(name), given.get(name)), HINTS.get(name, ""))
        for name, label in LABELS.items()
        if name in KNOWN[what]
    ]


def _offer(choices: Any, value: str | None) -> list[tuple[str, str]] | None:
    """Return the choices, plus the current value if it is no longer among them; None for a text field."""
    if choices is None:
        return None
    listed = [(str(key), str(label)) for key, label in choices]
    # Otherwise the form would silently drop the filter of an old address
    return listed if not value or value in dict(listed) else [*listed, (value, value)]


def _list_choices(what: ExportSubject, given: Mapping[str, str]) -> dict[str, Any]:
    """Return the choices of the fields that select from existing rows."""
    found = list_choices(runs_from({"model": given.get("model", "")}))
    statuses = {
        ExportSubject.CHECKS: CheckStatus.choices,
        ExportSubject.EVALUATIONS: ItemStatus.choices,
        ExportSubject.QUEUES: queue_lists.STATUSES.items(),
        ExportSubject.TRIALS: trial_lists.STATUSES.items(),
        ExportSubject.SWEEPS: sweep_lists.STATUSES.items(),
    }
    queues = ReviewQueue.objects.order_by("-pk").values_list("pk", "name")[:100] if "queue" in KNOWN[what] else ()
    studies = Study.objects.order_by("-pk").values_list("pk", "title")[:100] if "study" in KNOWN[what] else ()
    return {
        "study": [(str(pk), title) for pk, title in studies],
        "names": [("yes", "Shown")],
        "status": statuses.get(what, found["statuses"]),
        "task": found["tasks"],
        "backbone": found["backbones"],
        "verdict": found["verdict_choices"],
        "origin": Origin.choices(),
        "queue": [(str(pk), name) for pk, name in queues],
        "show": SHOWS.items(),
        "differs": [("on", "Other than measured")],
        "parameter": [(name, each.label) for name, each in ENGINE_PARAMETERS.items()],
        **{
            name: [(each, each) for each in found[of]]
            for name, of in (("model", "models"), ("layer", "layers"), ("owner", "owners"), ("tag", "tags"))
        },
    }
