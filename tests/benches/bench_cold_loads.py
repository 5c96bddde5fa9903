"""What a person waits for who opens a page for the first time: in Chromium, its cache empty, one page at a time.

BENCH_STATE names a state folder that is there, rather than one seeded for the bench; BENCH_CODE where the code to be
measured lies, so that two versions of it may be measured one after the other.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, CDPSession

from tests import ROOT
from tests.support.browser import needs_chromium, open_browser
from tests.support.installation import free_port
from tests.support.redis_server import redis_binary

SIZE, REPEATS = 20_000, 3
GOAL_BYTES, GOAL_MS = 150_000, 1_000
"""Of the page of a run of six rounds."""
PAGES = {
    "overview": "/",
    "new run": "/query/?model={model}&layer={layer}&unit={unit}",
    "runs": "/runs/",
    "run": "/runs/{run}/",
    "run, images": "/runs/{run}/?tab=images",
    "run, activations": "/runs/{run}/?tab=activations",
    "gallery": "/experiments/",
    "experiments": "/experiments/?view=list",
    "image": "/images/{image}/",
    "units": "/units/",
    "model": "/units/{model}/",
    "layer": "/units/{model}/{layer}/",
    "unit": "/units/{model}/{layer}/{unit}/",
    "compare": "/compare/?{runs}",
    "search": "/search/?q=red",
    "review": "/review/",
    "review, an item": "/review/{queue}/items/1/",
    "review, agreement": "/review/{queue}/agreement/",
    "evaluations": "/evaluations/",
    "settings": "/settings/models/",
    "api": "/api/v1/docs",
}
PLACES = """
import json
from importlib import import_module
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.db.models import Q
from experiments.models import Image, Member, ReviewQueue, Run
user, _ = User.objects.get_or_create(username="bench")
Member.objects.get_or_create(user=user, defaults={"role": 4})
session = import_module(settings.SESSION_ENGINE).SessionStore()
session[SESSION_KEY], session[BACKEND_SESSION_KEY] = str(user.pk), settings.AUTHENTICATION_BACKENDS[0]
session[HASH_SESSION_KEY] = user.get_session_auth_hash()
session.save()
runs = Run.objects.filter(status="concluded", model="toybox").exclude(observation_count=0)
run = runs.filter(rounds__gte=6).order_by("rounds", "pk").first() or runs.order_by("pk").first()
more = Run.objects.filter(status="concluded", model=run.model).order_by("-pk").values_list("pk", flat=True)[:3]
queue, image = ReviewQueue.objects.first(), Image.objects.filter(raw="").order_by("key").first()
print(json.dumps({"session": session.session_key, "run": run.pk, "rounds": run.rounds, "model": run.model,
    "layer": run.layer, "unit": run.unit, "image": image.key if image else "",
    "queue": queue.pk if queue else 0, "runs": "&".join(f"run={pk}" for pk in more)}))
