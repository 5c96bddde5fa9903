"""Server time of the pages that lists of any length stand behind, at 10,000 and at 1,000,000 observations.

Each size on SQLite and on PostgreSQL. Every database is seeded and asked in a process of its own, and both sizes take
turns, page by page: what else the machine does slows both alike.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pytest

from tests import ROOT
from tests.support.postgres import Cluster

SIZES = (10_000, 1_000_000)
GOAL_MS, GOAL_RATIO = 100, 1.5
REPEATS = 40
DEEP = 1_000

PAGES = {
    "runs list": "/runs/",
    "runs list, deep page": "/runs/?page={deep_runs}",
    "gallery, page 1": "/experiments/",
    "gallery, deep page": "/experiments/?page={deep}",
    "gallery, strongest, deep page": "/experiments/?sort=strongest&page={deep}",
    "gallery, edits by drop": "/experiments/?origin=edited&sort=drop",
    "gallery, one model, strongest": "/experiments/?model=toybox&sort=strongest",
    "gallery, one model, deep page": "/experiments/?model=toybox&page={deep_model}",
    "gallery, one unit": "/experiments/?model=toybox&layer=layer1&unit=0",
    "gallery, rare range, newest": "/experiments/?low={rare}",
    "gallery, common word": "/experiments/?q=red",
    "experiments, page 1": "/experiments/?view=list",
    "experiments, deep page": "/experiments/?view=list&page={deep_list}",
    "unit page": "/units/toybox/layer1/0/",
    "image page": "/images/{image}/",
    "search, rare word": "/search/?q=okapi",
    "search, common word": "/search/?q=red",
}


@dataclass
class Times:
    """Milliseconds of one page. `spent` is the processor's time, which other work on the machine changes less: that of
    the web process and, on PostgreSQL, of the server's process for its connection, which `database` holds alone."""

    wall: list[float] = field(default_factory=list)
    spent: list[float] = field(default_factory=list)
    database: list[float] = field(default_factory=list)


def serve() -> None:
    """Ask the pages that the standard input names, a line each, and print the times of each as JSON."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "maia_web.settings"
    import django

    django.setup()
    from django.contrib.auth.models import User
    from django.test import Client

    from experiments.models import Member

    user, _ = User.objects.get_or_create(username="bench")
    Member.objects.get_or_create(user=user, defaults={"role": 4})
    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(user)
    known = places()
    for line in sys.stdin:
        address = line.strip().format(**known)
        print(json.dumps(ask(client, address)), flush=True)


def places() -> dict[str, Any]:
    """What stands in the addresses of pages."""
    from experiments.models import Image, Observation, Run

    count, runs = Observation.objects.count(), Run.objects.count()
    of_toybox = sum(Run.objects.filter(model="toybox").values_list("observation_count", flat=True))
    strongest = Observation.objects.order_by("-activation").values_list("activation", flat=True)
    image = Image.objects.filter(raw="").order_by("key").first()
    return {
        "deep": min(DEEP, count // 48),
        "deep_model": min(DEEP, of_toybox // 48),
        "deep_runs": runs // 50,
        "deep_list": min(DEEP, count // 10 // 20),
        "rare": strongest[100],
        "image": image.key if image else "",
    }


def ask(client: Any, address: str) -> tuple[float, float, float]:
    """Wall, processor and database's processor time of one request, in milliseconds."""
    began, used, used_there = time.perf_counter(), time.process_time(), database_time()
    response = client.get(address)
    wall, spent = time.perf_counter() - began, time.process_time() - used
    assert response.status_code == 200, (address, response.status_code)
    there = database_time() - used_there
    return wall * 1000, (spent + there) * 1000, there * 1000


def database_time() -> float:
    """Seconds of processor time that PostgreSQL's process for this connection has used; 0 on SQLite."""
    from django.db import connection

    if connection.vendor != "postgresql":
        return 0.0
    connection.ensure_connection()
    process = connection.connection.info.backend_pid
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9


