"""Compare two to six runs side by side. The address holds the runs, the baseline, and what is left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import Q
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_safe

from experiments.core import access
from experiments.core.params import ROW_DIGITS, parse_key, parse_number
from experiments.core.visibility import visible_to
from experiments.display.label_checks import fetch_checks
from experiments.models import Run
from experiments.runs.comparing import comparison, drawing
from experiments.runs.comparing.comparison import MAX_RUNS, MIN_RUNS

READ = 50
"""Maximum number of runs read from an address; one beyond the limit is enough to report too many."""
MAX_CHOICES = 12
"""Number of newest runs offered to be added."""


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Show the comparison, or a form to choose what to compare."""
    user = access.require(request)
    runs, base, problems = _read_runs(request.GET)
    context: dict[str, Any] = {
        "runs": runs,
        "problems": problems,
        "most": MAX_RUNS,
        "full": len(runs) == MAX_RUNS,
        "offered": _list_offered(runs),
    }
    if base is None or len(runs) < MIN_RUNS:
        return render(request, "runs/comparing/choose.html", context)
    only = request.GET.get("only") == "differences"
    lines = comparison.lines(runs, base, user)
    shown = [line for line in lines if not (only and line.same)]
    context |= {
        "only": only,
        "base": base,
        "columns": [(run, [other.pk for other in runs if other != run]) for run in runs],
        "units": len({run.system for run in runs}),
        "moving": [run for run in runs if not run.has_ended],
        "lines": shown,
        "same_lines": len(lines) - len(shown),
        "strips": drawing.draw_activations(runs),
        "image_rows": drawing.read_images(runs),
        **rounds(runs, request.GET.get("page", "1"), problems, only),
    }
    return render(request, "runs/comparing.html", context)


def rounds(runs: Sequence[Run], asked: str, problems: list[str], only: bool) -> dict[str, Any]:
    """Return one page of the rounds, and how many of its rounds are left out."""
    count = max(run.rounds for run in runs)
    # The double minus rounds up.
    pages = max(1, -(-count // comparison.ROUNDS))
    number = parse_key(asked)
    # An address past the end shows the last page, and says so.
    if not 1 <= number <= pages:
        number = pages if number else 1
        wrong = f"There is no page “{asked[:20]}” of the rounds: this is page {number} of {pages}."
        problems = [*problems, wrong]
    first, last = (number - 1) * comparison.ROUNDS + 1, min(number * comparison.ROUNDS, count)
    scale = comparison.scale_of(runs)
    shown = comparison.rounds(runs, scale, first, last, only)
    return {
        "rounds": shown,
        "same_rounds": last - first + 1 - len(shown) if only else 0,
        "scale": scale,
        "round_count": count,
        "first": first,
        "last": last,
        "number": number,
        "pages": pages,
        "problems": problems,
    }


def _read_runs(params: QueryDict) -> tuple[list[Run], Run | None, list[str]]:
    """Return the runs that the address names, in its order, each once; the baseline, else the first; and sentences on
    the parts of the address that are ignored."""
    given = [text.strip() for text in params.getlist("run")[:READ] if text.strip()]
    numbers, problems = [], []
    for text in dict.fromkeys(given):
        number = parse_number(text.removeprefix("#"), ROW_DIGITS)
        if number is None:
            problems.append(f"“{text[:40]}” is no number of a run. Runs are named by whole numbers, such as 12.")
        elif number not in numbers:
            numbers.append(number)
    rows = visible_to(Run.objects.select_related("owner")).prefetch_related(fetch_checks()).in_bulk(numbers)
    problems += [f"There is no run {number}." for number in numbers if number not in rows]
    there = [rows[number] for number in numbers if number in rows]
    runs = there[:MAX_RUNS]
    if there[MAX_RUNS:]:
        left = ", ".join(str(run.pk) for run in there[MAX_RUNS:])
        problems.append(f"At most {MAX_RUNS} runs stand side by side. Left out: {left}. Remove others to see them.")
    asked, first = params.get("base", ""), next(iter(runs), None)
    base = next((run for run in runs if run.pk == parse_key(asked)), first)
    if asked and base and base.pk != parse_key(asked):
        problems.append(
            f"The baseline “{asked[:20]}” is not among these runs: they are measured against run {base.pk}."
        )
    return runs, base, problems


def _list_offered(runs: Sequence[Run]) -> Sequence[Run]:
    """Return the newest other runs of the same units; of all units while no run is chosen."""
    rows = visible_to(Run.objects.exclude(pk__in=[run.pk for run in runs])).select_related("owner")
    same = Q()
    for run in runs:
        same |= Q(model=run.model, layer=run.layer, unit=run.unit)
    return list(rows.filter(same)[:MAX_CHOICES])
