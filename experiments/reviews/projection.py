"""Project the verdict of a run from its reviews. Nothing else writes `Run.verdict` and its figures.

Submitted reviews count if their item is complete or its queue is closed, the newest of each reviewer. The verdict is
the one that more than half of them share, else "split". A final verdict overrides it. `blindness` decides who may
see it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from django.contrib.auth.models import User
from django.db import transaction

from experiments.core import notifications
from experiments.core.blindness import OPEN
from experiments.models import Adjudication, NotificationKind, Outcome, Review, ReviewState, Run
from experiments.models.run import VERDICT_COLUMNS

BATCH = 500


@transaction.atomic
def project(runs: Iterable[int], by: User | None = None) -> None:
    """Update the verdicts of these runs. Owners are notified of a new verdict, unless they gave it themselves."""
    keys = list(runs)
    # Locked, so that reviews which end at the same moment are all counted; `of` leaves the joined owner free
    rows = list(Run.objects.select_for_update(of=("self",)).select_related("owner").filter(pk__in=keys))
    opinions = _opinions_of(keys)
    finals = Adjudication.objects.filter(item__run__in=keys).order_by("pk")
    # Ordered by key, so the newest final verdict of each run wins
    final = dict(finals.values_list("item__run_id", "verdict"))
    for run in rows:
        before = (run.verdict, run.verdict_final)
        given = opinions.get(run.pk, [])
        # 1. The verdict of the most, if they are more than half.
        verdict, agreeing = next(iter(Counter(given).most_common(1)), ("", 0))
        if agreeing * 2 <= len(given) and given:
            verdict = Outcome.SPLIT
        # 2. A final verdict overrides it, but the counts stay those of the reviews.
        run.verdict = str(final.get(run.pk, verdict))
        run.verdict_final = run.pk in final
        run.verdict_opinions, run.verdict_agreeing = len(given), given.count(run.verdict)
        if run.verdict and (run.verdict, run.verdict_final) != before and run.owner != by:
            # That there is a verdict, not which: the author may be a reviewer who has not written theirs
            what = "There is a final verdict on" if run.verdict_final else "Reviewers have come to a verdict on"
            words = f"{what} your {notifications.name_run(run)}."
            notifications.notify_person(run.owner, NotificationKind.REVIEW, words, f"{run.get_absolute_url()}#verdict")
    Run.objects.bulk_update(rows, VERDICT_COLUMNS, batch_size=BATCH)


def _opinions_of(runs: list[int]) -> Mapping[int, list[str]]:
    """Return the verdicts that count by run, the newest of each reviewer."""
    rows = Review.objects.filter(OPEN, state=ReviewState.SUBMITTED, item__run__in=runs).order_by("submitted", "pk")
    found: dict[int, dict[int, str]] = {}
    for run, reviewer, verdict in rows.values_list("item__run_id", "reviewer_id", "verdict"):
        found.setdefault(run, {})[reviewer] = verdict
    return {run: list(by_reviewer.values()) for run, by_reviewer in found.items()}
