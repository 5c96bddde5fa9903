"""What an export holds: the filter of an address as rows, read as the pages read it.

A page leaves out what makes no sense in a filter, and says so beside it. A file has no place to say so: it is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.http import QueryDict

from experiments.core import tagging
from experiments.core.params import parse_number
from experiments.core.search_index import words
from experiments.core.system_names import Names
from experiments.exchange import review_tables
from experiments.exchange.safe_zip import ExchangeError
from experiments.gallery.lists import OF_FILES, OWN, Filters
from experiments.models import Experiment, Label, Observation, Run
from experiments.models.exchange import ExportSubject
from experiments.runs import lists
from experiments.search import finding

OF_RUNS = frozenset(lists.FILTERS)
OF_LABELS = frozenset({"model", "layer", "unit", "source", "q"})
KNOWN: Mapping[ExportSubject, frozenset[str]] = {
    ExportSubject.BUNDLE: OF_RUNS,
    ExportSubject.RUNS: OF_RUNS,
    ExportSubject.EXPERIMENTS: OF_FILES,
    ExportSubject.OBSERVATIONS: OF_FILES,
    ExportSubject.LABELS: OF_LABELS,
    ExportSubject.REVIEWS: OF_RUNS | {"queue"},
    ExportSubject.VERDICTS: OF_RUNS | {"queue"},
    ExportSubject.AGREEMENT: frozenset({"queue"}),
}
"""Words of a filter by what is exported."""
NAMED = 10
"""Runs that are named of those which cannot go out whole."""
LOOKS = frozenset({"sort", "page", "view", "col", "cursor"})
"""What an address says of how a page looks, which is nothing to a file."""


def select_rows(what: ExportSubject, query: str, viewer: User | None = None) -> Any:
    """The rows, oldest first; of opinions those that this person may read, by their system those of which they may know
    it. Raises ExchangeError for what makes no sense."""
    given = parse_query(what, query)
    rows: Any
    match what:
        case ExportSubject.BUNDLE:
            rows = told_whole(runs(given, viewer), viewer)
        case ExportSubject.RUNS:
            rows = runs(given, viewer)
        case ExportSubject.EXPERIMENTS | ExportSubject.OBSERVATIONS:
            rows = select_logged(what, given, viewer)
        case ExportSubject.REVIEWS | ExportSubject.VERDICTS:
            asked = {name: text for name, text in given.items() if name != "queue"}
            opinions = review_tables.reviews if what == ExportSubject.REVIEWS else review_tables.verdicts
            rows = opinions(given, viewer)
            rows = rows.filter(item__run__in=runs(asked, viewer).order_by().values("pk")) if asked else rows
        case ExportSubject.AGREEMENT:
            return review_tables.agreement(given, viewer)
        case ExportSubject.LABELS:
            rows = Label.objects.filter(filter_labels(given, viewer)).distinct()
    return rows.order_by("pk")


def parse_query(what: ExportSubject, query: str) -> dict[str, str]:
    """Name -> text of what was filled in. Raises ExchangeError for a name that is not known."""
    given: dict[str, str] = {}
    for name, values in QueryDict(query).lists():
        words = ",".join(value.strip() for value in values if value.strip())
        if words and name not in LOOKS:
            if name not in KNOWN[what]:
                known = ", ".join(sorted(KNOWN[what]))
                raise ExchangeError(f"{what.label} cannot be chosen by “{name[:40]}”. Possible are: {known}.")
            if "\x00" in words:  # an address may hold it in disguise, and PostgreSQL takes none
                raise ExchangeError(f"{name}: it holds a zero byte, which nothing here has.")
            given[name] = words
    return given


def runs(given: Mapping[str, str], viewer: User | None) -> QuerySet[Run]:
    """By verdict as everybody may see it, by system as this person may. Raises ExchangeError with the sentence that
    the Runs page would show."""
    found = lists.runs_from(given, names=Names(viewer))
    if found.problems:
        name, problem = next(iter(found.problems.items()))
        raise ExchangeError(f"{name}: {problem}")
    return found.runs


def told_whole(rows: QuerySet[Run], viewer: User | None) -> QuerySet[Run]:
    """The same runs, for a bundle, which names what they study. Raises ExchangeError where this person is to judge
    that."""
    names = Names(viewer)
    hidden = rows.filter(names.are_hidden()).order_by("pk").values_list("pk", flat=True)[:NAMED] if viewer else ()
    if numbers := ", ".join(map(str, hidden)):
        raise ExchangeError(
            f"You are still to judge what runs {numbers} study, and a bundle names it: "
            "submit or decline your reviews first, or leave them out."
        )
    return rows


def select_logged(what: ExportSubject, given: Mapping[str, str], viewer: User | None) -> QuerySet[Any]:
    """Experiments or images by their runs and by what was logged: origin, activation, tag, words in the title or the
    prompt. Raises ExchangeError with the sentence that the page would show."""
    filters = Filters({name: text for name, text in given.items() if name in OWN}, Names(None))
    if not filters.is_valid():
        name, messages = next(iter(filters.errors.items()))
        raise ExchangeError(f"{name}: {messages[0]}")
    titles = None
    if "q" in given:
        found = words.parse_words(given["q"])
        if found.problem:
            raise ExchangeError(f"q: {found.problem}")
        titles = finding.images(found.terms)
    asked = {name: text for name, text in given.items() if name in OF_RUNS - {"q", "tag"}}
    of_runs = Q(run__in=runs(asked, viewer).order_by().values("pk")) if asked else Q()
    if what == ExportSubject.EXPERIMENTS:
        return Experiment.objects.filter(of_runs & filters.on_experiments(titles))
    images = Observation.objects.filter(of_runs & filters.on_images())
    if tag := filters.get("tag"):
        images = images.filter(tagging.images(tag))
    return images if titles is None else images.filter(pk__in=titles)


def filter_labels(given: Mapping[str, str], viewer: User | None) -> Q:
    columns = {"model": "units__layer__model__name", "layer": "units__layer__name", "source": "source"}
    asked = Q(**{columns[name]: text for name, text in given.items() if name in columns})
    if "unit" in given:
        number = parse_number(given["unit"])
        if number is None:
            raise ExchangeError(f"unit: “{given['unit'][:40]}” is no number.")
        asked &= Q(units__number=number)
    if given.keys() & {"model", "layer", "unit"}:
        asked &= ~Names(viewer).are_hidden("run__")
    return asked & (Q(text__icontains=given["q"]) if "q" in given else Q())
