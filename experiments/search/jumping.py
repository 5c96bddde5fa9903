"""List what Ctrl+K offers for a few words: pages, runs, units, models, and the first passages with the words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.urls import reverse

from experiments.core.blindness import may_see_agreement
from experiments.core.search_index import words
from experiments.core.system_names import SystemNameMasker
from experiments.core.visibility import visible_to
from experiments.display import layout
from experiments.display.run_pictures import THUMBNAIL, find_pictures
from experiments.models import (
    Exemplar,
    Layer,
    PairwiseTrial,
    ReviewQueue,
    Role,
    Run,
    SearchText,
    TextKind,
    VisionModelRow,
)
from experiments.search.finding import SearchScope, find
from experiments.search.fuzzy import score_name
from experiments.search.results import Piece, address, find_images, of_passages, snippet
from experiments.search.runs import runs_matching

T = TypeVar("T")
MAX_OF_A_KIND = 5
"""Maximum options of each kind."""
LISTED = 400
"""Queues, trials and layers that are compared, the newest."""
AGREEMENT = frozenset({"agree", "agreement"})
SHORT = 90
NUMBER = re.compile(r"\d{1,9}", re.ASCII)
FILLING = frozenset({"unit", "layer", "run", "#"})
"""Words that say what a number is, and do not identify a place."""


@dataclass(frozen=True)
class Option:
    """A line of the palette; `note` is at its end, the picture with the address `image` at its start."""

    pieces: Sequence[Piece]
    url: str
    note: str = ""
    image: str = ""


def sections(typed: str, user: User, role: Role) -> list[tuple[str, list[Option]]]:
    """Return the sections that are not empty, by name, in order."""
    if not typed.strip():
        latest = list(_list_latest(user))
        return [("Your latest runs", latest)] if latest else []
    asked = words.parse_words(typed)
    if asked.problem:
        return []
    terms, where = asked.terms, f"{reverse('search')}?{urlencode({'q': typed.strip()})}"
    everything = Option(_cut_plain(f"Search everything for “{typed.strip()}”"), where)
    found = [
        ("Pages", list(pages(terms, role))),
        ("Review", list(_find_reviewing(terms, user))),
        ("Units", list(units(terms))),
        ("Runs", list(runs(typed, terms, user))),
        ("Models", list(models(terms))),
        ("In transcripts", [*_find_passages(terms, user), everything]),
    ]
    return [(name, options) for name, options in found if options]


def _cut_plain(text: str, terms: Sequence[str] = ()) -> list[Piece]:
    return snippet(text[:SHORT] + ("…" if len(text) > SHORT else ""), terms)


def pages(terms: Sequence[str], role: Role) -> Iterator[Option]:
    """Yield the pages that this role may open and whose names match the words, best first."""
    ask = layout.MenuEntry("query", "New run", "n", words="query ask question start", least=Role.RESEARCHER)
    places = [place for place in [ask, *layout.MENU, *layout.ELSEWHERE] if place.url and role >= place.least]
    for place in _rank(places, lambda place: f"{place.label} {place.words}", terms):
        yield Option(_cut_plain(place.label, terms), place.url)


def _rank(rows: Iterable[T], name: Callable[[T], str], terms: Sequence[str]) -> list[T]:
    """Return the rows whose names match the words, best first."""
    scored = [(score_name(name(row), terms), row) for row in rows]
    return [row for points, row in sorted(scored, key=lambda pair: -pair[0]) if points]


def _find_reviewing(terms: Sequence[str], user: User) -> Iterator[Option]:
    """Yield the newest queues and trials with this name; with the word "agreement", the agreement of a queue's
    reviewers."""
    queues = _rank(ReviewQueue.objects.all()[:LISTED], lambda each: f"{each.name} agreement queue", terms)
    for queue in queues[:MAX_OF_A_KIND]:
        if not set(terms) & AGREEMENT:
            yield Option(_cut_plain(queue.name, terms), queue.get_absolute_url(), "review queue")
        elif may_see_agreement(user, queue):
            where = reverse("review-agreement", args=[queue.pk])
            yield Option(_cut_plain(f"Agreement in {queue.name}", terms), where, "agreement")
    trials = _rank(PairwiseTrial.objects.all()[:LISTED], lambda each: f"{each.name} trial", terms)
    for trial in trials[:MAX_OF_A_KIND]:
        yield Option(_cut_plain(trial.name, terms), trial.get_absolute_url(), "trial")


def runs(typed: str, terms: Sequence[str], user: User) -> Iterator[Option]:
    """Yield the run of this number, and the newest runs that match the words."""
    numbers = [int(term.removeprefix("#")) for term in terms if NUMBER.fullmatch(term.removeprefix("#"))]
    # "run 12" means the run; "12 balls" are words
    alone = len(numbers) == 1 and set(terms) <= {*FILLING, str(numbers[0]), f"#{numbers[0]}"}
    keys = list(runs_matching(typed, SystemNameMasker(user)).order_by("-pk")[:MAX_OF_A_KIND])
    asked = Run.objects.filter(pk__in=[*keys, *(numbers if alone else ())])
    rows = list(visible_to(asked).order_by("-pk"))
    rows.sort(key=lambda run: not (alone and run.pk == numbers[0]))
    yield from _offer_runs(rows, terms)


def _list_latest(user: User) -> Iterator[Option]:
    """Yield the person's newest runs, which are listed before any input."""
    yield from _offer_runs(list(visible_to(Run.objects.filter(owner=user)).order_by("-pk")[:MAX_OF_A_KIND]))


