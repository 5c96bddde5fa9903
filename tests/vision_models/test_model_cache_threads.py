"""The cache with many threads at it: nobody waits for ever, nobody computes on what another uses."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
import torch

from tests.support.cached_networks import KILO, loader, names, network, used
from workers import model_cache
from workers.errors import MachineryError
from workers.model_cache import ModelCache, Slot

pytestmark = pytest.mark.usefixtures("little_garbage")


@pytest.fixture
def budget() -> ModelCache:
    """Room for ten kilobytes."""
    return ModelCache(10 * KILO)


def in_threads(*works: Callable[[], None]) -> None:
    """Run them at once; raises what one of them raised."""
    errors: list[BaseException] = []

    def safe(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 raised again below
            errors.append(error)

    threads = [threading.Thread(target=safe, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive(), "the threads wait for each other"
    if errors:
        raise errors[0]


def test_one_thread_at_a_time_is_inside(budget: ModelCache) -> None:
    slot, inside = budget.slot("net", loader(1)), []

    def work() -> None:
        for _ in range(20):
            with slot:
                inside.append(1)
                assert len(inside) == 1
                time.sleep(0.0005)
                inside.pop()

    in_threads(work, work, work)


def test_a_thread_may_enter_again(budget: ModelCache) -> None:
    slot = budget.slot("net", loader(1))
    with slot as outer, slot as inner:
        assert inner is outer
    assert not budget.loaded()[0].busy


def test_many_threads_with_several_places_each_come_through(budget: ModelCache) -> None:
    slots = [budget.slot(f"net {n}", loader(n + 1)) for n in range(6)]

    def work(seed: int) -> None:
        random = Random(seed)
        for _ in range(3):
            first, second = sorted(random.sample(range(6), 2))
            with slots[first] as outer, slots[second] as inner:
                assert outer.in_features == 256 * (first + 1)
                assert inner.in_features == 256 * (second + 1)

    in_threads(*[lambda seed=seed: work(seed) for seed in range(5)])  # type: ignore[misc]
    assert not any(each.busy for each in budget.loaded())
    used(budget.slot("last", loader(1)))
    assert sum(each.bytes for each in budget.loaded()) <= budget.budget


def test_opposite_order_is_an_error_and_not_the_end(budget: ModelCache) -> None:
    one, other = budget.slot("one", loader(1)), budget.slot("other", loader(1))
    both = threading.Barrier(2, timeout=10)
    said: list[str] = []

    def work(first: Slot[Any], second: Slot[Any]) -> None:
        try:
            with first:
                both.wait()
                with second:
                    pass
        except MachineryError as error:
            said.append(str(error))

    in_threads(lambda: work(one, other), lambda: work(other, one))
    assert len(said) == 1
    assert "wait for each other" in said[0]


def test_while_one_place_loads_the_others_work(budget: ModelCache) -> None:
    loading, go_on = threading.Event(), threading.Event()

    def slow() -> torch.nn.Module:
        loading.set()
        assert go_on.wait(10)
        return network(1)

    slow_slot, quick_slot = budget.slot("slow", slow), budget.slot("quick", loader(1))

    def other() -> None:
        assert loading.wait(10)
        used(quick_slot)
        assert names(budget) == ["quick"]
        go_on.set()

    in_threads(lambda: used(slow_slot), other)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_cache, "MAX_WAIT_SECONDS", 0.05)


def test_a_large_place_waits_until_another_is_idle(budget: ModelCache) -> None:
    one, other = budget.slot("one", loader(8)), budget.slot("other", loader(8))
    used(one, other)
    inside, waiting = threading.Event(), threading.Event()

    def first() -> None:
        with one:
            inside.set()
            assert waiting.wait(10)
            time.sleep(0.02)
            assert names(budget) == ["one"]

    def second() -> None:
        assert inside.wait(10)
        waiting.set()
        with other:
            assert names(budget) == ["other"]

    in_threads(first, second)


def test_it_does_not_wait_for_ever(budget: ModelCache, impatient: None, caplog: pytest.LogCaptureFixture) -> None:
    one, other = budget.slot("one", loader(8)), budget.slot("other", loader(8))
    used(other)
    done = threading.Event()

    def first() -> None:
        with one:
            assert done.wait(10)

    def second() -> None:
        while not any(each.name == "one" and each.busy for each in budget.loaded()):
            time.sleep(0.001)
        used(other)
        done.set()

    with caplog.at_level(logging.WARNING):
        in_threads(first, second)
    assert "beside" in caplog.text
