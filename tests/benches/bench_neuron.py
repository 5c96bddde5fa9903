"""What a measurement costs: `Unit.respond` and `system.neuron` on 32 images, over the bare forward pass."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.support import checkpoints
from workers import registry
from workers.lab.memory import ImagesInMemory
from workers.lab.system import System
from workers.protocols import LabSettings, no_progress
from workers.record.systems import SystemSpec
from workers.systems.unit import Unit

IMAGES = int(os.environ.get("MAIA_BENCH_IMAGES", "32"))
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SETTINGS = LabSettings(Path("unused"), device=DEVICE, batch_size=IMAGES)
SHOWN = {"toybox": (256, 256), "ResNet-152": (512, 512)}
"""Sides of the images, in pixels: what the renderer draws, and what Stable Diffusion does."""


class AnyIndex:
    """Says of every unit that its map is bright above 1."""

    quantile, positions = 1.0, ()

    def unit(self, layer: str, unit: int, progress: Any = no_progress) -> Any:
        return self

    def picture(self, position: int) -> Any:
        raise IndexError(position)


@pytest.mark.bench
def test_what_a_measurement_costs(tmp_path: Path) -> None:
    print(f"\n{IMAGES} images at a time, {DEVICE}, {torch.get_num_threads()} threads")
    print(f"{'model':12}{'bare forward':>16}{'Unit.respond':>16}{'ratio':>8}{'system.neuron':>16}{'ratio':>8}")
    toybox = registry.load(registry.VISION_MODELS, "toybox")(SETTINGS)
    with toybox._slot as small:
        pass
    report("toybox", toybox, small, (96, 96), runs=9)
    resnet = registry.load(registry.VISION_MODELS, f"hf:{checkpoints.resnet_152(tmp_path / 'resnet-152')}")(SETTINGS)
    with resnet._open().slot as large:
        pass
    report("ResNet-152", resnet, large, (224, 224), runs=1 if DEVICE == "cpu" else 9)


def report(name: str, model: Any, network: Any, side: tuple[int, int], runs: int) -> None:
    images = checkpoints.noise(IMAGES, size=SHOWN[name])
    pixels = torch.rand(IMAGES, 3, *side, device=DEVICE)
    unit = Unit(SystemSpec("unit", name, "layer4", 0), model, AnyIndex(), IMAGES)

    def forward() -> None:
        with torch.no_grad():
            network(pixels)
        if DEVICE == "cuda":
            torch.cuda.synchronize()

    def neuron() -> None:
        System(unit, ImagesInMemory()).neuron(images)

    bare, respond, whole = in_turn([forward, lambda: unit.respond(images), neuron], runs)
    print(
        f"{name:12}{bare * 1000:13.0f} ms{respond * 1000:13.0f} ms{respond / bare:8.2f}"
        f"{whole * 1000:13.0f} ms{whole / bare:8.2f}"
    )


def in_turn(works: list[Callable[[], object]], runs: int) -> list[float]:
    """Median seconds of each, taken in turn, so that a busy moment of the machine falls on all alike."""
    taken: list[list[float]] = [[] for _ in works]
    for run in range(runs + 1):
        for work, seconds in zip(works, taken, strict=True):
            began = time.perf_counter()
            work()
            if run:  # the first is for warming up
                seconds.append(time.perf_counter() - began)
    return [statistics.median(seconds) for seconds in taken]
