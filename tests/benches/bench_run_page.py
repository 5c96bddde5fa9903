"""What a run of 10,000 events costs to open: on the server, tab by tab, on SQLite and PostgreSQL; in a real browser."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Page

from tests import ROOT
from tests.support.browser import needs_chromium, open_page
from tests.support.long_run import long_run

ROUNDS, ORDINARY = 3_333, 25
"""Rounds of a run of 10,001 events, and of an ordinary one."""
TIMES = 9
GOAL = 2_000
"""Milliseconds in which a run of 10,000 events is open."""
PAGES = {
    "transcript": "",
    "transcript, an event amid it": "?at=5000",
    "transcript, round 1,700": "?round=1700",
    "experiments": "?tab=experiments",
    "images": "?tab=images",
    "images, page 200": "?tab=images&page=200",
    "images, strongest first": "?tab=images&order=strongest",
    "activations": "?tab=activations",
    "hypotheses": "?tab=hypotheses",
    "cost": "?tab=cost",
    "raw": "?tab=raw&at=5000",
    "filling a gap": "events/?after=40&before=9900&from=below",
}
FRAMES = """async () => {
  const took = [];
  let before = performance.now();
  for (let frame = 0; frame < 240; frame += 1) {
    scrollBy({ top: 120, behavior: "instant" });
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    took.push(now - before);
    before = now;
  }
  return took;
}"""
"""Scrolls 29,000 pixels, 120 a frame; milliseconds of each frame."""


@pytest.mark.bench
@pytest.mark.parametrize("kind", ["SQLite", "PostgreSQL"])
def test_how_long_the_server_takes(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    address = f"sqlite:///{tmp_path}/run.sqlite3"
    if kind == "PostgreSQL":
        address = request.getfixturevalue("postgres").url("postgres")
    environment = {**os.environ, "MAIA_DATABASE_URL": address, "MAIA_STATE": str(tmp_path)}
    environment |= {"DJANGO_SETTINGS_MODULE": "maia_web.settings", "PYTHONPATH": str(ROOT)}
    code = "import django; django.setup(); from tests.benches.bench_run_page import main; main()"
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    print(f"\nA run of 10,001 events on {kind}: median of {TIMES}, beside a run of {ORDINARY} rounds")
    for name, (milliseconds, kilobytes, queries, ordinary) in json.loads(done.stdout.splitlines()[-1]).items():
        beside = f"{ordinary:8.0f} ms" if ordinary else ""
        print(f"{name:34}{milliseconds:8.0f} ms{kilobytes:8.0f} kB{queries:6} queries{beside}")


def main() -> None:
    """Fill the database of the environment and measure; the figures are printed as JSON."""
    from django.core.management import call_command
    from django.db import connection

    from tests.support.people import member

    call_command("migrate", verbosity=0)
    owner = member("owner", "RESEARCHER")
    runs = [long_run(owner, ROUNDS).pk, long_run(owner, ORDINARY).pk]
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")
    settings.ALLOWED_HOSTS = ["testserver"]
    client = Client()
    client.force_login(owner)
    print(json.dumps({name: figures(client, runs, rest) for name, rest in PAGES.items()}))


def figures(client: Client, runs: list[int], rest: str) -> tuple[float, float, int, float]:
    """Milliseconds, kilobytes and queries of a page of the long run; milliseconds of the ordinary one's."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    long, ordinary = (f"/runs/{pk}/{rest}" for pk in runs)
    with CaptureQueriesContext(connection) as queries:
        size = len(client.get(long).content)
    asked = len(queries)
    beside = 0.0 if rest.startswith("events/") else median(client, ordinary)
    return median(client, long), size / 1024, asked, beside


def median(client: Client, address: str) -> float:
    took = []
    for _ in range(TIMES):
        began = time.perf_counter()
        assert client.get(address).status_code == 200
        took.append(1000 * (time.perf_counter() - began))
    return statistics.median(took)


@pytest.mark.bench
@pytest.mark.django_db(transaction=True)
@needs_chromium
def test_how_long_a_person_waits(live_server: Any, client: Client, owner: User) -> None:
    run = long_run(owner, ROUNDS)
    client.force_login(owner)
    address = f"{live_server.url}{run.get_absolute_url()}"
    with open_page(live_server.url, client) as page:
        page.goto(address)
        print(f"\nA run of {run.last_seq:,} events in a real browser; goal {GOAL} ms")
        for name, rest in {"its beginning": "", "an event amid it": "?at=5000#e5000", "its end": "#end"}.items():
            print(f"{name:34}{opened(page, address + rest):8.0f} ms to DOMContentLoaded")
        frames = sorted(page_frames(page, address))
        late = sum(frame > 50 for frame in frames)
        print(f"{'scrolling, a frame':34}{statistics.median(frames):8.0f} ms, {late} of {len(frames)} over 50 ms")
        print(f"{'events drawn after it':34}{page.locator('#events > .event').count():8}")


def opened(page: Page, address: str) -> float:
    """The median of the milliseconds from asking for the page to its being there."""
    took = []
    for _ in range(5):
        page.goto("about:blank")
        page.goto(address)
        took.append(page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"))
    return statistics.median(took)


def page_frames(page: Page, address: str) -> list[float]:
    page.goto(address)
    found = page.evaluate(FRAMES)
    assert isinstance(found, list)
    return found
