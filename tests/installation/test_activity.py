"""The team's weeks: what ended in which, whose it was, and that an hour at a boundary is counted once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.installation.activity import WEEKS, draw_activity, list_weeks, read_activity
from experiments.models import Review, ReviewQueue
from tests.support.builders import make_run
from tests.support.people import member

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
"""A Wednesday; its week began on the 23rd."""
MONDAY = datetime(2026, 11, 23, tzinfo=UTC)


def ended(owner: User, at: datetime, status: str = "concluded", **fields: Any) -> None:
    make_run(owner, status=status, ended=at, **fields)


def test_weeks_begin_on_mondays_and_the_present_one_is_last() -> None:
    weeks = list_weeks(NOW)
    assert (len(weeks), weeks[-1], weeks[0]) == (WEEKS, MONDAY, MONDAY - timedelta(weeks=11))


def test_without_anything_all_weeks_are_nought(owner: User) -> None:
    make_run(owner)  # has not ended
    found = read_activity(NOW)
    assert found.is_empty
    assert [vars(week) for week in found.weeks] == [vars(found.weeks[0])] * WEEKS
    assert found.people == {}
    assert [plot for _, _, plot in draw_activity(found)] == [None] * 4


def test_a_run_counts_in_the_week_in_which_it_ended_and_at_the_bound_once(owner: User) -> None:
    ended(owner, MONDAY, prompt_tokens=10, completion_tokens=5, cost=0.5)
    ended(owner, MONDAY - timedelta(microseconds=1), prompt_tokens=1)
    ended(owner, MONDAY - timedelta(weeks=11), prompt_tokens=2)
    ended(owner, MONDAY - timedelta(weeks=11, microseconds=1), prompt_tokens=4)  # before the first week
    weeks = read_activity(NOW).weeks
    assert [(week.runs, week.tokens) for week in (weeks[0], weeks[-2], weeks[-1])] == [(1, 2), (1, 1), (1, 15)]
    assert sum(week.runs for week in weeks) == 3
    assert weeks[-1].cost == pytest.approx(0.5)


def test_what_failed_took_tokens_and_money_and_is_no_conclusion(owner: User) -> None:
    ended(owner, NOW, "failed", prompt_tokens=7, cost=1.0)
    ended(owner, NOW, "limit_reached", prompt_tokens=1, unpriced=True)
    week = read_activity(NOW).weeks[-1]
    assert (week.runs, week.tokens, week.cost, week.unpriced) == (1, 8, 1.0, 1)


def test_each_person_has_their_own_and_all_of_them_are_the_weeks(owner: User) -> None:
    other = member("other", "REVIEWER")
    queue = ReviewQueue.objects.create(name="Q", owner=owner)
    ended(owner, NOW)
    ended(owner, NOW - timedelta(weeks=3))
    item = queue.items.create(run=make_run(other, status="concluded", ended=NOW), position=1)
    Review.objects.create(item=item, reviewer=other, state="submitted", submitted=NOW, verdict="accept")
    Review.objects.create(item=item, reviewer=owner, state="draft")
    found = read_activity(NOW)
    assert [(name, done.runs, done.reviews) for name, done in found.people.values()] == [
        ("owner", 2, 0),
        ("other", 1, 1),
    ]
    assert sum(week.runs for week in found.weeks) == 3
    assert found.weeks[-1].reviews == 1


def test_the_drawing_says_its_sums(owner: User) -> None:
    ended(owner, NOW, prompt_tokens=1_500)
    drawn = {title: (total, plot) for title, total, plot in draw_activity(read_activity(NOW))}
    assert drawn["Runs concluded"][0] == "1"
    total, plot = drawn["Tokens"]
    assert plot is not None
    assert (total, [bar.words for bar in plot.bars]) == ("1.5k", ["23 Nov: 1.5k"])
    assert drawn["Cost of runs"] == ("$0.00", None)


def test_viewers_read_the_weeks_and_not_who(as_owner: Client, teammate: User, owner: User) -> None:
    ended(owner, datetime.now(UTC))
    assert "By person" in as_owner.get("/").content.decode()
    assert [each["name"] for each in as_owner.get("/api/v1/activity").json()["people"]] == ["owner"]
    viewer = Client()
    viewer.force_login(teammate)
    page = viewer.get("/").content.decode()
    assert "The last 12 weeks" in page
    assert "By person" not in page
    assert viewer.get("/api/v1/activity").json()["people"] == []


def test_any_number_of_runs_takes_three_queries(owner: User, django_assert_num_queries: Any) -> None:
    for days in range(40):
        ended(owner, NOW - timedelta(days=days))
    with django_assert_num_queries(3):
        assert sum(week.runs for week in read_activity(NOW).weeks) == 40