def _offer_runs(rows: Sequence[Run], terms: Sequence[str] = ()) -> Iterator[Option]:
    # One query for all rows
    pictures = find_pictures([run.pk for run in rows])
    for run in rows:
        picture = pictures.get(run.pk)
        words, note = _cut_plain(f"Run {run.pk}: {run.question}", terms), run.get_status_display()
        yield Option(words, run.get_absolute_url(), note, picture.url if picture else "")


def units(terms: Sequence[str]) -> Iterator[Option]:
    """Yield units of this number in layers that the other words name, as in "layer4 122"."""
    numbers = [int(term) for term in terms if NUMBER.fullmatch(term)]
    others = [term for term in terms if not NUMBER.fullmatch(term) and term not in FILLING]
    if len(numbers) != 1 or not (others or "unit" in terms):
        return
    layers = Layer.objects.filter(units__gt=numbers[0]).select_related("model").defer("names")
    fitting = _rank(layers[:LISTED], lambda each: f"{each.model.name} {each.name}", others)
    if not others:
        fitting = list(layers[:MAX_OF_A_KIND])
    best = Exemplar.objects.filter(
        rank=1, profile__unit__layer__in=fitting[:MAX_OF_A_KIND], profile__unit__number=numbers[0]
    )
    images = dict(best.values_list("profile__unit__layer", "image"))
    for layer in fitting[:MAX_OF_A_KIND]:
        if url := address("unit", layer.model.name, layer.name, numbers[0]):
            image = address("thumbnail", images[layer.pk], THUMBNAIL) if layer.pk in images else ""
            yield Option(_cut_plain(f"{layer.name} unit {numbers[0]}"), url, layer.model.name, image)


def models(terms: Sequence[str]) -> Iterator[Option]:
    """Yield models whose names or labels contain the words; they link to the runs on them."""
    for model in _rank(VisionModelRow.objects.all(), lambda each: f"{each.name} {each.label}", terms):
        url = f"{reverse('runs')}?{urlencode({'model': model.name})}"
        yield Option(_cut_plain(model.name, terms), url, "its runs")


def _find_passages(terms: Sequence[str], user: User) -> Iterator[Option]:
    """Yield the first results of a search; questions are listed with the runs."""
    keys = find(terms, SearchScope(), limit=2 * MAX_OF_A_KIND, viewer=user).keys
    rows = SearchText.objects.select_related("run").exclude(kind=TextKind.QUESTION).in_bulk(keys)
    few = [rows[key] for key in keys if key in rows][:MAX_OF_A_KIND]
    places, images = of_passages(few), find_images(few)
    for passage in few:
        if url := places[passage.pk]:
            note = f"{TextKind(passage.kind).label.lower()}, run {passage.run_id}" if passage.run_id else passage.layer
            yield Option(snippet(passage.text, terms, SHORT), url, note, images.get(passage.pk, ""))
