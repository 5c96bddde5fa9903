"""What an export holds, in words; and the fields by which its rows are chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from experiments.core.params import clean_text
from experiments.core.system_names import Names
from experiments.display.narrowing import Filter, offer_choices
from experiments.exchange.export_query import KNOWN, LOOKS
from experiments.models import CheckStatus, Export, ItemStatus, ReviewQueue, Study
from experiments.models.exchange import ExportSubject
from experiments.pairwise import lists as trial_lists
from experiments.reviews import queue_lists
from experiments.reviews.lists import SHOWS
from experiments.runs.filter_words import describe_filter
from experiments.runs.filters import FILTERS
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
_FILTERS: Mapping[str, Filter] = FILTERS
"""Filters that say what they are called and offer."""
LABELS: Mapping[str, str] = {
    **{name: each.label for name, each in _FILTERS.items()},
    "origin": "Origin",
    "low": "Activation from",
    "high": "Activation to",
    "source": "Source",
    "kind": "Kind",
    "evaluation": "Evaluation",
    "queue": "Review queue",
    "show": "Items",
    "study": "Study",
    "names": "Names of people",
    "differs": "Claims",
    "parameter": "Game engine",
    "parameter_low": "Parameter from",
    "parameter_high": "Parameter to",
}
"""Every field by which something is chosen, in the order in which they stand."""
HINTS: Mapping[str, str] = {**{name: each.hint for name, each in _FILTERS.items()}, "evaluation": "its number"}


@dataclass(frozen=True)
class FilterField:
    """One field of the form; without `choices` it is typed."""

    name: str
    label: str
    value: str
    choices: list[tuple[str, str]] | None = None
    hint: str = ""


def describe_export(row: Export) -> str:
    """The filter of an export as a sentence."""
    return describe_query(row.what, row.query)


def describe_query(what: str, query: str) -> str:
    given = {name: ",".join(values) for name, values in QueryDict(query).lists() if name not in LOOKS}
    return describe_filter(NOUNS.get(what, "rows"), given)


def list_fields(what: ExportSubject, query: str) -> list[FilterField]:
    """The fields that choose what is exported, filled in from a query."""
    given = {name: clean_text(",".join(filter(None, values))) for name, values in QueryDict(query).lists()}
    choices = _list_choices(what, given)
    return [
        FilterField(name, label, given.get(name, ""), _offer(choices.get(name), given.get(name)), HINTS.get(name, ""))
        for name, label in LABELS.items()
        if name in KNOWN[what]
    ]


def _offer(choices: Any, value: str | None) -> list[tuple[str, str]] | None:
    """The choices, and what is asked for even where nobody lists it any more; None for what is typed."""
    if choices is None:
        return None
    listed = [(str(key), str(label)) for key, label in choices]
    return listed if not value or value in dict(listed) else [*listed, (value, value)]


def _list_choices(what: ExportSubject, given: Mapping[str, str]) -> dict[str, Any]:
    """What those fields offer that are chosen from what exists."""
    offered = {name: offer_choices(each, given, Names(None)) for name, each in _FILTERS.items()}
    statuses = {
        ExportSubject.CHECKS: CheckStatus.choices,
        ExportSubject.EVALUATIONS: ItemStatus.choices,
        ExportSubject.QUEUES: queue_lists.STATUSES.items(),
        ExportSubject.TRIALS: trial_lists.STATUSES.items(),
        ExportSubject.SWEEPS: sweep_lists.STATUSES.items(),
    }
    queues = ReviewQueue.objects.order_by("-pk").values_list("pk", "name")[:100] if "queue" in KNOWN[what] else ()
    studies = Study.objects.order_by("-pk").values_list("pk", "title")[:100] if "study" in KNOWN[what] else ()
    return offered | {
        "study": [(str(pk), title) for pk, title in studies],
        "names": [("yes", "Shown")],
        "status": statuses.get(what, offered["status"]),
        "origin": Origin.choices(),
        "queue": [(str(pk), name) for pk, name in queues],
        "show": SHOWS.items(),
        "differs": [("on", "Other than measured")],
        "parameter": [(name, each.label) for name, each in ENGINE_PARAMETERS.items()],
    }
