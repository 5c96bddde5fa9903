"""Whose turn it is, played through without a database: shares of time, weights, and who is new."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from workers.jobs.turns import QueueState, pick_queue


def play(line: list[QueueState], lengths: dict[int, float], rounds: int) -> list[int]:
    """Who is served, one thread and everybody always ready; a round of a queue takes what `lengths` says."""
    served = []
    for _ in range(rounds):
        at, cycle = pick_queue(line)
        visits = [cycle] * (at + 1) + [cycle - 1] * (len(line) - at - 1)
        line[:] = [
            replace(each, deficit=min(each.deficit + count * each.grant, each.grant)) if count else each
            for each, count in zip(line, visits, strict=True)
        ]
        run_queue = line[at]
        line[at] = replace(run_queue, deficit=run_queue.deficit - lengths[run_queue.run_queue])
        line[:] = line[at + 1 :] + line[: at + 1]
        served.append(run_queue.run_queue)
    return served


def test_flows_with_rounds_of_one_length_take_turns() -> None:
    line = [QueueState(1), QueueState(2), QueueState(3)]
    assert play(line, {1: 9.0, 2: 9.0, 3: 9.0}, 7) == [1, 2, 3, 1, 2, 3, 1]


def test_a_flow_with_long_rounds_gets_no_more_time_than_one_with_short_ones() -> None:
    served = play([QueueState(1), QueueState(2)], {1: 30.0, 2: 3.0}, 1100)
    assert served.count(1) * 30.0 == pytest.approx(served.count(2) * 3.0, rel=0.05)


def test_time_is_shared_by_weight() -> None:
    served = play([QueueState(1, weight=4.0), QueueState(2, weight=1.0)], {1: 10.0, 2: 10.0}, 1000)
    assert served.count(1) == pytest.approx(4 * served.count(2), rel=0.02)


@pytest.mark.parametrize("debt", [0.0, 0.5, 1.0, 59.0, 1e6])
def test_a_flow_alone_never_waits_whatever_it_had(debt: float) -> None:
    assert play([QueueState(1, -debt)], {1: 5.0}, 3) == [1, 1, 1]


def test_whoever_is_new_is_served_second_at_the_latest() -> None:
    rng = random.Random(4)
    for _ in range(200):
        line = [QueueState(n, -rng.uniform(0, 99), rng.choice([1.0, 2.0, 4.0])) for n in range(rng.randint(1, 6))]
        at = rng.randint(0, 1)
        line.insert(at, QueueState(99))
        assert 99 in play(line, dict.fromkeys([*range(6), 99], 10.0), at + 1)


def test_nobody_saves_up_turns_while_there_is_nothing_to_serve() -> None:
    idle, busy = QueueState(1, 1.0), QueueState(2)
    assert play([idle, busy], {1: 5.0, 2: 5.0}, 4) == [1, 2, 1, 2]
