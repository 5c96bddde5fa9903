"""Context of the agreement page: rows by criterion, by pair of reviewers, and by reviewer."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from django.contrib.auth.models import User

from experiments.core.display_name import person
from experiments.models import ReviewQueue
from experiments.reviews.agreement import drawing, lists, measures
from experiments.reviews.agreement.measures import AXIS, cohen_kappa, fleiss_kappa, krippendorff_alpha
from experiments.reviews.agreement.ratings import LINES, VERDICT, Ratings, ratings

PAIRS = 45
"""Pairs of reviewers on the page: those with the most common items."""
TICKS = [AXIS.at(value) for value in (0.0, 0.667, 0.8, 1.0)]
"""Chance, and the bounds above which Krippendorff draws tentative and firm conclusions."""


def build_context(user: User, queue: ReviewQueue, line: str) -> dict[str, Any]:
    """Return the template context from the reviews that count for this user.

    `line` names the criterion for pairs and reviewers; an unknown name means the verdict.
    """
    rated = ratings(lists.reviews(user, queue))
    # 1. The criterion of the address.
    chosen = rated.get(line, rated[VERDICT])
    people = User.objects.in_bulk(chosen.reviewers)
    rows: list[dict[str, Any]] = [
        {"line": each.line, "alpha": krippendorff_alpha(each), "fleiss": fleiss_kappa(each)} for each in rated.values()
    ]
    # 2. Pairs of reviewers; the intervals of hundreds of pairs would take seconds.
    pairs = sorted(combinations(chosen.reviewers, 2), key=lambda pair: -len(chosen.pair(*pair)[0]))
    shown = [{"one": people[a], "other": people[b], "kappa": cohen_kappa(chosen, a, b)} for a, b in pairs[:PAIRS]]
    summary = {
        "lines": rows,
        "line": chosen.line,
        "pairs": shown,
        "pairs_left_out": len(pairs) - len(shown),
        "reviewers": [_summarize_reviewer(chosen, key, people[key]) for key in chosen.reviewers],
        "few": any(row["alpha"].few or row["fleiss"].few for row in rows),
    }
    names = {key: person(people[key]) for key in chosen.reviewers}
    return {
        "summary": summary,
        "plot_lines": drawing.draw_lines([(row["line"], row["alpha"]) for row in rows]),
        "plot_reviewers": drawing.draw_reviewers(chosen, names),
        "plot_opinions": drawing.draw_opinions(chosen),
        "most_reviewers": drawing.MAX_REVIEWERS,
        "lines": LINES,
        "ticks": TICKS,
        "resamples": measures.resamples(max(1, *(row["alpha"].n for row in rows))),
        "least": measures.MIN_INTERVAL_ITEMS,
        "few": measures.MIN_RELIABLE_ITEMS,
    }


def _summarize_reviewer(rated: Ratings, key: int, reviewer: User) -> dict[str, Any]:
    """Summarize one reviewer.

    `beside` counts items that others rated too. `above` is the mean difference to their ratings on these, None for
    the verdict. `rest` is alpha without this reviewer.
    """
    own = rated.table[:, rated.reviewers.index(key)]
    others = rated.exclude_rater(key)
    beside = ~np.isnan(own) & (~np.isnan(others.table)).any(axis=1)
    above = None
    if rated.line.name != VERDICT and beside.any():
        above = float(np.mean(own[beside] - np.nanmean(others.table[beside], axis=1)))
    rest = krippendorff_alpha(others, with_interval=False)
    items = int((~np.isnan(own)).sum())
    return {"reviewer": reviewer, "items": items, "beside": int(beside.sum()), "above": above, "rest": rest}
