"""How long a round takes beside the backbone, the networks and the renderer: what our own machinery costs."""

from __future__ import annotations

import statistics
import time
from threading import Event
from typing import Any

import pytest
from django.contrib.auth.models import User

from experiments.models import Run
from tests.builders import make_run
from workers.jobs import laboratory as place
from workers.jobs import lease

UNITS = (3, 12, 21, 34, 47)
GOAL = 0.050


class Timed:
    """A plug-in whose working verbs are timed."""

    def __init__(self, plugin: Any, verbs: tuple[str, ...], clock: list[float]) -> None:
        self.plugin, self.verbs, self.clock = plugin, verbs, clock

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.plugin, name)
        return self.time(found) if name in self.verbs else found

    def time(self, verb: Any) -> Any:
        def timed(*args: Any, **named: Any) -> Any:
            began = time.perf_counter()
            try:
                return verb(*args, **named)
            finally:
                self.clock[0] += time.perf_counter() - began

        return timed


VERBS = {
    "model": ("maps",),
    "generator": ("generate",),
    "editor": ("edit",),
    "describer": ("describe", "summarize"),
    "backbone": ("reply",),
}


@pytest.mark.bench
@pytest.mark.django_db(transaction=True)
def test_the_time_of_a_round_that_is_ours(owner: User, quick_laboratory, settings, redis_url) -> None:
    from tests.conftest import QUICK_IMAGES
    from workers.jobs.conduct import play

    settings.STATE, settings.LAB_DATA_SET_IMAGES = quick_laboratory, QUICK_IMAGES
    place.build_laboratory.cache_clear()
    laboratory, clock = place.laboratory(), [0.0]
    for kind, verbs in VERBS.items():
        key = "scripted" if kind == "backbone" else "toybox"
        laboratory._loaded[kind, key] = Timed(getattr(laboratory, kind)(key), verbs, clock)
    rounds: list[tuple[float, int]] = []
    for unit in UNITS:
        run = make_run(owner, unit=unit, limits={"rounds": 25})
        goes_on = True
        while goes_on:
            claimed = lease.claim(run.pk)
            assert claimed
            seen, clock[0], began = claimed.observation_count, 0.0, time.perf_counter()
            with lease.held(claimed) as lost:
                goes_on = play(claimed, lost or Event())
            spent = time.perf_counter() - began - clock[0]
            rounds.append((spent, Run.objects.get(pk=run.pk).observation_count - seen))
    place.build_laboratory.cache_clear()
    times = sorted(spent for spent, _ in rounds)
    per_image = statistics.median(spent / logged for spent, logged in rounds if logged)
    print(f"\nRounds of {len(UNITS)} runs on toybox layer4, sandbox, database and Redis included")
    print(f"{'figure':52}{'measured':>12}{'goal':>12}")
    print(f"{'median of a round that is ours':52}{statistics.median(times) * 1000:9.1f} ms{GOAL * 1000:9.0f} ms")
    print(f"{'slowest':52}{times[-1] * 1000:9.1f} ms")
    print(f"{'for each image logged, median':52}{per_image * 1000:9.1f} ms")
    print(f"{'rounds, images':52}{len(times):9} / {sum(logged for _, logged in rounds)}")
