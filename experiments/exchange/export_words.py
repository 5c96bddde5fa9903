"""Describe what an export holds, and the form fields that select its rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from django import forms
from django.forms.boundfield import BoundField
from django.http import QueryDict
from django.utils.html import format_html

from experiments.core.params import clean_text
from experiments.core.system_names import SystemNameMasker
from experiments.display.narrowing import Choice, Filter, index_filters, offer_choices
from experiments.evaluations import lists as evaluation_lists
from experiments.exchange.export_query import KNOWN, LOOKS
from experiments.gallery.lists import FILTERS as GALLERY_FILTERS
from experiments.label_checks import lists as check_lists
from experiments.models import Export, ReviewQueue, Study
from experiments.models.exchange import ExportSubject, list_formats
from experiments.pairwise import lists as trial_lists
from experiments.reviews import queue_lists
from experiments.reviews.lists import ITEM_FILTERS
from experiments.runs.filter_words import describe_filter
from experiments.runs.filters import FILTERS
from experiments.sweeps import lists as sweep_lists
from experiments.units.lists import LABEL_FILTERS

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
_OF_IMAGES = {name: each for name, each in GALLERY_FILTERS.items() if name not in FILTERS}
_LISTS: Mapping[str, Mapping[str, Filter]] = {
    ExportSubject.EXPERIMENTS: _OF_IMAGES,
    ExportSubject.OBSERVATIONS: _OF_IMAGES,
    ExportSubject.EVALUATIONS: {**evaluation_lists.FILTERS, **evaluation_lists.ITEM_FILTERS},
    ExportSubject.SWEEPS: sweep_lists.FILTERS,
    ExportSubject.LABELS: LABEL_FILTERS,
    ExportSubject.CHECKS: check_lists.FILTERS,
    ExportSubject.REVIEWS: ITEM_FILTERS,
    ExportSubject.QUEUES: queue_lists.FILTERS,
    ExportSubject.TRIALS: trial_lists.FILTERS,
}
"""Filters of a list, besides those of runs and in their place."""
_OTHERS = index_filters(
    Filter("evaluation", "Evaluation", None, int, hint="its number"),
    Filter("queue", "Review queue", None, int, choices=lambda *_: _list_rows(ReviewQueue, "name")),
    Filter("study", "Study", None, int, choices=lambda *_: _list_rows(Study, "title")),
    Filter("names", "Names of people", None, str, choices=[("yes", "Shown")]),
)
"""Filters of exports alone."""
_BUNDLE = format_html(
    '{} <span class="muted">to read offline, to import, or to open with <code>inspect view</code></span>',
    ExportSubject.BUNDLE.label,
)
_SUBJECTS = [(each.value, _BUNDLE if each == ExportSubject.BUNDLE else each.label) for each in ExportSubject]


class ExportForm(forms.Form):
    """What to export, in which format, and the filters that select its rows, filled in from a query."""

    what = forms.ChoiceField(widget=forms.RadioSelect)
    format = forms.ChoiceField()

    def __init__(self, what: ExportSubject, ending: str, query: str) -> None:
        given = {name: clean_text(",".join(filter(None, values))) for name, values in QueryDict(query).lists()}
        super().__init__(initial={**given, "what": what, "format": ending}, auto_id="export-%s")
        cast("forms.ChoiceField", self.fields["what"]).choices = _SUBJECTS
        formats = [(each.value, each.label) for each in list_formats(what)]
        cast("forms.ChoiceField", self.fields["format"]).choices = formats
        for each in _list_filters(what):
            if each.name in KNOWN[what]:
                self.fields[each.name] = _build_field(each, given)

    @property
    def filters(self) -> list[BoundField]:
        return [field for field in self if field.name not in ("what", "format")]


def _build_field(row: Filter, given: Mapping[str, str]) -> forms.Field:
    choices = offer_choices(row, given, SystemNameMasker(None))
    if choices is not None:
        return forms.ChoiceField(label=row.label, choices=[("", "Any"), *choices], required=False)
    kind = "date" if row.name in ("since", "until") else "text"
    typed = forms.TextInput({"type": kind, "placeholder": row.hint, "autocomplete": "off"})
    return forms.CharField(label=row.label, required=False, widget=typed)


def describe_export(row: Export) -> str:
    """Return the filter of an export as a sentence."""
    return describe_query(row.what, row.query)


def describe_query(what: str, query: str) -> str:
    given = {name: ",".join(values) for name, values in QueryDict(query).lists() if name not in LOOKS}
    return describe_filter(NOUNS.get(what, "rows"), given)


def _list_filters(what: ExportSubject) -> Iterable[Filter]:
    return {**FILTERS, **_OTHERS, **_LISTS.get(what, {})}.values()


def _list_rows(model: Any, column: str) -> list[Choice]:
    """Return the newest rows as choices by number."""
    return [(str(pk), name) for pk, name in model.objects.order_by("-pk").values_list("pk", column)[:100]]
