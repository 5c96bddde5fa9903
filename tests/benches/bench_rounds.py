"""How long a round takes beside the backbone, the networks and the renderer: what our own machinery costs."""

from __future__ import annotations

import statistics
import time
from threading import Event
from typing import Any

import pytest
from django.contrib.auth.models import User

from experiments.models import Run
from tests.support.builders import make_run
from workers.jobs import laboratory as place
from workers.jobs import lease

UNITS = (3, 12, 21, 34, 47)
GOAL = 0.050


class Timed:
    """A plug-in whose working verbs are timed: seconds on the clock, and of the processor in the thread that asks."""

    def __init__(self, plugin: Any, verbs: tuple[str, ...], spent: list[float]) -> None:
        self.plugin, self.verbs, self.spent = plugin, verbs, spent

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.plugin, name)
        return self.time(found) if name in self.verbs else found

    def time(self, verb: Any) -> Any:
        def timed(*args: Any, **named: Any) -> Any:
            began = now()
            try:
                return verb(*args, **named)
            finally:
                self.spent[:] = [before + took for before, took in zip(self.spent, since(began), strict=True)]

        return timed


def now() -> tuple[float, float]:
    return time.perf_counter(), time.thread_time()


def since(began: tuple[float, float]) -> list[float]:
    return [later - before for later, before in zip(now(), began, strict=True)]


PARTS = {
    ("model", "toybox"): ("maps",),
    ("generator", "toybox"): ("generate",),
    ("editor", "toybox"): ("edit",),
    ("describer", "toybox"): ("describe", "summarize"),
    ("backbone", "scripted", ""): ("reply",),
}
"""What is not ours to make faster here: plug-ins by their names in the laboratory, and the verbs in which they work."""


@pytest.mark.bench
@pytest.mark.django_db(transaction=True)
def test_the_time_of_a_round_that_is_ours(owner: User, quick_laboratory, settings, redis_url) -> None:
    from tests.conftest import QUICK_IMAGES
    from workers.jobs.run_round import play

    settings.STATE, settings.LAB_DATASET_IMAGES = quick_laboratory, QUICK_IMAGES
    place.build_laboratory.cache_clear()
    laboratory, plugins = place.laboratory(), [0.0, 0.0]
    for (kind, *key), verbs in PARTS.items():
        laboratory._loaded[kind, *key] = Timed(getattr(laboratory, kind)(*key), verbs, plugins)
    rounds: list[tuple[float, float, int]] = []
    for unit in UNITS:
        run = make_run(owner, unit=unit, limits={"rounds": 25})
        goes_on = True
        while goes_on:
            claimed = lease.claim(run.pk)
            assert claimed
            seen, plugins[:], began = claimed.observation_count, [0.0, 0.0], now()
            with lease.hold_lease(claimed) as lost:
                goes_on = play(claimed, lost or Event())
            wall, processor = (all_in - theirs for all_in, theirs in zip(since(began), plugins, strict=True))
            rounds.append((wall, processor, Run.objects.get(pk=run.pk).observation_count - seen))
    place.build_laboratory.cache_clear()
    report(rounds)


def report(rounds: list[tuple[float, float, int]]) -> None:
    """The figures; those of the processor hold on a busy machine too."""
    walls, processors = sorted(wall for wall, _, _ in rounds), [processor for _, processor, _ in rounds]
    images = [(wall / count, processor / count) for wall, processor, count in rounds if count]
    figures = [
        ("median of a round that is ours", statistics.median(walls), f"{GOAL * 1000:9.0f} ms"),
        ("the same, processor time of its thread", statistics.median(processors), ""),
        ("slowest", walls[-1], ""),
        ("for each image logged, median", statistics.median(wall for wall, _ in images), ""),
        ("the same, processor time of its thread", statistics.median(processor for _, processor in images), ""),
    ]
    print(f"\nRounds of {len(UNITS)} runs on toybox layer4, sandbox, database and Redis included")
    print(f"{'figure':52}{'measured':>12}{'goal':>12}")
    for name, seconds, goal in figures:
        print(f"{name:52}{seconds * 1000:9.1f} ms{goal}")
    print(f"{'rounds, images':52}{len(rounds):9} / {sum(count for _, _, count in rounds)}")