@contextmanager
def server(environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A process that serves pages of the database that the environment names."""
    command = [sys.executable, "-W", "ignore", "tests/benches/bench_pages.py"]
    with subprocess.Popen(
        command, cwd=ROOT, env=surroundings(environment), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        pipe(process.stdin).close()


def pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def asked(process: subprocess.Popen[str], address: str) -> tuple[float, float, float]:
    print(address, file=pipe(process.stdin), flush=True)
    wall, spent, database = json.loads(pipe(process.stdout).readline())
    return wall, spent, database


def surroundings(environment: dict[str, str]) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("MAIA_")}
    return own | environment | {"PYTHONPATH": str(ROOT)}


def seeded(environment: dict[str, str], size: int) -> dict[str, str]:
    """The environment, once its database is filled."""
    for command in (
        ["manage.py", "migrate", "--verbosity", "0"],
        ["-m", "tests.support.seeding", "observations", str(size)],
    ):
        began = time.monotonic()
        done = [sys.executable, "-W", "ignore", *command]
        subprocess.run(done, cwd=ROOT, env=surroundings(environment), check=True, capture_output=True)
    print(f"  {size:,} observations seeded in {time.monotonic() - began:.0f} s", flush=True)
    return environment


def measure(small: dict[str, str], large: dict[str, str]) -> dict[str, tuple[Times, Times]]:
    """The times of every page on both; the first request of each is left out."""
    found: dict[str, tuple[Times, Times]] = {}
    with server(small) as few, server(large) as many:
        for name, address in PAGES.items():
            found[name] = both = (Times(), Times())
            for turn in range(REPEATS + 1):
                for process, times in zip((few, many), both, strict=True):
                    wall, spent, database = asked(process, address)
                    if turn:
                        times.wall.append(wall)
                        times.spent.append(spent)
                        times.database.append(database)
    return found


def high(times: list[float]) -> float:
    """The 95th percentile."""
    return sorted(times)[int(len(times) * 0.95) - 1]


def table(name: str, found: dict[str, tuple[Times, Times]]) -> None:
    few, many = (f"{size:,}" for size in SIZES)
    print(f"\n{name}: milliseconds at {few} and at {many} observations; goal {GOAL_MS} ms and a ratio of {GOAL_RATIO}")
    heads = ("processor, 95th percentile", "its median", "database", "wall, median")
    print(f"{'page':32}{heads[0]:>29}{heads[1]:>26}{heads[2]:>18}{heads[3]:>18}")
    for page, (small, large) in found.items():
        halves = [(getattr(small, name), getattr(large, name)) for name in ("spent", "database", "wall")]
        pairs = [(high(small.spent), high(large.spent))]
        pairs += [(statistics.median(before), statistics.median(after)) for before, after in halves]
        missed = " *" if pairs[0][1] > GOAL_MS or pairs[0][1] > pairs[0][0] * GOAL_RATIO else "  "
        first, second, third, fourth = (f"{before:9.1f}{after:9.1f}" for before, after in pairs)
        ratios = [f"{after / before:7.2f}x" for before, after in pairs[:2]]
        print(f"{page:32}{first}{ratios[0]}{missed}{second}{ratios[1]}{third}{fourth}")


@pytest.mark.bench
def test_pages_on_sqlite(tmp_path: Path) -> None:
    small, large = (seeded({"MAIA_STATE": str(tmp_path / str(size))}, size) for size in SIZES)
    table("SQLite", measure(small, large))


@pytest.mark.bench
def test_pages_on_postgresql(tmp_path: Path, postgres: Cluster) -> None:
    found = []
    for size in SIZES:
        address = postgres.create(f"seeded_{size}")
        found.append(seeded({"MAIA_STATE": str(tmp_path / str(size)), "MAIA_DATABASE_URL": address}, size))
    table("PostgreSQL", measure(*found))


if __name__ == "__main__":
    serve()
