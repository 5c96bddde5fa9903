"""Compare: two to six runs side by side. Which, against which, and what is left out stands in the address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_safe

from experiments.core import access
from experiments.core.params import ROW_DIGITS, parse_key, parse_number
from experiments.models import Run
from experiments.runs.comparing import comparison
from experiments.runs.comparing.comparison import FEWEST, MOST

READ = 50
"""Runs of an address that are looked at; whoever gives more is told that they are too many anyway."""
OFFERED = 12
"""Runs that are offered to be added, the newest."""


@dataclass(frozen=True)
class Chosen:
    """`problems` says in sentences what of the address could not be followed."""

    runs: Sequence[Run]
    base: Run | None
    problems: Sequence[str]


@dataclass(frozen=True)
class ComparedRun:
    """A run, and the numbers of those that are left when it is taken out."""

    run: Run
    is_base: bool
    others: Sequence[int]


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """The comparison, or a way to choose what to compare."""
    user = access.require(request)
    found = read_runs(request.GET)
    context: dict[str, Any] = {
        "runs": found.runs,
        "problems": found.problems,
        "most": MOST,
        "full": len(found.runs) == MOST,
        "offered": list_offered(found.runs),
    }
    if found.base is None or len(found.runs) < FEWEST:
        return render(request, "runs/comparing/choose.html", context)
    only = request.GET.get("only") == "differences"
    numbers = [run.pk for run in found.runs]
    context |= {
        "only": only,
        "columns": [
            ComparedRun(run, run == found.base, [key for key in numbers if key != run.pk]) for run in found.runs
        ],
        "units": len({run.system for run in found.runs}),
        "moving": [run for run in found.runs if not run.has_ended],
        **facts(found.runs, found.base, user, only),
        **rounds(found, request.GET.get("page", "1"), only),
    }
    return render(request, "runs/comparing.html", context)


def facts(runs: Sequence[Run], base: Run, viewer: User, only: bool) -> dict[str, Any]:
    """What was asked and what came of it, and how much of that is left out."""
    lines = [*comparison.facts(runs, viewer), *comparison.compare_figures(runs, base)]
    shown = [line for line in lines if not (only and line.same)]
    return {"lines": shown, "same_lines": len(lines) - len(shown)}


def rounds(found: Chosen, asked: str, only: bool) -> dict[str, Any]:
    """One page of the rounds, and how many of its rounds are left out."""
    count = max(run.rounds for run in found.runs)
    pages = max(1, -(-count // comparison.ROUNDS))
    number, problems = page_of(asked, pages)
    first, last = (number - 1) * comparison.ROUNDS + 1, min(number * comparison.ROUNDS, count)
    scale = comparison.scale_of(found.runs)
    shown = comparison.rounds(found.runs, scale, first, last, only)
    return {
        "rounds": shown,
        "same_rounds": last - first + 1 - len(shown) if only else 0,
        "scale": scale,
        "round_count": count,
        "first": first,
        "last": last,
        "number": number,
        "pages": pages,
        "problems": [*found.problems, *problems],
    }


def page_of(asked: str, pages: int) -> tuple[int, list[str]]:
    """The page of rounds that is asked for; the nearest, and a sentence, if there is no such page."""
    number = parse_key(asked)
    if 1 <= number <= pages:
        return number, []
    nearest = pages if number else 1
    return nearest, [f"There is no page “{asked[:20]}” of the rounds: this is page {nearest} of {pages}."]


def read_runs(params: QueryDict) -> Chosen:
    """The runs that the address names, in its order, each once."""
    given = [text.strip() for text in params.getlist("run")[:READ] if text.strip()]
    numbers, problems = [], []
    for text in dict.fromkeys(given):
        number = parse_number(text.removeprefix("#"), ROW_DIGITS)
        if number is None:
            problems.append(f"“{text[:40]}” is no number of a run. Runs are named by whole numbers, such as 12.")
        elif number not in numbers:
            numbers.append(number)
    rows = Run.objects.select_related("owner").in_bulk(numbers)
    problems += [f"There is no run {number}." for number in numbers if number not in rows]
    there = [rows[number] for number in numbers if number in rows]
    if len(there) > MOST:
        left = ", ".join(str(run.pk) for run in there[MOST:])
        problems.append(f"At most {MOST} runs stand side by side. Left out: {left}. Remove others to see them.")
    base, problem = baseline(there[:MOST], params.get("base", ""))
    return Chosen(there[:MOST], base, problems + problem)


def baseline(runs: Sequence[Run], asked: str) -> tuple[Run | None, list[str]]:
    """The run that the others are measured against: the one asked for, else the first."""
    first = runs[0] if runs else None
    if not asked or not first:
        return first, []
    named = next((run for run in runs if run.pk == parse_key(asked)), None)
    if named:
        return named, []
    return first, [f"The baseline “{asked[:20]}” is not among these runs: they are measured against run {first.pk}."]


def list_offered(runs: Sequence[Run]) -> Sequence[Run]:
    """The newest other runs of the same units; of all, while none is chosen."""
    rows = Run.objects.exclude(pk__in=[run.pk for run in runs]).select_related("owner")
    same = Q()
    for run in runs:
        same |= Q(model=run.model, layer=run.layer, unit=run.unit)
    return list(rows.filter(same)[:OFFERED])
