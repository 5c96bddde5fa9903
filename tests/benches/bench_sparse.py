"""What training a sparse auto-encoder costs beside the matrix products it needs, and whether its memory grows."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests import ROOT
from tests.support.sparse_layers import NumberedImages, SumsOfDirections
from workers import registry
from workers.protocols import LabSettings, Picture, no_progress
from workers.record.sparse import KINDS
from workers.sparse.recipe import SparseRecipe
from workers.sparse.training import SparseTraining, find_source, train_sparse

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TIMES, STEPS = 5, 20
SHAPES = [(72, 288, 8), (96, 384, 8), *([(768, 6144, 32)] if DEVICE == "cuda" else [])]
"""Units, latents and k: those of toybox-net's last layers and, where a GPU makes it short, of a small transformer."""
SIZES = (2_000, 20_000)
LAYER = "layer1"
"""Its maps of 2,000 images fill the buffer already, so that what may grow is what follows the number of images."""


@pytest.mark.bench
def test_positions_a_second(tmp_path: Path) -> None:
    print(f"\n{DEVICE}, {torch.get_num_threads()} threads, steps of {SparseRecipe(1, 1).batch:,} positions")
    print(f"{'kind':12}{'units':>8}{'latents':>9}{'k':>4}{'training':>14}{'products':>14}{'ratio':>8}")
    for units, latents, k in SHAPES:
        for kind in KINDS:
            learn, products = works(tmp_path, SparseRecipe(latents, k, kind, steps=10_000), units)
            took, bare = by_turns(learn, products)
            rate = SparseRecipe(latents, k).batch / took
            print(f"{kind:12}{units:8}{latents:9}{k:4}{rate:12,.0f}/s{rate * took / bare:12,.0f}/s{bare / took:8.2f}")


def works(folder: Path, recipe: SparseRecipe, units: int) -> tuple[Callable[[], object], Callable[[], object]]:
    """A step of a training that is under way, and its five products: forth, back, and for the gradients."""
    source = find_source("sums", SumsOfDirections(units=units), "sums", "numbers", NumberedImages(600))
    settings = LabSettings(folder, device=DEVICE, batch_size=16)
    training = SparseTraining(settings, source, recipe, "", folder / "unused")
    training._begin(no_progress)
    batch, _ = training._buffer.take(training._place, recipe.batch, no_progress)
    batch = batch.to(DEVICE) / training._scale
    wide, weights = torch.rand(recipe.batch, recipe.latents, device=DEVICE), training.network.decoder.detach()

    def products() -> None:
        _ = batch @ weights.T, wide @ weights, batch @ weights.T, wide.T @ batch, wide.T @ batch

    return lambda: training._learner.learn(batch), products


def by_turns(*chosen: Callable[[], object]) -> list[float]:
    """Seconds of each, the fastest of several times by turns: others use the machine too."""
    taken: list[list[float]] = [[] for _ in chosen]
    for _ in range(TIMES):
        for times, work in zip(taken, chosen, strict=True):
            work()
            start = clock()
            for _ in range(STEPS):
                work()
            times.append((clock() - start) / STEPS)
    return [min(times) for times in taken]


def clock() -> float:
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


class Noise:
    """A `Dataset` that holds no image: each is drawn when it is asked for."""

    name = "noise"

    def __init__(self, count: int) -> None:
        self.revision = str(count)
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Picture:
        pixels = np.random.default_rng(index).integers(0, 256, (96, 96, 3), dtype=np.uint8)
        return Picture(Image.fromarray(pixels))


@pytest.mark.bench
def test_peak_memory(tmp_path: Path) -> None:
    peaks = []
    for count in SIZES:
        command = [sys.executable, "-m", "tests.benches.bench_sparse", str(tmp_path / str(count)), str(count)]
        found = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
        peaks.append(found["peak_mib"])
        print(f"\n{count:,} images of toybox-net {LAYER}: peak {found['peak_mib']:.0f} MiB", end="")
    print(f", {peaks[-1] / peaks[0] - 1:+.1%}")


def train_once(folder: Path, count: int) -> None:
    """Train over so many images, all of them read once, and print what the process held at most."""
    settings = LabSettings(folder)
    model = registry.load(registry.VISION_MODELS, "toybox")(settings)
    train_sparse(
        settings, find_source("toybox", model, LAYER, "noise", Noise(count)), SparseRecipe(64, 4, images=count)
    )
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    print(json.dumps({"peak_mib": int(peak.split()[1]) / 1024}))


if __name__ == "__main__":
    train_once(Path(sys.argv[1]), int(sys.argv[2]))
