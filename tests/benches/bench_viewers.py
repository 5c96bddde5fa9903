"""Many browsers on one run, and on many runs at once: how late words come, what the web spends, what is lost."""

from __future__ import annotations

import asyncio
import json
import re
import statistics
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener

import psutil
import pytest
from channels_redis.core import RedisChannelLayer
from websockets.asyncio.client import connect
from websockets.typing import Origin

from tests.support.installation import Installation, installed

Times = dict[tuple[int, str], float]
"""Words and where in the draft they begin, with the moment at which they came by the clock of the machine."""
SECONDS = 25.0
ASK = """
from django.contrib.auth.models import User
from experiments.core import queue
from experiments.models import Run
for unit in range({count}):
    run = Run.objects.create(owner=User.objects.get(), question="What?", task="describe", model="toybox",
        layer="layer4", unit=unit, backbone="scripted", limits={{"rounds": 12}})
    queue.enqueue(run.pk)
    print(run.pk)
"""


@dataclass
class Watching:
    """What one browser got: the sequence numbers of its events, and when it got which words."""

    run: int
    seqs: list[int] = field(default_factory=list)
    words: Times = field(default_factory=dict)

    async def watch(self, port: int, cookie: str, until: float) -> None:
        address, headers = f"ws://127.0.0.1:{port}/ws/runs/{self.run}/?after=0", {"Cookie": cookie}
        origin = Origin(f"http://127.0.0.1:{port}")
        async with connect(address, origin=origin, additional_headers=headers, max_size=None) as socket:
            while (left := until - time.monotonic()) > 0:
                try:
                    message = json.loads(await asyncio.wait_for(socket.recv(), left))
                except TimeoutError:
                    return
                if message["type"] == "event":
                    self.seqs.append(message["seq"])
                elif message["type"] == "draft":
                    self.words[message["offset"], message["text"]] = time.monotonic()


def watch_all(runs: list[int], port: int, cookie: str, until: float) -> list[Watching]:
    """A browser on each of these, which may be the same; in a process of their own."""

    async def together() -> list[Watching]:
        watching = [Watching(run) for run in runs]
        await asyncio.gather(*(each.watch(port, cookie, until) for each in watching))
        return watching

    return asyncio.run(together())


def read_words(address: str, groups: dict[int, str], until: float) -> dict[int, Times]:
    """When the words of each run, sent to these channel groups, came out of Redis, for a process that does nothing
    else."""

    async def together() -> dict[int, Times]:
        read = await asyncio.gather(*(_read_words(address, group, until) for group in groups.values()))
        return dict(zip(groups, read, strict=True))

    return asyncio.run(together())


async def _read_words(address: str, group: str, until: float) -> Times:
    layer = RedisChannelLayer(hosts=[{"address": address, "socket_timeout": 8}])
    channel = await layer.new_channel()
    await layer.group_add(group, channel)
    seen: Times = {}
    while (left := until - time.monotonic()) > 0:
        try:
            message = await asyncio.wait_for(layer.receive(channel), left)
        except TimeoutError:
            break
        if message["type"] == "run.draft":
            seen[message["offset"], message["text"]] = time.monotonic()
    await layer.close_pools()
    return seen


def measure(site: Installation, cookie: str, count: int, each: int) -> None:
    runs = [int(line) for line in site.manage("shell", "-v0", "-c", ASK.format(count=count)).split()]
    web = site.child("uvicorn")
    before, began = cpu(web), time.monotonic()
    ended = f"{datetime.now(UTC) + timedelta(seconds=SECONDS - 3):%Y-%m-%d %H:%M:%S}"
    watching, times = watch_and_read(site, cookie, runs, each)
    spent = (cpu(web) - before) / (time.monotonic() - began)
    late = sorted(
        when - times[one.run][words]
        for one in watching
        for words, when in one.words.items()
        if words in times.get(one.run, {})
    )
    middle, most = statistics.median(late) * 1000, late[int(len(late) * 0.95)] * 1000
    print(
        f"{count:4} runs x {each:3} browsers{len(late):9,} words{middle:8.0f} ms{most:8.0f} ms"
        f"{count_skipped(watching, times):9}{spent * 100:8.0f} %{spent * 100 / (count * each):8.2f} %"
        f"{count_lost(site, watching, ended):6}"
    )


def watch_and_read(
    site: Installation, cookie: str, runs: list[int], each: int
) -> tuple[list[Watching], dict[int, Times]]:
    """So many browsers on each of the runs, in two processes; in a third what came out of Redis of the first few."""
    from experiments.core import notify  # which the other processes, without Django, do not load

    until = time.monotonic() + SECONDS
    groups = {run: notify.group(run) for run in runs[:5]}
    address = f"unix://{(site.state / 'redis' / 'redis.sock').resolve()}"
    browsers = runs * each
    with ProcessPoolExecutor(3, get_context("spawn")) as processes:
        read = processes.submit(read_words, address, groups, until)
        halves = [processes.submit(watch_all, browsers[half::2], site.port, cookie, until) for half in range(2)]
        return [one for half in halves for one in half.result()], read.result()


def count_skipped(watching: list[Watching], times: dict[int, Times]) -> int:
    """Words that a browser was there for and did not get by themselves: they came with the whole draft, a bit later."""
    skipped = 0
    for one in watching:
        if one.words and one.run in times:
            first, last = min(one.words.values()), max(one.words.values())
            due = {words for words, when in times[one.run].items() if first < when < last and words[1]}
            skipped += len(due - one.words.keys())
    return skipped


def sign_in(site: Installation) -> str:
    """The cookie of a browser that followed the one-time link."""
    jar = HTTPCookieProcessor()
    opener = build_opener(jar)
    address = site.link()
    page = opener.open(address).read().decode()
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    assert token
    data = urlencode({"csrfmiddlewaretoken": token[1]}).encode()
    opener.open(Request(address, data, {"Referer": address})).read()
    return "; ".join(f"{each.name}={each.value}" for each in jar.cookiejar)


def cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def count_lost(site: Installation, watching: list[Watching], until: str) -> int:
    """Browsers that missed an event recorded before `until`, or got one twice or out of order. The start of an
    experiment whose result came as soon is not sent."""
    due: dict[int, set[int]] = defaultdict(set)
    query = "SELECT run_id, seq FROM experiments_event WHERE kind <> 'experiment' AND time < ?"
    for run, seq in site.rows(query, until):
        due[run].add(seq)
    return sum(each.seqs != sorted(set(each.seqs)) or bool(due[each.run] - set(each.seqs)) for each in watching)


@pytest.mark.bench
def test_many_browsers(quick_state: Path) -> None:
    print(f"\nBrowsers that watch for {SECONDS:.0f} s; words of the scripted scientist at 60 a second")
    head = f"{'':32}{'':0}{'median':>14}{'p95':>11}{'skipped':>9}{'web':>10}{'each':>10}{'lost':>6}"
    print(head)
    with installed(quick_state, "--no-example", MAIA_WORDS_PER_SECOND="60", MAIA_WORKER_THREADS="4") as site:
        cookie = sign_in(site)
        measure(site, cookie, 1, 4)
        measure(site, cookie, 1, 200)
        measure(site, cookie, 50, 4)