"""


@dataclass
class Loads:
    """Milliseconds, bytes as they came over the wire, and requests of one page, load by load."""

    first_byte: list[float] = field(default_factory=list)
    first_paint: list[float] = field(default_factory=list)
    content_loaded: list[float] = field(default_factory=list)
    size: list[int] = field(default_factory=list)
    requests: list[int] = field(default_factory=list)
    html: list[int] = field(default_factory=list)
    """Bytes of the page itself, unpacked."""
    kinds: list[Counter[str]] = field(default_factory=list)
    """Bytes by what they were: document, image, script and so on."""
    places: dict[str, Any] = field(default_factory=dict)
    """What the address was made of."""


TIMES = """() => {
  const [way] = performance.getEntriesByType("navigation");
  const paint = performance.getEntriesByName("first-contentful-paint")[0];
  return [way.responseStart, paint ? paint.startTime : 0, way.domContentLoadedEventEnd, way.decodedBodySize];
}"""


@contextmanager
def site(state: Path, code: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The web server of an installation, with a Redis of its own: its address, and what stands in those of pages."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("MAIA_")}
    with tempfile.TemporaryDirectory(prefix="maia-") as folder:
        socket, port = f"{folder}/redis.sock", free_port()
        environment = own | {"MAIA_STATE": str(state), "MAIA_REDIS_URL": f"unix://{socket}", "PYTHONPATH": str(code)}
        python = [sys.executable, "-W", "ignore"]
        subprocess.run([*python, "manage.py", "migrate", "-v0"], cwd=code, env=environment, check=True)
        asked = subprocess.run(
            [*python, "manage.py", "shell", "-v0", "-c", PLACES],
            cwd=code,
            env=environment,
            check=True,
            stdout=subprocess.PIPE,
        )
        redis = [redis_binary(), "--port", "0", "--unixsocket", socket, "--save", "", "--dir", folder]
        web = [*python, "-m", "uvicorn", "maia_web.asgi:application", "--port", str(port), "--lifespan", "off"]
        quiet = ["--log-level", "error", "--no-proxy-headers"]
        with (
            subprocess.Popen(redis, stdout=subprocess.DEVNULL) as store,
            subprocess.Popen([*web, *quiet], cwd=code, env=environment) as server,
        ):
            try:
                url = f"http://127.0.0.1:{port}"
                _until_it_answers(f"{url}/sign-in/")
                yield url, json.loads(asked.stdout.splitlines()[-1])
            finally:
                server.terminate()
                store.terminate()


def _until_it_answers(url: str) -> None:
    end = time.monotonic() + 60
    while True:
        try:
            urlopen(url).close()
            return
        except URLError:
            assert time.monotonic() < end, "the web server does not answer"
            time.sleep(0.1)


def measure(state: Path, code: Path) -> dict[str, Loads]:
    """The loads of every page; each was asked for once before, so that the server is warm and the browser is not."""
    found: dict[str, Loads] = {}
    with site(state, code) as (url, places), open_browser() as browser:
        for name, address in PAGES.items():
            found[name] = Loads(places=places)
            for turn in range(REPEATS + 1):
                load = _opened(browser, url, address.format(**places), places["session"])
                if turn:
                    _keep(found[name], load)
    return found


def _keep(loads: Loads, load: tuple[list[float], Counter[str], int]) -> None:
    (first_byte, paint, content, html), kinds, requests = load
    loads.first_byte.append(first_byte)
    loads.first_paint.append(paint)
    loads.content_loaded.append(content)
    loads.html.append(int(html))
    loads.kinds.append(kinds)
    loads.size.append(kinds.total())
    loads.requests.append(requests)


def _opened(browser: Browser, url: str, path: str, session: str) -> tuple[list[float], Counter[str], int]:
    """One load in a fresh context: its times, its bytes by kind and its requests until nothing more comes."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.add_cookies([{"name": "sessionid", "value": session, "url": url}])
    page = context.new_page()
    wire = context.new_cdp_session(page)
    came = _counted(wire)
    answer = page.goto(url + path, wait_until="networkidle")
    assert answer, path
    if answer.status != 200:
        print(f"  {path}: {answer.status}", file=sys.stderr)
    times: list[float] = page.evaluate(TIMES)
    context.close()
    kinds: Counter[str] = Counter()
    for kind, size in came:
        kinds[kind] += size
    return times, kinds, len(came)


def _counted(wire: CDPSession) -> list[tuple[str, int]]:
    """Grows with every answer: what it is, and the bytes of its head and its body as they came."""
    came: list[tuple[str, int]] = []
    kinds: dict[str, str] = {}
    wire.send("Network.enable")
    wire.send("Network.setCacheDisabled", {"cacheDisabled": True})
    wire.on("Network.responseReceived", lambda event: kinds.update({event["requestId"]: event["type"]}))
    wire.on(
        "Network.loadingFinished",
        lambda event: came.append((kinds.get(event["requestId"], "Other"), int(event["encodedDataLength"]))),
    )
    return came


def table(found: dict[str, Loads]) -> None:
    print(f"\nCold loads in Chromium, medians of {REPEATS}: ms to first byte, first paint, DOMContentLoaded")
    print(f"{'page':24}{'byte':>8}{'paint':>8}{'DCL':>8}{'kB':>9}{'requests':>10}{'HTML, kB':>10}")
    for name, each in found.items():
        times = (each.first_byte, each.first_paint, each.content_loaded)
        shown = "".join(f"{statistics.median(values):8.0f}" for values in times)
        size, html = statistics.median(each.size) / 1000, statistics.median(each.html) / 1000
        print(f"{name:24}{shown}{size:9.1f}{statistics.median(each.requests):10.0f}{html:10.0f}")


def goal(run: Loads) -> None:
    """What was asked of the page of a run, beside what it takes."""
    kinds = ", ".join(f"{kind.lower()} {size / 1000:.1f}" for kind, size in run.kinds[-1].most_common())
    print(f"\nA run of {run.places['rounds']} rounds, n = {REPEATS}, load average {os.getloadavg()[0]:.1f}")
    print(f"  {statistics.median(run.size) / 1000:.1f} kB, where {GOAL_BYTES / 1000:.0f} were asked: {kinds}")
    print(f"  {statistics.median(run.requests):.0f} requests")
    print(f"  DOMContentLoaded after {statistics.median(run.content_loaded):.0f} ms, where {GOAL_MS} were asked")


@pytest.mark.bench
@needs_chromium
def test_cold_loads(tmp_path: Path) -> None:
    state, code = (os.environ.get(name, "") for name in ("BENCH_STATE", "BENCH_CODE"))
    found = measure(Path(state) if state else _seeded(tmp_path), Path(code or ROOT))
    table(found)
    goal(found["run"])


def _seeded(state: Path) -> Path:
    environment = {**os.environ, "MAIA_STATE": str(state)}
    for words in (
        ["manage.py", "migrate", "-v0"],
        ["-m", "tests.support.seeding", "observations", str(SIZE)],
        ["-m", "tests.support.seeding", "reviews", "300"],
    ):
        command = [sys.executable, "-W", "ignore", *words]
        subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
    return state
