"""Weekly activity of the team and of each person: ended runs, what they used, and reviews.

Two queries in all: the database counts by week.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Case, Count, F, IntegerField, Q, QuerySet, Sum, Value, When
from django.utils import timezone

from experiments.core.display_name import person
from experiments.display.number_format import compact, count_noun, dollars
from experiments.display.plots import BarSeries, Plot, PlotShape, draw_bars
from experiments.models import Review, ReviewState, Run
from workers.record.statuses import Status

WEEKS = 12
"""Number of weeks, with the current one."""
CONCLUDED = (Status.CONCLUDED, Status.LIMIT_REACHED)
SHAPE = PlotShape(340, 168, 50, 10, 16, 40, 64)
MEASURES = (
    ("runs", "Runs concluded", "part-0", lambda value: f"{value:,.0f}"),
    ("tokens", "Tokens", "part-2", compact),
    ("cost", "Cost of runs", "part-1", dollars),
    ("reviews", "Reviews", "part-0", lambda value: f"{value:,.0f}"),
)
"""What is plotted: field, title, colour, and format of a value."""


@dataclass
class Tally:
    """Totals of a period. `cost` is in US dollars, as far as prices are known; `unpriced` counts runs without a
    known price."""

    runs: int = 0
    cost: float = 0.0
    tokens: int = 0
    reviews: int = 0
    unpriced: int = 0

    def add(self, other: Tally) -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


@dataclass
class Activity:
    """`starts` are the Mondays of the weeks, UTC. `people` maps a user id to the name and the totals of all weeks."""

    starts: Sequence[datetime]
    weeks: list[Tally]
    people: dict[int, tuple[str, Tally]] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not any(week.runs or week.tokens or week.reviews or week.cost for week in self.weeks)

    @property
    def unpriced(self) -> int:
        return sum(week.unpriced for week in self.weeks)


def list_weeks(now: datetime) -> list[datetime]:
    """Return the start of each week, oldest first."""
    monday = (now - timedelta(days=now.weekday())).replace(hour=0, minute=0, second=0, microsecond=0)
    return [monday - timedelta(weeks=back) for back in reversed(range(WEEKS))]


def read_activity(now: datetime | None = None) -> Activity:
    """Return the activity of the weeks up to now. People with the most concluded runs come first."""
    starts = list_weeks(now or timezone.now())
    weeks = [Tally() for _ in starts]
    done: dict[int, Tally] = defaultdict(Tally)
    for week, who, tally in [*_count_runs(starts), *_count_reviews(starts)]:
        weeks[week].add(tally)
        done[who].add(tally)
    users = User.objects.in_bulk(done)
    ordered = sorted(done, key=lambda who: (-done[who].runs, -done[who].reviews, who))
    return Activity(starts, weeks, {who: (person(users[who]), done[who]) for who in ordered})


def _count_runs(starts: Sequence[datetime]) -> Iterable[tuple[int, int, Tally]]:
    """Yield week, user and totals of the runs that ended in that week."""
    tokens = F("prompt_tokens") + F("completion_tokens")
    rows = (
        _count_by_week(Run.objects.all(), "ended", starts)
        .values_list("week", "owner")
        .annotate(
            runs=Count("pk", filter=Q(status__in=CONCLUDED)),
            spent=Sum("cost"),
            read=Sum(tokens),
            priceless=Count("pk", filter=Q(unpriced=True)),
        )
    )
    for week, who, runs, cost, read, priceless in rows:
        yield week, who, Tally(runs, cost or 0.0, read or 0, 0, priceless)


def _count_reviews(starts: Sequence[datetime]) -> Iterable[tuple[int, int, Tally]]:
    given = Review.objects.filter(state=ReviewState.SUBMITTED)
    rows = _count_by_week(given, "submitted", starts).values_list("week", "reviewer").annotate(Count("pk"))
    for week, who, count in rows:
        yield week, who, Tally(reviews=count)


def _count_by_week(rows: QuerySet[Any], column: str, starts: Sequence[datetime]) -> QuerySet[Any]:
    """Select the rows of these weeks and annotate each with the index of its `week`."""
    before = [When(**{f"{column}__lt": start}, then=Value(place)) for place, start in enumerate(starts[1:])]
    week = Case(*before, default=Value(len(starts) - 1), output_field=IntegerField())
    return rows.filter(**{f"{column}__gte": starts[0]}).order_by().annotate(week=week)


def draw_activity(activity: Activity) -> list[tuple[str, str, Plot | None]]:
    """Return for each measure its title, its sum, and a small plot; None if every week is zero."""
    names = [f"{start:%-d %b}" for start in activity.starts]
    drawn: list[tuple[str, str, Plot | None]] = []
    for measure, title, kind, tell in MEASURES:
        values = [float(getattr(week, measure)) for week in activity.weeks]
        label = f"{title} by week, {count_noun(len(names), 'week')}: {tell(sum(values))} in all"
        series = [BarSeries(title, kind, values)]
        plot = draw_bars(names, series, label, "Week of", "", tell=tell, shape=SHAPE) if any(values) else None
        drawn.append((title, tell(sum(values)), plot))
    return drawn
