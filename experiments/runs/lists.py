"""Select and sort the runs of a list from the query string of its address.

An invalid filter is ignored, with a sentence about it; the others apply. Called by the Runs page, exports and the API.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from django.contrib.auth.models import User
from django.db.models import F, Q, QuerySet

from experiments.core.errors import InvalidInput
from experiments.core.params import ROW_DIGITS, parse_day, parse_day_end, parse_number
from experiments.core.search_index.words import parse_words as read_words
from experiments.core.system_names import Names
from experiments.core.visibility import visible_to
from experiments.display import verdicts
from experiments.display.narrowing import WORDS_CHARS, Condition, narrow_down, require_known
from experiments.models import Run
from experiments.search.runs import runs_matching
from workers.record.statuses import ACTIVE, Status
from workers.record.tasks import TASKS

STATUSES = [("active", "Live"), *Status.choices()]
CHECK = re.compile(r"(>=|<)?\s*(-?[01](?:\.[0-9]{1,6})?)", re.ASCII)
NEWEST = "-created"

SORTS: Mapping[str, str] = {
    "created": "created",
    "number": "pk",
    "status": "status",
    "system": "model",
    "owner": "owner__username",
    "rounds": "rounds",
    "images": "observation_count",
    "best": "best_activation",
    "cost": "cost",
    "tokens": "tokens_used",
    "seconds": "seconds",
    "seed": "seed",
    "backbone": "backbone",
    "verdict": "verdict_rank",
    "check": "label_check__pearson",
}
"""Name in the address -> what is sorted by; a minus before the name turns the order round."""
MAY_LACK = frozenset({"best", "verdict", "check"})
"""Of these, those that a run may have no value of."""


@dataclass(frozen=True)
class Filtered:
    """`values` holds the valid filters, `problems` a sentence for each of the others."""

    runs: QuerySet[Run]
    values: dict[str, str]
    sort: str
    problems: dict[str, str] = field(default_factory=dict)
    names: Names = field(default_factory=lambda: Names(None))
    """Names of systems for this viewer."""


def runs_from(params: Mapping[str, str], viewer: User | None = None, names: Names | None = None) -> Filtered:
    """Return the runs that the parameters of an address select, sorted, with the verdicts that the viewer may see;
    without a viewer those that all users may. A run whose system is hidden in `names`, else from the viewer, is not
    found by it.
    """
    names = names or Names(viewer)
    conditions: Mapping[str, Condition] = {
        **FILTERS,
        **{name: partial(_by_system, names, FILTERS[name]) for name in ("model", "layer", "unit")},
        "q": partial(by_words, names=names),
        "verdict": partial(_by_verdict, viewer=viewer),
    }
    found = narrow_down(visible_to(Run.objects.all()), params, conditions)
    runs, values, problems = found.rows, found.values, found.problems
    if {"since", "until"} <= values.keys() and values["since"] > values["until"]:
        rest = runs_from({name: text for name, text in params.items() if name != "until"}, viewer, names)
        words = f"{values['until']} is before {values['since']}: no run was asked between them."
        return replace(rest, problems=rest.problems | {"until": words})
    sort = params.get("sort", "") or NEWEST
    if sort.removeprefix("-") not in SORTS:
        problems["sort"] = f"There is no column “{sort[:40]}” to sort by."
        sort = NEWEST
    return Filtered(_sort_runs(runs, sort, viewer), values, sort, problems, names)


def _sort_runs(runs: QuerySet[Run], sort: str, viewer: User | None = None) -> QuerySet[Run]:
    """In this order; runs without a value come last, and of equals the newest first."""
    runs = runs.annotate(tokens_used=F("prompt_tokens") + F("completion_tokens"))
    name = sort.removeprefix("-")
    if name == "verdict":
        runs = verdicts.annotate_rank(runs, viewer)
    # Said only where it makes a difference: PostgreSQL does not read an index in an order that it was not made in.
    last = True if name in MAY_LACK else None
    column = F(SORTS[name])
    turned = column.desc(nulls_last=last) if sort.startswith("-") else column.asc(nulls_last=last)
    return runs.order_by(turned, "-pk")


def _by_status(text: str) -> Q:
    status = require_known("status", text, dict(STATUSES))
    return Q(status__in=ACTIVE) if status == "active" else Q(status=status)


def _by_verdict(text: str, viewer: User | None) -> Q:
    return verdicts.filter_by_verdict(require_known("verdict", text, dict(verdicts.CHOICES)), viewer)


def _by_unit(text: str) -> Q:
    if (number := parse_number(text)) is None:
        raise InvalidInput(f"“{text[:40]}” is no unit: a unit is a whole number from 0.")
    return Q(unit=number)


def _by_numbers(text: str) -> Q:
    """Runs by their numbers, as `12,15`."""
    numbers = [parse_number(number, ROW_DIGITS) for number in text.split(",")]
    if None in numbers:
        raise InvalidInput(f"“{text[:40]}” is no list of runs: write their numbers as 12,15.")
    return Q(pk__in=numbers)


def _by_sweep(text: str) -> Q:
    """Runs of a sweep, by its number."""
    if (number := parse_number(text, ROW_DIGITS)) is None:
        raise InvalidInput(f"“{text[:40]}” is no sweep: a sweep is named by its number.")
    return Q(sweep=number)


def _by_backbone(text: str) -> Q:
    """A backbone, or one with its model as `openai:gpt-4o`."""
    backbone, _, model = text.partition(":")
    return Q(backbone=backbone, backbone_model=model) if model else Q(backbone=backbone)


def _by_system(names: Names, condition: Callable[[str], Q], text: str) -> Q:
    """Runs by what they study, where the viewer may know it."""
    return condition(text) & ~names.are_hidden()


def by_words(text: str, names: Names | None = None) -> Q:
    if len(text) > WORDS_CHARS:
        raise InvalidInput(f"These words have {len(text)} characters; at most {WORDS_CHARS} are looked for.")
    if problem := read_words(text).problem:
        raise InvalidInput(problem)
    return Q(pk__in=runs_matching(text, names))


def _by_label(text: str) -> Q:
    if len(text) > WORDS_CHARS:
        raise InvalidInput(f"This label has {len(text)} characters; at most {WORDS_CHARS} are looked for.")
    return Q(pk__in=Run.objects.filter(label_set__text__icontains=text).values("pk"))


def _by_check(text: str) -> Q:
    """Runs by r of their check, as `0.5` or `>=0.5` for at least that and `<0.5` for less; or `none` for no check."""
    if text == "none":
        return Q(label_check=None)
    found = CHECK.fullmatch(text)
    if found is None:
        raise InvalidInput(f"“{text[:40]}” is no bound of r: write >=0.5, <0.2, or none for runs without a check.")
    return Q(**{f"label_check__pearson__{'lt' if found[1] == '<' else 'gte'}": float(found[2])})


FILTERS: Mapping[str, Condition] = {
    "run": _by_numbers,
    "q": by_words,
    "status": _by_status,
    "task": lambda text: Q(task=require_known("task", text, TASKS)),
    "model": lambda text: Q(model=text),
    "layer": lambda text: Q(layer=text),
    "unit": _by_unit,
    "backbone": _by_backbone,
    "sweep": _by_sweep,
    "owner": lambda text: Q(owner__username=text),
    "label": _by_label,
    "check": _by_check,
    "tag": lambda text: Q(tags__name=text),
    "since": lambda text: Q(created__gte=parse_day(text)),
    "until": lambda text: Q(created__lt=parse_day_end(text)),
    "verdict": partial(_by_verdict, viewer=None),
}
"""Name in the address -> the condition that its text states; the verdict as everybody may see it. Each raises
InvalidInput."""
