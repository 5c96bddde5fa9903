"""The limits of a run: what they refuse, and when they are reached."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.support.run_log import fold
from workers.errors import RequestError
from workers.record import limits as limits_of_runs
from workers.record.events import Event, ExperimentEnded, Replied
from workers.record.limits import Limits, Usage, check

NONE: dict[str, Any] = {"rounds": None, "tokens": None, "cost": None, "seconds": None}


FREE = Usage()


def replies(count, usage=FREE):
    return [Event(n, "reply", Replied(n, "test", "", "", usage=usage)) for n in range(1, count + 1)]


def explain_exceeded(limits, events, seconds):
    state = fold(events)
    return limits_of_runs.explain_exceeded(limits, state.rounds, state.usage, seconds)


@pytest.mark.parametrize("name", NONE)
@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf])
def test_a_limit_that_lets_a_run_do_nothing_is_refused_with_the_remedy(name, value):
    with pytest.raises(RequestError, match=r"above 0, or leave the field empty"):
        check(Limits(**NONE | {name: value}))


def test_positive_limits_and_no_limits_are_taken():
    check(Limits())
    check(Limits(**NONE))
    check(Limits(rounds=1, tokens=1, cost=0.001, seconds=0.5))


def test_without_limits_nothing_is_ever_reached():
    assert explain_exceeded(Limits(**NONE), replies(500, Usage(10**9, 10**9, 1e6)), 1e9) is None


@pytest.mark.parametrize(
    ("name", "limit", "below", "reached"),
    [
        ("rounds", 3, (replies(2), 0.0), (replies(3), 0.0)),
        ("tokens", 30, (replies(2, Usage(9, 5)), 0.0), (replies(2, Usage(10, 5)), 0.0)),
        ("cost", 0.5, (replies(1, Usage(cost=0.49)), 0.0), (replies(2, Usage(cost=0.25)), 0.0)),
        ("seconds", 60.0, (replies(9), 59.9), ([], 60.0)),
    ],
)
def test_a_limit_is_reached_when_all_of_it_is_used_and_not_before(name, limit, below, reached):
    limits = Limits(**NONE | {name: limit})
    assert explain_exceeded(limits, *below) is None
    assert explain_exceeded(limits, *reached)


def test_descriptions_count_as_replies_do():
    described = Event(9, "result", ExperimentEnded(1, 1, "ok", usage=Usage(6, 4, 0.3)))
    events = [*replies(1, Usage(5, 5, 0.2)), described]
    assert "20 tokens used" in str(explain_exceeded(Limits(**NONE | {"tokens": 20}), events, 0.0))
    assert explain_exceeded(Limits(**NONE | {"tokens": 21}), events, 0.0) is None
    assert explain_exceeded(Limits(**NONE | {"cost": 0.5}), events, 0.0)
    assert explain_exceeded(Limits(**NONE | {"rounds": 2}), events, 0.0) is None


def test_the_sentence_names_the_limit_its_value_and_what_was_used():
    sentence = explain_exceeded(Limits(**NONE | {"tokens": 1000}), replies(2, Usage(1000, 200)), 0.0)
    assert sentence == "The limit of 1,000 tokens is reached: 2,400 tokens used."
    assert explain_exceeded(Limits(**NONE | {"seconds": 3600.0}), [], 3601.25) == (
        "The limit of 3,600 seconds is reached: 3,601.25 seconds used."
    )
