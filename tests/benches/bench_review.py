"""How long review takes with 100,000 reviews stored: saving a draft, submitting, and the pages around it.

On SQLite and on PostgreSQL; each database is seeded in a process of its own and asked in another, as
`python tests/benches/bench_review.py` does for the one that the environment names.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT
from tests.support.postgres import Cluster

REVIEWS = 100_000
GOAL_MS = 200
SEEN = 999_999_999
"""Whatever happens in the runs, it has been seen."""
SAVES, SUBMISSIONS, PAGES = 200, 100, 40
FULL = {"supported": 4, "specific": 3, "complete": 5, "confounds": 2, "samples": 1, "verdict": "revise"}

Times = dict[str, tuple[float, float, int]]
"""Milliseconds: the 95th percentile of the wall, that of the processor time of this process, and how many times."""


def measure() -> Times:
    """The times on the database that the environment names."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "maia_web.settings"
    import django

    django.setup()
    from django.contrib.auth.models import User
    from django.test import Client

    from experiments.models import Member, ReviewQueue

    user, _ = User.objects.get_or_create(username="bench")
    Member.objects.get_or_create(user=user, defaults={"role": 3})
    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(user)
    queue = ReviewQueue.objects.get(pk=ReviewQueue.objects.filter(items__complete=False).values("pk")[:1])
    return writing(client, f"/review/{queue.pk}/") | reading(client, f"/review/{queue.pk}/")


@dataclass
class Place:
    """The item under review, by its address, and the version of the draft."""

    address: str
    version: int = 1

    @property
    def queue(self) -> int:
        return int(self.address.split("/")[2])

    @property
    def position(self) -> int:
        return int(self.address.split("/")[4])


def writing(client: Any, queue: str) -> Times:
    """Saving drafts again and again, then submitting item after item."""
    from experiments.models import Review

    here = Place(client.get(f"{queue}next/")["Location"])
    here.version = Review.objects.get(item__queue=here.queue, item__position=here.position, state="draft").version

    def send(path: str, **fields: Any) -> Any:
        data = FULL | {"seq": SEEN, "version": here.version} | fields
        response = client.post(f"{here.address}{path}/", data, headers={"Accept": "application/json"})
        assert response.status_code == 200, response.content
        return response.json()

    def save() -> None:
        here.version = send("save", note=f"Word {here.version}.")["version"]

    def submit() -> None:
        after = send("submit")["next"]
        here.address, here.version = f"{queue}items/{after['position']}/", after["version"]

    return {"save a draft": timed(SAVES, save), "submit, and reserve the next": timed(SUBMISSIONS, submit)}


def reading(client: Any, queue: str) -> Times:
    """The pages, and the parts that focus mode asks for."""
    item = client.get(f"{queue}next/")["Location"]
    pages = {
        "focus mode": item,
        "the next item, beforehand": f"{item}ahead/",
        "the column with the queue": f"{item}line/",
        "one queue": queue,
        "the list of queues": "/review/",
        "the rail, and the pulse": "/pulse/",
    }

    def get(page: str) -> None:
        assert client.get(page).status_code == 200, page

    return {name: timed(PAGES, lambda page=page: get(page)) for name, page in pages.items()}


def timed(times: int, act: Callable[[], Any]) -> tuple[float, float, int]:
    """See `Times`; the first time is left out."""
    wall, cpu = [], []
    act()
    for _ in range(times - 1):
        began, used = time.perf_counter(), time.process_time()
        act()
        wall.append((time.perf_counter() - began) * 1000)
        cpu.append((time.process_time() - used) * 1000)
    return statistics.quantiles(wall, n=20)[-1], statistics.quantiles(cpu, n=20)[-1], times - 1


def process(*command: str, **environment: str) -> str:
    """What a command of this checkout prints, on the database of this environment."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("MAIA_")} | environment
    done = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=own | {"PYTHONPATH": str(ROOT)},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout


def figures(name: str, environment: dict[str, str]) -> None:
    seeding = ["-m", "tests.support.seeding"]
    for command in (
        ["manage.py", "migrate", "--verbosity", "0"],
        [*seeding, "observations", "2000"],
        [*seeding, "reviews", str(REVIEWS)],
    ):
        began = time.monotonic()
        process(*command, **environment)
        print(f"  {' '.join(command)}: {time.monotonic() - began:.0f} s", flush=True)
    print(f"\n{name}, {REVIEWS:,} reviews: 95th percentile of the server's time; goal {GOAL_MS} ms to save")
    print(f"{'':34}{'wall':>12}{'processor':>13}{'times':>8}")
    for what, (wall, cpu, times) in json.loads(process("tests/benches/bench_review.py", **environment)).items():
        print(f"{what:34}{wall:9.1f} ms{cpu:10.1f} ms{times:8}{' *' if wall > GOAL_MS else ''}")


@pytest.mark.bench
def test_reviewing_on_sqlite(tmp_path: Path) -> None:
    figures("SQLite", {"MAIA_STATE": str(tmp_path)})


@pytest.mark.bench
def test_reviewing_on_postgresql(tmp_path: Path, postgres: Cluster) -> None:
    figures("PostgreSQL", {"MAIA_STATE": str(tmp_path), "MAIA_DATABASE_URL": postgres.url("postgres")})


if __name__ == "__main__":
    print(json.dumps(measure()))
