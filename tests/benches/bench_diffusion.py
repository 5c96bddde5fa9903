"""A generator beside the bare pipeline of diffusers at the same batch, and a request that was made before.

The pipeline is a small Stable Diffusion with random weights that draws 512 x 512 pixels, as the published one does.
On a GPU, if there is one; else on one thread of the processor, in processor seconds, which other programs do not touch.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.support import pipelines
from workers import registry
from workers.protocols import LabSettings

pytestmark = pytest.mark.usefixtures("one_thread")

PROMPTS = ["a red ball on grass", "a cat in the snow", "two cars at night", "a cone"]
STEPS = 4
ROUNDS = 5
CACHED = 20
GOAL = 0.98
GOAL_CACHED = 5.0
"""Milliseconds an image."""


@pytest.mark.bench
@pytest.mark.filterwarnings("ignore")
def test_drawing_costs_what_the_bare_pipeline_does(tmp_path: Path) -> None:
    from diffusers import StableDiffusionPipeline

    folder = pipelines.stable_diffusion(tmp_path / "pipeline", width=32, latent=32, blocks=5)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    settings = LabSettings(tmp_path, device=device, image_steps=STEPS)
    generator = registry.load(registry.IMAGE_GENERATORS, f"diffusion:{folder}")(settings)
    bare = StableDiffusionPipeline.from_pretrained(folder, low_cpu_mem_usage=False).to(device)
    bare.set_progress_bar_config(disable=True)
    ours, theirs = [], []
    for at in range(ROUNDS + 1):  # the first round of each warms up
        seeds = [at * len(PROMPTS) + each for each in range(len(PROMPTS))]
        theirs.append(seconds(draw, bare, seeds))
        ours.append(seconds(generator.generate, PROMPTS, seeds))
    cached = [seconds(generator.generate, PROMPTS, list(range(len(PROMPTS)))) for _ in range(CACHED)]
    ratio = statistics.median(plain / own for plain, own in zip(theirs[1:], ours[1:], strict=True))
    fast, faster = (len(PROMPTS) / statistics.median(times[1:]) for times in [ours, theirs])
    read = statistics.median(cached) / len(PROMPTS) * 1000
    print(f"\nStable Diffusion, small, 512 x 512, {STEPS} steps, batches of {len(PROMPTS)}, on {device}")
    print(f"  generator      {fast:7.2f} images/s")
    print(f"  bare pipeline  {faster:7.2f} images/s    ratio {ratio:.3f}, round by round (goal {GOAL})")
    print(f"  made before    {read:7.2f} ms an image (goal {GOAL_CACHED})")


def draw(pipeline: Any, seeds: list[int]) -> None:
    noise = [torch.Generator("cpu").manual_seed(seed) for seed in seeds]
    pipeline(PROMPTS, generator=noise, num_inference_steps=STEPS)


def seconds(work: Any, *arguments: Any) -> float:
    clock = time.perf_counter if torch.cuda.is_available() else time.process_time
    began = clock()
    work(*arguments)
    return clock() - began
