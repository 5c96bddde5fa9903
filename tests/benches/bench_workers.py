"""A sweep of 40 toybox units by one worker and by two, each on a core of its own with one thread for its arithmetic."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import psutil
import pytest

from tests.support.installation import Installation, installed

UNITS = 40


def play(site: Installation, workers: int) -> tuple[float, float]:
    """Seconds from the first round to the last, and the share of the machine that others took meanwhile."""
    site.link()
    names = ["worker@"] if workers == 1 else [f"worker-{place + 1}@" for place in range(workers)]
    time.sleep(5)  # PyTorch is loaded, and the threads are there
    for core, name in enumerate(names):
        pin(site.child("celery", "worker", name), core)
    site.until(lambda: len(site.rows("SELECT 1 FROM experiments_layer")) > 0, "no layer is known", 90)
    chosen = ["--layers", "layer4", "--sample", str(UNITS), "--seed", "3", "--json"]
    machine, ours = busy(), spent(site)
    sweep = json.loads(site.manage("sweep", "start", *chosen))["sweep"]
    query = "SELECT 1 FROM experiments_sweep WHERE id = ? AND status = 'done'"
    site.until(lambda: site.rows(query, sweep), "the sweep did not end", 900)
    others = (busy() - machine) - (spent(site) - ours)
    times = "SELECT (julianday(max(ended)) - julianday(min(started))) * 86400 FROM experiments_run WHERE sweep_id = ?"
    seconds = float(site.rows(times, sweep)[0][0])
    concluded = site.rows("SELECT count(*) FROM experiments_run WHERE status = 'concluded'")[0][0]
    assert concluded == UNITS
    return seconds, max(0.0, others) / (seconds * (os.cpu_count() or 1))


def pin(worker: psutil.Process, core: int) -> None:
    """All threads of the worker and of its children, and whatever they start."""
    for process in [worker, *worker.children(recursive=True)]:
        for thread in process.threads():
            os.sched_setaffinity(thread.id, {core})


def busy() -> float:
    """Seconds that the machine's cores worked so far."""
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - times.iowait)


def spent(site: Installation) -> float:
    """Seconds that the installation's processes worked so far."""
    root = psutil.Process(site.process.pid)
    total = 0.0
    for each in [root, *root.children(recursive=True)]:
        try:
            times = each.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


@pytest.mark.bench
def test_two_workers_beside_one(quick_state: Path, tmp_path: Path) -> None:
    found = {}
    for workers in (1, 2):
        state = tmp_path / str(workers)
        shutil.copytree(quick_state, state)
        own = {"MAIA_WORKERS": str(workers), "OMP_NUM_THREADS": "1", "MAIA_LABEL_CHECK": "no"}
        with installed(state, "--no-example", **own) as site:
            found[workers] = play(site, workers)
    print(f"\nA sweep of {UNITS} toybox units{'seconds':>18}{'others':>10}")
    for workers, (seconds, others) in found.items():
        print(f"{workers} worker{'s' if workers > 1 else ''}{seconds:36.1f}{others * 100:8.0f} %")
    print(f"speed-up {found[1][0] / found[2][0]:33.2f} x")
