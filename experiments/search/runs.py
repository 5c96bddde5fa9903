"""Runs by words: what was asked and concluded, the system, and their numbers. For lists of runs and their filters."""

from __future__ import annotations

from django.db.models import Q, QuerySet, Value
from django.db.models.functions import StrIndex

from experiments.models import Gist
from experiments.search import words


def runs_matching(typed: str) -> QuerySet[Gist, int]:
    """Keys of the runs in whose question, description, labels, model, layer or number every word occurs; all for none.

    A subquery for `filter(pk__in=…)`. Empty for words that cannot be looked for: `words.read` says why.
    """
    asked = words.read(typed)
    gists = Gist.objects.none() if asked.problem and typed.strip() else Gist.objects.all()
    for term in asked.terms:
        gists = gists.alias(place=StrIndex("folded", Value(term))).filter(Q(place__gt=0) | numbered(term))
    return gists.values_list("pk", flat=True)


def numbered(term: str) -> Q:
    """Runs with this number, or on the unit with it."""
    if not (term.isascii() and term.isdigit() and len(term) < 9):
        return Q()
    return Q(run__unit=int(term)) | Q(run=int(term))
