"""What the sandbox costs: the start of an experiment, a call, images across the wire, memory."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.support.sandbox_lab import children_of, zygote_of, zygote_pid
from workers.lab.laboratory import Laboratory
from workers.lab.memory import ImagesInMemory
from workers.protocols import Bounds, LabSettings
from workers.record.systems import SystemSpec
from workers.sandbox import jail
from workers.sandbox.host import ZygoteSandbox
from workers.sandbox.watch import read_field

TIMES = 60
FRESH = "import time, numpy; from PIL import Image, ImageDraw, ImageOps; print(time.monotonic())"
NEURON = """
import time
images = [Image.frombytes("RGB", (224, 224), bytes) for bytes in tools.pixels()]
began = time.monotonic()
system.neuron(images)
print(time.monotonic() - began)
"""
SMALL = """
import time
for _ in range(300):
    began = time.monotonic()
    tools.small(1)
    print(time.monotonic() - began)
"""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[ZygoteSandbox]:
    with ZygoteSandbox() as sandbox:
        sandbox.run("pass", {}, {}, bounds=Bounds())
        yield sandbox


@pytest.fixture(scope="module", autouse=True)
def table() -> Iterator[Callable[..., None]]:
    """Prints a line for each figure, under a headline."""
    print(f"\n\nSandbox: {jail.summary(jail.layers())}; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print(f"{'figure':62}{'measured':>14}{'goal':>12}")
    yield lambda figure, measured, goal="": print(f"{figure:62}{measured:>14}{goal:>12}")
    print()


def in_ms(seconds: list[float]) -> str:
    return f"{statistics.median(seconds) * 1000:.2f} ms"


@pytest.mark.bench
def test_the_start_of_an_experiment(sandbox: ZygoteSandbox, table) -> None:
    started, whole, fresh = [], [], []
    for _ in range(TIMES):
        began = time.monotonic()
        output = sandbox.run("import time; print(time.monotonic())", {}, {}, bounds=Bounds()).output
        whole.append(time.monotonic() - began)
        started.append(float(output) - began)
    for _ in range(TIMES // 6):
        began = time.monotonic()
        output = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, check=True).stdout
        fresh.append(float(output) - began)
    table("experiment, request to first line, median", in_ms(started), "10 ms")
    table("experiment, request to result, nothing left, median", in_ms(whole))
    table("fresh python with the same packages, to first line, median", in_ms(fresh))
    table("fresh python costs as many starts as", f"{statistics.median(fresh) / statistics.median(started):.0f}")


@pytest.mark.bench
def test_a_small_call(sandbox: ZygoteSandbox, table) -> None:
    result = sandbox.run(SMALL, {"tools.small": lambda n: n}, {}, bounds=Bounds())
    table("small call, median of 300", in_ms([float(word) for word in result.output.split()]), "1 ms")


@pytest.mark.bench
def test_fifteen_images_through_a_system(sandbox: ZygoteSandbox, table, quick_laboratory: Path) -> None:
    from tests.support.quick_laboratory import QUICK_IMAGES

    laboratory = Laboratory(LabSettings(quick_laboratory, dataset_images=QUICK_IMAGES))
    context = laboratory.experiment_context(SystemSpec("unit", "toybox", "layer4", 12), ImagesInMemory(), seed=0)
    noise = np.random.default_rng(0)

    def pixels() -> list[bytes]:
        return [noise.integers(0, 256, (224, 224, 3), np.uint8).tobytes() for _ in range(15)]

    calls = {**context.calls("function"), "tools.pixels": pixels}
    sandbox.run(NEURON, calls, context.facts, bounds=Bounds())
    here, across = [], []
    for _ in range(12):
        result = sandbox.run(NEURON, calls, context.facts, bounds=Bounds())
        across.append(float(result.output))
        here.append(result.calls[1].seconds)  # the very same call, in the worker: what else runs slows both alike
    table("fifteen 224-pixel images through system.neuron, in process", in_ms(here))
    table("the same across the wire", in_ms(across))
    ratios = [whole / inside for whole, inside in zip(across, here, strict=True)]
    table("ratio, median", f"{statistics.median(ratios):.2f}", "1.3")


@pytest.mark.bench
def test_the_memory_of_an_idle_zygote(sandbox: ZygoteSandbox, table) -> None:
    started, zygote = zygote_of(sandbox).process.pid, zygote_pid(sandbox)
    for pid, name in {zygote: "zygote", started: "the process it was started by"}.items():
        own, resident = (int(read_field(Path(f"/proc/{pid}/smaps_rollup"), word)[0]) for word in ("Pss", "Rss"))
        table(f"{name}, idle: proportional, resident memory", f"{own >> 10}, {resident >> 10} MiB")

    def look() -> None:
        (child,) = children_of(sandbox)
        own = sum(
            int(read_field(Path(f"/proc/{child}/smaps_rollup"), word)[0]) for word in ("Private_Clean", "Private_Dirty")
        )
        table("child of its own: private memory", f"{own / 1024:.1f} MiB")

    sandbox.run("tools.look()", {"tools.look": look}, {}, bounds=Bounds())
