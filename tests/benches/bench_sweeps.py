"""A sweep of 10,000 units: laying it out, and its page and what a page that is open asks for, at the end of it.

Its labels are words drawn at random, nearly all of them different: what groups them has the most to do.
"""

from __future__ import annotations

import gzip
import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from experiments.models import Label, Layer, Run, Sweep
from experiments.units.label_groups import group_labels
from tests.support.sweeps import create_sweep_runs, make_layers, start

UNITS = 10_000
WORDS = 1_500
"""Different words that labels draw from, the frequent ones more often."""
REPEATS = 3


def draw_labels(count: int, seed: int = 0) -> list[str]:
    """Each of three to seven words."""
    rng = random.Random(seed)
    weights = [1 / (rank + 10) for rank in range(WORDS)]
    return [
        " ".join(rng.choices([f"word{n}" for n in range(WORDS)], weights, k=rng.randint(3, 7))) for _ in range(count)
    ]


def conclude(sweep: Sweep, labels: Sequence[str]) -> None:
    """All of its runs, each with a label of its own; a tenth failed."""
    now = timezone.now()
    runs = list(sweep.runs.order_by("pk"))
    for place, run in enumerate(runs):
        failed = place % 10 == 9
        run.status, run.reason = ("failed", f"Reason {place % 7}") if failed else ("concluded", "")
        run.rounds, run.cost, run.seconds, run.ended = 4, 0.1, 60.0, now
    Run.objects.bulk_update(runs, ["status", "reason", "rounds", "cost", "seconds", "ended"], batch_size=500)
    done = [run for run in runs if run.status == "concluded"]
    made = [Label(text=text, source="run", run=run) for run, text in zip(done, labels, strict=False)]
    Label.objects.bulk_create(made, batch_size=500)


def took(work: Callable[[], Any]) -> float:
    """Milliseconds of the processor in this thread, the least of some."""
    times = []
    for _ in range(REPEATS):
        began = time.thread_time()
        work()
        times.append((time.thread_time() - began) * 1000)
    return min(times)


@pytest.mark.bench
@pytest.mark.django_db
def test_a_sweep_of_ten_thousand_units(owner: User, as_owner: Client, redis_url: str) -> None:
    make_layers()
    Layer.objects.filter(name="layer4").update(units=UNITS)
    began = time.perf_counter()
    sweep = create_sweep_runs(start(owner, layer=["layer4"]))
    print(f"\nlaying out {sweep.created_runs:,} runs: {time.perf_counter() - began:.1f} s")
    labels = draw_labels(UNITS)
    conclude(sweep, labels)
    print(f"grouping {len(set(labels)):,} labels: {took(lambda: group_labels(enumerate(labels))):,.0f} ms")
    for name, address in (
        ("all sweeps", "/sweeps/"),
        ("the form", "/sweeps/new/?model=toybox&layer=layer4"),
        ("by status", f"/sweeps/{sweep.pk}/"),
        ("by check", f"/sweeps/{sweep.pk}/?colour=check"),
        ("by label", f"/sweeps/{sweep.pk}/?colour=label"),
        ("CSV", f"/sweeps/{sweep.pk}/runs.csv"),
    ):
        answer = as_owner.get(address)
        assert answer.status_code == 200, address
        size, small = len(answer.content), len(gzip.compress(answer.content, 5))
        spent = took(partial(as_owner.get, address))
        print(f"{name:12}{spent:9,.0f} ms{size / 1000:10,.0f} kB{small / 1000:8,.0f} kB gzipped")
