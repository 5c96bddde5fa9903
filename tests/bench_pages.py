"""Server time of the pages that lists of any length stand behind, at 10,000 and at 1,000,000 observations.

Each size on SQLite and on PostgreSQL; each database is seeded in a process of its own and asked in another, as
`python tests/bench_pages.py` does for the one that the environment names.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.test_postgres import postgres  # noqa: F401 - a fixture

ROOT = Path(__file__).resolve().parent.parent
SIZES = (10_000, 1_000_000)
GOAL_MS, GOAL_RATIO = 100, 1.5
REPEATS = 40
DEEP = 1_000

PAGES = {
    "runs list": "/runs/",
    "gallery, page 1": "/experiments/",
    "gallery, deep page": "/experiments/?page={deep}",
    "gallery, strongest, deep page": "/experiments/?sort=strongest&page={deep}",
    "gallery, edits by drop": "/experiments/?origin=edited&sort=drop",
    "gallery, one model, strongest": "/experiments/?model=toybox&sort=strongest",
    "gallery, one unit": "/experiments/?model=toybox&layer=layer1&unit=0",
    "gallery, rare range, newest": "/experiments/?low=70",
    "gallery, common word": "/experiments/?q=red",
    "experiments, page 1": "/experiments/?view=list",
    "experiments, deep page": "/experiments/?view=list&page={deep_list}",
    "unit page": "{unit}",
    "image page": "{image}",
    "search, rare word": "/search/?q=okapi",
    "search, common word": "/search/?q=red",
}


Times = dict[str, tuple[float, float, float]]
"""Milliseconds of each page: the first time, the 95th percentile of those that follow, and that of the processor time
of this process, which other work on the machine does not change so much."""


def measure() -> Times:
    """The times of each page on the database that the environment names."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "maia_web.settings"
    import django

    django.setup()
    from django.contrib.auth.models import User
    from django.test import Client
    from django.urls import NoReverseMatch, reverse

    from experiments.models import Image, Member, Observation, Unit

    user, _ = User.objects.get_or_create(username="bench")
    Member.objects.get_or_create(user=user, defaults={"role": 4})
    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(user)
    count = Observation.objects.count()
    unit = Unit.objects.filter(layer__model__name="toybox", layer__name="layer1", number=0).get()
    try:
        unit_page = reverse("unit", args=[unit.layer.model.name, unit.layer.name, unit.number])
    except NoReverseMatch:
        unit_page = "/none/"
    image = Image.objects.filter(raw="").order_by("key").first()
    known = {
        "deep": min(DEEP, count // 48),
        "deep_list": min(DEEP, count // 10 // 20),
        "unit": unit_page,
        "image": f"/images/{image.key}/" if image else "",
    }
    return {name: timed(client, page.format(**known)) for name, page in PAGES.items()}


def timed(client: Any, page: str) -> tuple[float, float, float]:
    """See `Times`; -1 for a page that is not there."""
    times, spent = [], []
    for _ in range(REPEATS + 1):
        began, used = time.perf_counter(), time.process_time()
        response = client.get(page)
        times.append((time.perf_counter() - began) * 1000)
        spent.append((time.process_time() - used) * 1000)
        if response.status_code == 404:
            return -1.0, -1.0, -1.0
        assert response.status_code == 200, (page, response.status_code)
    return times[0], percentile(times[1:]), percentile(spent[1:])


def percentile(times: list[float]) -> float:
    return sorted(times)[int(len(times) * 0.95) - 1]


def process(*command: str, **environment: str) -> str:
    own = {name: value for name, value in os.environ.items() if not name.startswith("MAIA_")} | environment
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=own | {"PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def figures(environment: dict[str, str], size: int) -> Times:
    process("manage.py", "migrate", "--verbosity", "0", **environment)
    began = time.monotonic()
    process("manage.py", "seed_observations", str(size), **environment)
    print(f"  {size:,} observations seeded in {time.monotonic() - began:.0f} s", flush=True)
    return json.loads(process("tests/bench_pages.py", **environment))


def table(name: str, small: Times, large: Times) -> None:
    print(f"\n{name}: 95th percentile of the server's time; goal {GOAL_MS} ms and a ratio of {GOAL_RATIO}")
    print(f"{'page':34}{SIZES[0]:>12,}{SIZES[1]:>12,}{'ratio':>8}{'processor':>12}{'ratio':>8}{'first':>10}")
    for page, (_, before, before_cpu) in small.items():
        first, after, cpu = large[page]
        if after < 0:
            continue
        missed = " *" if after > GOAL_MS or after > before * GOAL_RATIO else ""
        wall = f"{before:9.1f} ms{after:9.1f} ms{after / before:8.2f}"
        print(f"{page:34}{wall}{cpu:9.1f} ms{cpu / before_cpu:8.2f}{first:7.0f} ms{missed}")


@pytest.mark.bench
def test_pages_on_sqlite(tmp_path: Path) -> None:
    found = [figures({"MAIA_STATE": str(tmp_path / str(size))}, size) for size in SIZES]
    table("SQLite", *found)


@pytest.mark.bench
def test_pages_on_postgresql(tmp_path: Path, postgres: str) -> None:  # noqa: F811 - the fixture
    import psycopg

    found = []
    for size in SIZES:
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE seeded_{size}")
        address = postgres.rpartition("/")[0] + f"/seeded_{size}"
        found.append(figures({"MAIA_STATE": str(tmp_path / str(size)), "MAIA_DATABASE_URL": address}, size))
    table("PostgreSQL", *found)


if __name__ == "__main__":
    print(json.dumps(measure()))
