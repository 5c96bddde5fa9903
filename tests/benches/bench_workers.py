"""A sweep of 40 toybox units, and an evaluation of 12 synthetic neurons, by one worker and by two, each on its own core
with one thread for its arithmetic."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.support.installation import Installation, installed

UNITS, NEURONS = 40, 12
EVALUATE = f"""
from django.contrib.auth.models import User
from experiments.core.actors import Actor
from experiments.evaluations import actions
from experiments.models import Evaluation
options = {{"units": {NEURONS}, "model": "synthetic:toybox-eyes"}}
row = Evaluation(kind="synthetic", name="Neurons", backbone="scripted", seed=3, options=options)
print(actions.begin(Actor(User.objects.get()), row).pk)
"""
SWEPT = """SELECT (julianday(max(ended)) - julianday(min(started))) * 86400 FROM experiments_run WHERE sweep_id = ?
 AND EXISTS (SELECT 1 FROM experiments_sweep WHERE id = sweep_id AND status = 'done')"""
EVALUATED = """SELECT (julianday(job.beat) - julianday(row.created)) * 86400 FROM experiments_evaluation row
 JOIN experiments_job job ON job.id = row.job_id WHERE row.id = ? AND job.status = 'done'"""


def sweep(site: Installation) -> tuple[int, str]:
    """Begin it; its key, and a query of the seconds that it took once it is done."""
    chosen = ["--layers", "layer4", "--sample", str(UNITS), "--seed", "3", "--json"]
    return int(json.loads(site.manage("sweep", "start", *chosen))["sweep"]), SWEPT


def evaluate(site: Installation) -> tuple[int, str]:
    """The same of an evaluation: with its planning and the last figures."""
    return int(site.manage("shell", "-v0", "-c", EVALUATE).split()[-1]), EVALUATED


def play(site: Installation, workers: int, begin: Callable[[Installation], tuple[int, str]]) -> tuple[float, float]:
    """Seconds that the work took, and the share of the machine that others took meanwhile."""
    site.link()
    names = ["worker@"] if workers == 1 else [f"worker-{place + 1}@" for place in range(workers)]
    time.sleep(5)  # PyTorch is loaded, and the threads are there
    for core, name in enumerate(names):
        pin(site.child("celery", "worker", name), core)
    site.until(lambda: len(site.rows("SELECT 1 FROM experiments_layer")) > 0, "no layer is known", 90)
    machine, ours = busy(), spent(site)
    key, query = begin(site)
    site.until(lambda: any(row[0] is not None for row in site.rows(query, key)), "it did not end", 900)
    others = (busy() - machine) - (spent(site) - ours)
    seconds = float(site.rows(query, key)[0][0])
    assert not site.rows("SELECT 1 FROM experiments_run WHERE status != 'concluded'")
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
@pytest.mark.parametrize("begin", [sweep, evaluate])
def test_two_workers_beside_one(
    begin: Callable[[Installation], tuple[int, str]], quick_state: Path, tmp_path: Path
) -> None:
    found = {}
    for workers in (1, 2):
        state = tmp_path / str(workers)
        shutil.copytree(quick_state, state)
        own = {"MAIA_WORKERS": str(workers), "OMP_NUM_THREADS": "1", "MAIA_LABEL_CHECK": "no"}
        with installed(state, "--no-example", **own) as site:
            found[workers] = play(site, workers, begin)
    print(f"\n{begin.__name__}: {UNITS if begin is sweep else NEURONS} units{'seconds':>18}{'others':>10}")
    for workers, (seconds, others) in found.items():
        print(f"{workers} worker{'s' if workers > 1 else ''}{seconds:36.1f}{others * 100:8.0f} %")
    print(f"speed-up {found[1][0] / found[2][0]:33.2f} x")
