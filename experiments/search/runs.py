"""Filter lists of runs by words: question, conclusion, system and number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import Case, F, Q, QuerySet, TextField, Value, When
from django.db.models.functions import Replace, StrIndex

from experiments.core.params import parse_number
from experiments.core.search_index import words
from experiments.core.search_index.normalize import normalize
from experiments.core.system_names import SystemNameMasker
from experiments.models import RunSummary


def runs_matching(typed: str, names: SystemNameMasker | None = None) -> QuerySet[RunSummary, int]:
    """Return the keys of the runs in whose question, description, labels, model, layer or number every word occurs;
    all for no words. What `names` hide of a run does not count.

    The result is a subquery for `filter(pk__in=…)`. Empty for words that cannot be searched: `words.parse_words`
    says why.
    """
    asked = words.parse_words(typed)
    # A list must not ignore words that it cannot search
    summaries = RunSummary.objects.none() if asked.problem and typed.strip() else RunSummary.objects.all()
    hidden = names.are_hidden("run__") if names and names.hidden else None
    searched = _hide_systems(hidden, names.hidden) if names and hidden else F("normalized")
    for term in asked.terms:
        summaries = summaries.alias(place=StrIndex(searched, Value(term))).filter(
            Q(place__gt=0) | _filter_by_number(term, hidden)
        )
    return summaries.values_list("pk", flat=True)


def _hide_systems(hidden: Q, systems: Iterable[tuple[str, str, int]]) -> Case:
    """Return the normalized text of a summary; for hidden systems, without the line that names the system."""
    text: Any = F("normalized")
    # `texts.summary` writes the system on a line after the question
    for line in sorted({normalize(f"{model} {layer}") for model, layer, _ in systems}):
        text = Replace(text, Value(f"\n{line}"), Value(""))
    return Case(When(hidden, then=text), default=F("normalized"), output_field=TextField())


def _filter_by_number(term: str, hidden: Q | None) -> Q:
    """Return a filter for runs with this number, or on the unit with it."""
    if (number := parse_number(term)) is None:
        return Q()
    unit = Q(run__unit=number)
    return (unit if hidden is None else unit & ~hidden) | Q(run=number)
