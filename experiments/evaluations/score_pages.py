"""Page of score distributions and of agents on the same units, of all runs or those that a Runs filter selects."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from experiments.core import access
from experiments.core.system_names import SystemNameMasker
from experiments.evaluations import same_units, scores
from experiments.models import Run
from experiments.runs.lists import runs_from


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Show scores by layer, model or agent, as r or AUPRC."""
    user = access.require(request)
    names = SystemNameMasker(user)
    # The same filters as the Runs page, so that both show the same runs
    found = runs_from(request.GET.dict(), user, names)
    by, measure = _read_choice(request.GET.get("by", ""), request.GET.get("measure", ""))
    groups = scores.find_scores(found.runs, by, measure, names)
    pairs = same_units.compare_agents(found.runs, measure, names)
    context: dict[str, Any] = {
        "breadcrumbs": [("Evaluations", reverse("evaluations")), ("Scores", request.path)],
        "groups": groups,
        "plot": scores.draw_scores(groups, by, measure, found.values),
        "pairs": pairs,
        "pairs_plot": same_units.draw_agents(pairs, measure),
        "by": by,
        "measure": measure,
        "bys": [(key, words) for key, (words, _) in scores.GROUPS.items()],
        "measures": [("r", "r"), ("auprc", "AUPRC")],
        "measured": sum(each.n for each in groups),
        "runs": found.runs.count(),
        "most": scores.MAX_GROUPS,
        "values": found.values,
        "problems": found.problems,
        "list": f"{reverse('runs')}?{urlencode(found.values)}",
        "any": Run.objects.exists(),
    }
    return render(request, "evaluations/scores.html", context)


def _read_choice(by: str, measure: str) -> tuple[str, str]:
    """Return grouping and measure, defaulting to layer and r."""
    return by if by in scores.GROUPS else "layer", measure if measure in scores.MEASURES else "r"
