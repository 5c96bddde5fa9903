"""Page of agreement: by criterion, by reviewer, and the items on which reviewers disagree.

The figures need NumPy and SciPy, which the web process imports when the page is first opened.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from experiments.core import access, blindness
from experiments.core.access import HtmxRequest
from experiments.core.blindness import may_see_agreement
from experiments.core.paging import Page
from experiments.models import ReviewQueue
from experiments.reviews.agreement import lists

PER_PAGE = 20
FIGURES = "figures"
"""Id of the part of the page that htmx loads after the rest, because it takes longer to compute."""


@require_safe
def page(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show the disagreements. htmx loads the figures afterwards; ?figures=now includes them, for browsers without
    scripts."""
    user = access.require(request)
    queue = get_object_or_404(ReviewQueue, pk=pk)
    way = [("Review", reverse("review")), (queue.name, queue.get_absolute_url()), ("Agreement", request.path)]
    context: dict[str, Any] = {"queue": queue, "breadcrumbs": way}
    if not may_see_agreement(user, queue):
        return render(request, "reviews/agreement/hidden.html", context)
    # Figures reveal reviews as well
    blindness.record_disclosure(user, queue.items.values_list("pk", flat=True))
    context["left_out"] = lists.count_left_out(user, queue)
    part = request.htmx.target == FIGURES
    if part or request.GET.get("figures") == "now":
        from experiments.reviews.agreement.summary import build_context

        context |= build_context(user, queue, request.GET.get("line", ""))
    if part:
        return render(request, "reviews/agreement/figures.html", context)
    reviews = lists.reviews(user, queue)
    found = lists.disagreements(reviews)
    shown = Page.of(request.GET, found.count(), PER_PAGE)
    rows = lists.list_rows([row["item_id"] for row in found[shown.start : shown.end]], reviews)
    return render(request, "reviews/agreement/page.html", context | {"page": shown, "rows": rows})
