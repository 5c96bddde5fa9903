"""How long a round takes beside the backbone, the networks and the renderer: what our own machinery costs.

It plays whole runs, in three shares: all of a round, the pipeline's part of it, and the rest, which is ours. Beside
them stand what Pillow takes to encode the same images in this process, and the queries, commands and bytes of a round.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from django.conf import settings as site
from django.contrib.auth.models import User
from django.db import connection

from experiments.core import notify
from experiments.models import Run
from tests.support.builders import make_run
from workers.jobs import laboratory as place
from workers.jobs import lease, thumbnails
from workers.jobs.images import read_image
from workers.lab.imaging import encode_png
from workers.protocols import Reply

UNITS = (3, 12, 21, 34, 47)
GOAL, GOAL_IMAGES = 0.050, 15
"""Seconds of a round with so many images."""
LONG_RUNS, EARLY, LATE = 3, (2, 3, 4), (24, 25, 26)
"""Runs of equal rounds, and which of their rounds are compared."""
DRAW = """[CODE]:
```python
def run_experiment(system, tools):
    kinds = ("ball", "cube", "cone")
    prompts = [f"a {colour} {kind} on grass" for colour in ("red", "green", "blue", "orange", "pink") for kind in kinds]
    activations, images = system.neuron(tools.text2image(prompts))
    tools.log_experiment(activations, images, prompts, "colour against shape")
```"""


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


@dataclass(frozen=True)
class Round:
    """Seconds, and what passed between the worker and others."""

    images: int
    total: float
    pipeline: float
    processor: float
    """Of the round's thread, the pipeline's taken off."""
    queries: int
    query_bytes: int
    """Of statements and their values, as text."""
    commands: int
    """That Redis was given, by whomever: nobody else uses it here."""
    redis_bytes: int
    file_bytes: int

    @property
    def own(self) -> float:
        return self.total - self.pipeline


@contextmanager
def counted() -> Iterator[list[int]]:
    """Queries of this thread, and their bytes."""
    found = [0, 0]

    def count(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        found[0] += 1
        found[1] += len(sql) + sum(len(value) if isinstance(value, str | bytes) else 8 for value in params or ())
        return execute(sql, params, many, context)

    with connection.execute_wrapper(count):
        yield found


def measure_redis() -> tuple[int, int]:
    """Commands so far, and the bytes of them."""
    stats = notify.redis().info("stats")
    return stats["total_commands_processed"], stats["total_net_input_bytes"]


def measure_files() -> int:
    return sum(path.stat().st_size for path in Path(site.MEDIA_ROOT).rglob("*") if path.is_file())


def play_one(run: Run, plugins: list[float]) -> tuple[Round, bool]:
    from workers.jobs.run_round import execute_round

    claimed = lease.claim(run.pk)
    assert claimed
    seen, files, (commands, sent) = claimed.observation_count, measure_files(), measure_redis()
    plugins[:], began = [0.0, 0.0], now()
    with counted() as queries, lease.hold_lease(claimed) as lost:
        goes_on = execute_round(claimed, lost or Event())
    total, processor = since(began)
    pipeline, theirs = plugins
    later, bytes_sent = measure_redis()
    thumbnails.mark_made(wait=True)  # so that the next round has the machine for itself
    images = Run.objects.get(pk=run.pk).observation_count - seen
    traffic = (*queries, later - commands, bytes_sent - sent, measure_files() - files)
    return Round(images, total, pipeline, processor - theirs, *traffic), goes_on


@pytest.mark.bench
@pytest.mark.django_db(transaction=True)
def test_the_time_of_a_round_that_is_ours(owner: User, quick_laboratory, settings, tmp_path, redis_url) -> None:
    from tests.support.quick_laboratory import QUICK_IMAGES

    settings.STATE, settings.LAB_DATASET_IMAGES, settings.MEDIA_ROOT = quick_laboratory, QUICK_IMAGES, tmp_path
    place.build_laboratory.cache_clear()
    laboratory, plugins = place.laboratory(), [0.0, 0.0]
    for (kind, *key), verbs in PARTS.items():
        laboratory._loaded[kind, *key] = Timed(getattr(laboratory, kind)(*key), verbs, plugins)
    rounds: list[Round] = []
    for unit in UNITS:
        run, goes_on = make_run(owner, unit=unit, limits={"rounds": 25}), True
        while goes_on:
            played, goes_on = play_one(run, plugins)
            rounds.append(played)
    place.build_laboratory.cache_clear()
    report(rounds)
    report_encoders(list(Run.objects.get(pk=run.pk).observations.values_list("image_id", flat=True)[:100]))


class Draughtsman:
    """A backbone that has the same prompts drawn anew in each round, and never concludes."""

    label, price_known, sees = "draughtsman", True, False

    def reply(self, messages: Any, load: Any, emit: Any, seed: int) -> Reply:
        emit(DRAW)
        return Reply(DRAW)


@pytest.mark.bench
@pytest.mark.django_db(transaction=True)
def test_a_late_round_takes_no_longer_than_an_early_one(
    owner: User, quick_laboratory, settings, tmp_path, redis_url
) -> None:
    from tests.support.quick_laboratory import QUICK_IMAGES

    settings.STATE, settings.LAB_DATASET_IMAGES, settings.MEDIA_ROOT = quick_laboratory, QUICK_IMAGES, tmp_path
    place.build_laboratory.cache_clear()
    laboratory, plugins = place.laboratory(), [0.0, 0.0]
    for (kind, *key), verbs in PARTS.items():
        plugin = Draughtsman() if kind == "backbone" else getattr(laboratory, kind)(*key)
        laboratory._loaded[kind, *key] = Timed(plugin, verbs, plugins)
    early: list[Round] = []
    late: list[Round] = []
    for unit in UNITS[:LONG_RUNS]:
        run = make_run(owner, unit=unit, limits={"rounds": 40})
        played = [play_one(run, plugins)[0] for _ in range(max(LATE))]
        early += [played[number - 1] for number in EARLY]
        late += [played[number - 1] for number in LATE]
    place.build_laboratory.cache_clear()
    for name, rounds in ((f"rounds {EARLY}", early), (f"rounds {LATE}", late)):
        figures = [median(rounds, figure) * 1000 for figure in ("own", "processor", "total")]
        print(f"\n{name} of {LONG_RUNS} runs, {rounds[0].images} images each, medians: ", end="")
        print("own {:.0f} ms, own CPU {:.0f} ms, total {:.0f} ms".format(*figures), end=", ")
        print(f"{median(rounds, 'queries'):.0f} queries, {median(rounds, 'query_bytes'):,.0f} bytes of them")


def report(rounds: Sequence[Round]) -> None:
    """The figures; those of the processor hold on a busy machine too. The first round loads what it uses."""
    print(f"\nRounds of {len(UNITS)} runs on toybox layer4, sandbox, database and Redis included; medians")
    columns = ("images", "rounds", "total ms", "pipeline ms", "own ms", "own CPU ms", "own ms/image")
    print("".join(f"{name:>14}" for name in columns))
    for images in sorted({each.images for each in rounds}):
        some = [each for each in rounds if each.images == images]
        shares = [median(some, name) * 1000 for name in ("total", "pipeline", "own", "processor")]
        print(f"{images:14}{len(some):14}" + "".join(f"{each:14.1f}" for each in (*shares, shares[2] / max(images, 1))))
    with_images = [each for each in rounds if each.images]
    for name in ("own", "processor"):
        an_image = statistics.median(getattr(each, name) / each.images for each in with_images)
        print(f"{name}, an image: {an_image * 1000:.2f} ms")
    near = [each.own for each in with_images if abs(each.images - GOAL_IMAGES) < 10]
    if near:
        print(f"own, of rounds with about {GOAL_IMAGES} images: {statistics.median(near) * 1000:.0f} ms,", end=" ")
        print(f"goal {GOAL * 1000:.0f} ms, n = {len(near)}")
    for name in ("queries", "query_bytes", "commands", "redis_bytes", "file_bytes"):
        print(f"{name.replace('_', ' ')} of a round, median and most: {median(rounds, name):,.0f}", end=" ")
        print(f"{max(getattr(each, name) for each in rounds):,}")


def median(rounds: Sequence[Round], name: str) -> float:
    return statistics.median(getattr(each, name) for each in rounds)


def report_encoders(keys: Sequence[str]) -> None:
    """What encoding alone takes, ours and Pillow's, of the same images in this process."""
    images = [read_image(key) for key in keys]

    def by_pillow(level: int) -> Callable[[Any], None]:
        return lambda image: image.save(BytesIO(), "PNG", compress_level=level)

    for name, encode in (("ours", encode_png), ("Pillow, level 1", by_pillow(1)), ("Pillow, level 6", by_pillow(6))):
        began = time.thread_time()
        for image in images:
            encode(image)
        took = (time.thread_time() - began) / len(images) * 1000
        print(f"encoding an image, {name}: {took:.2f} ms of processor, n = {len(images)}")
