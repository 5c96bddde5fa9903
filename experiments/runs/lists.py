"""Select and sort the runs of a list from the query string of its address.

An invalid filter is ignored, with a sentence about it; the others apply. Called by the Runs page, exports and the API.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from django.contrib.auth.models import User
from django.db.models import F, Q, QuerySet

from experiments.core.system_names import SystemNameMasker
from experiments.core.visibility import visible_to
from experiments.display import verdicts
from experiments.display.narrowing import Condition, list_conditions, narrow_down
from experiments.models import Run
from experiments.runs.filters import FILTERS, by_verdict, by_words

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
"""Name in the address -> column; a minus before the name reverses the order."""
MAY_LACK = frozenset({"best", "verdict", "check"})
"""Columns without a value in some runs."""


@dataclass(frozen=True)
class Filtered:
    """`values` holds the valid filters, `problems` a sentence for each of the others."""

    runs: QuerySet[Run]
    values: dict[str, str]
    sort: str
    problems: dict[str, str] = field(default_factory=dict)
    names: SystemNameMasker = field(default_factory=lambda: SystemNameMasker(None))
    """Names of systems for this viewer."""


def runs_from(params: Mapping[str, str], viewer: User | None = None, names: SystemNameMasker | None = None) -> Filtered:
    """Return the runs that the parameters of an address select, sorted, with the verdicts that the viewer may see;
    without a viewer those that all users may. A run whose system is hidden in `names`, else from the viewer, is not
    found by it."""
    names = names or SystemNameMasker(viewer)
    conditions = list_conditions(FILTERS)
    instead: dict[str, Condition] = {
        name: partial(_by_system, names, conditions[name]) for name in ("model", "layer", "unit")
    }
    # Words and verdicts may be hidden from this viewer too.
    instead |= {"q": partial(by_words, names=names), "verdict": partial(by_verdict, viewer=viewer)}
    found = narrow_down(visible_to(Run.objects.all()), params, FILTERS, instead)
    runs, values, problems = found.rows, found.values, found.problems
    sort = params.get("sort", "") or NEWEST
    if sort.removeprefix("-") not in SORTS:
        problems["sort"] = f"There is no column “{sort[:40]}” to sort by."
        sort = NEWEST
    return Filtered(_sort_runs(runs, sort, viewer), values, sort, problems, names)


def _sort_runs(runs: QuerySet[Run], sort: str, viewer: User | None = None) -> QuerySet[Run]:
    """Sort the runs; those without a value come last, and equal ones newest first."""
    runs = runs.annotate(tokens_used=F("prompt_tokens") + F("completion_tokens"))
    name = sort.removeprefix("-")
    if name == "verdict":
        runs = verdicts.annotate_rank(runs, viewer)
    # Only where it makes a difference: PostgreSQL cannot read an index that orders NULL otherwise.
    last = True if name in MAY_LACK else None
    column = F(SORTS[name])
    turned = column.desc(nulls_last=last) if sort.startswith("-") else column.asc(nulls_last=last)
    return runs.order_by(turned, "-pk")


def _by_system(names: SystemNameMasker, condition: Condition, text: str) -> Q:
    """Return a filter by system."""
    # To be found by a hidden name would reveal it.
    return condition(text) & ~names.are_hidden()
