"""What our parts cost on a GPU beside the bare networks, in what memory, and how far it is from the processor.

At the true shapes where PyTorch finds CUDA, in about ten minutes; else at small ones, which shows that it runs:
`make bench-gpu`. All weights are random, so nothing is fetched.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import diffusers
import numpy as np
import pytest
import torch
import transformers
from PIL import Image

from tests.benches.bench_index import InMemory, photos
from tests.benches.bench_neuron import AnyIndex
from tests.support import checkpoints, pipelines
from workers import registry
from workers.lab.exemplars import ExemplarIndex
from workers.lab.memory import ImagesInMemory
from workers.lab.system import System
from workers.protocols import LabSettings, Picture, Precision
from workers.record.systems import SystemSpec
from workers.systems.unit import Unit
from workers.weights import compute_in_float32

GIB = 1 << 30
EDGES = 8
"""Images on which a device is compared with the processor."""
PROMPT, INSTRUCTION = "a red ball on grass", "make it blue"
GENERATOR, EDITOR = "draws", "edits"


@dataclass(frozen=True)
class Size:
    """How much is measured, and on what."""

    networks: dict[str, Callable[[Path], Path]]
    generator: Callable[[Path], Path]
    editor: Callable[[Path], Path]
    precisions: tuple[Precision, ...]
    batch: int
    indexed: int
    """Images of the dataset that is indexed."""
    pictures: int
    """Images that a pipeline makes at a time."""
    steps: int
    rounds: int
    """Times that each is measured, by turns with what it is compared with."""


TRUE = Size(
    {"ResNet-152": checkpoints.resnet_152, "ViT-B/16": checkpoints.vit_base},
    pipelines.published,
    lambda folder: pipelines.published(folder, edits=True),
    ("float32", "bfloat16", "float16"),
    batch=64,
    indexed=4_096,
    pictures=4,
    steps=20,
    rounds=3,
)
SMALL = Size(
    {"ResNet": checkpoints.resnet, "ViT": checkpoints.vit},
    pipelines.stable_diffusion,
    pipelines.pix2pix,
    ("float32", "bfloat16"),
    batch=4,
    indexed=8,
    pictures=1,
    steps=2,
    rounds=1,
)


@dataclass(frozen=True)
class NetworkCost:
    """Images a second of the bare forward pass, of the index, of `system.neuron`, and of two threads on one model."""

    bare: float
    indexed: float
    neuron: float
    two_threads: float
    peak: float
    """GiB of the device's memory at most; 0 on a processor."""
    error: float
    """Largest difference from the processor's float32 maps, over the largest value of those."""


@dataclass(frozen=True)
class PipelineCost:
    """Images a second of the bare pipeline, and of ours."""

    bare: float
    ours: float
    peak: float
    error: float
    """Largest difference of a colour, in [0, 1], from what the bare pipeline makes of the same seed."""


@pytest.mark.bench
@pytest.mark.timeout(0)
@pytest.mark.filterwarnings("ignore")
def test_a_gpu(tmp_path: Path) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    size = TRUE if device == "cuda" else SMALL
    print(f"\n{torch.cuda.get_device_name() if device == 'cuda' else 'No GPU: small shapes on the processor'}")
    for library in (transformers, diffusers.utils):
        library.logging.disable_progress_bar()
        library.logging.set_verbosity_error()
    compute_in_float32()
    began = time.monotonic()
    print_networks(measure_networks(tmp_path, size, device))
    print_pipelines(measure_pipelines(tmp_path, size, device))
    print(f"All of it took {(time.monotonic() - began) / 60:.1f} minutes.")


def measure_networks(folder: Path, size: Size, device: str) -> Iterator[tuple[str, str, NetworkCost]]:
    """Name, precision and costs, one after the other."""
    for name, save in size.networks.items():
        key = f"hf:{save(folder / name.replace('/', '-'))}"
        plain = LabSettings(folder, batch_size=size.batch)
        model = registry.load(registry.VISION_MODELS, key)(plain)
        layer = [each.name for each in model.layers() if each.kind != "logit"][-1]
        shown = photos(size.batch)
        truth = model.maps(shown[:EDGES], [layer])[layer]
        for precision in size.precisions:
            settings = replace(plain, device=device, precision=precision, state=folder / f"{key[-8:]} {precision}")
            yield name, precision, measure_network(settings, key, layer, shown, truth, size)


def measure_network(
    settings: LabSettings, key: str, layer: str, shown: Sequence[Image.Image], truth: torch.Tensor, size: Size
) -> NetworkCost:
    """`truth` are the maps of the first images, (images, units, height, width), as the processor computes them."""
    model = registry.load(registry.VISION_MODELS, key)(settings)
    unit = Unit(SystemSpec("unit", key, layer, 0), model, AnyIndex(), size.batch)
    pixels = model._prepare(shown)
    with model._open().slot as network:
        pass

    def forward() -> None:
        with torch.no_grad():
            network(pixels)

    def index() -> None:
        fresh = replace(settings, state=settings.state / str(time.monotonic_ns()))
        ExemplarIndex(fresh, model, InMemory(shown, size.indexed)).prepare([layer])

    def two_threads() -> None:
        threads = [threading.Thread(target=unit.respond, args=(list(shown),)) for _ in range(2)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()

    works = [forward, index, lambda: System(unit, ImagesInMemory()).neuron(list(shown)), two_threads]
    with peak_memory(settings.device) as peak:
        taken = by_turns(works, size.rounds)
        here = model.maps(shown[:EDGES], [layer])[layer].float().cpu()
    counts = (size.batch, size.indexed, size.batch, 2 * size.batch)
    rates = [count / seconds for count, seconds in zip(counts, taken, strict=True)]
    error = float((here - truth).abs().max() / truth.abs().max())
    return NetworkCost(*rates, peak=peak(), error=error)


def measure_pipelines(folder: Path, size: Size, device: str) -> Iterator[tuple[str, str, PipelineCost]]:
    """Name, precision and costs, one after the other."""
    for name, save in ((GENERATOR, size.generator), (EDITOR, size.editor)):
        with torch.device(device):
            made = save(folder / name)
        for precision in size.precisions[:2]:
            settings = LabSettings(
                folder / f"{name} {precision}",
                device=device,
                precision=precision,
                image_steps=size.steps,
                image_batch=size.pictures,
            )
            yield name, precision, measure_pipeline(settings, name, made, size)


def measure_pipeline(settings: LabSettings, name: str, made: Path, size: Size) -> PipelineCost:
    bare = diffusers.DiffusionPipeline.from_pretrained(made, low_cpu_mem_usage=False)
    bare = bare.to(settings.device, getattr(torch, settings.precision))
    bare.set_progress_bar_config(disable=True)
    edited = [Picture(photos(1)[0].resize((side_of(bare),) * 2))] * size.pictures if name == EDITOR else []
    seeds = iter(range(10**6))
    words = [INSTRUCTION if edited else PROMPT] * size.pictures
    if edited:
        editor = registry.load(registry.IMAGE_EDITORS, f"diffusion:{made}")(settings)
        draw = lambda numbers: editor.edit(edited, words, numbers)  # noqa: E731
    else:
        generator = registry.load(registry.IMAGE_GENERATORS, f"diffusion:{made}")(settings)
        draw = lambda numbers: generator.generate(words, numbers)  # noqa: E731

    def ours() -> list[Picture]:
        return draw([next(seeds) for _ in words])

    def theirs(numbers: Sequence[int] = ()) -> Any:
        noise = [torch.Generator("cpu").manual_seed(each) for each in numbers or range(len(words))]
        image = {"image": [each.image for each in edited]} if edited else {}
        call = {"generator": noise, "num_inference_steps": size.steps, "output_type": "np"}
        return bare(words, **call, **image).images

    with peak_memory(settings.device) as peak:
        fast, faster = by_turns([ours, theirs], size.rounds)
        numbers = list(range(10**6, 10**6 + len(words)))
        apart = np.stack([np.asarray(each.image) / 255 for each in draw(numbers)]) - theirs(numbers)
    return PipelineCost(len(words) / faster, len(words) / fast, peak(), float(np.abs(apart).max()))


def side_of(pipeline: Any) -> int:
    """Pixels of the square that it was made for."""
    return int(pipeline.unet.config.sample_size * pipeline.vae_scale_factor)


@contextmanager
def peak_memory(device: str) -> Iterator[Callable[[], float]]:
    """Tells GiB of the device's memory that were taken at most, in this block; 0 on a processor."""
    on_gpu = device.startswith("cuda")
    if on_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    yield lambda: torch.cuda.max_memory_allocated() / GIB if on_gpu else 0.0


def by_turns(works: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """Median seconds of each, the device's work included; the first round warms up."""
    taken: list[list[float]] = [[] for _ in works]
    for turn in range(rounds + 1):
        for work, seconds in zip(works, taken, strict=True):
            began = time.perf_counter()
            work()
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            if turn:
                seconds.append(time.perf_counter() - began)
    return [median(each) for each in taken]


def print_networks(rows: Iterator[tuple[str, str, NetworkCost]]) -> None:
    print(f"{'images a second':12}{'':10}{'bare':>9}{'index':>9}{'ratio':>7}{'neuron':>9}{'ratio':>7}"
          f"{'2 threads':>11}{'ratio':>7}{'peak GiB':>10}{'off by':>10}")  # fmt: skip
    for name, precision, cost in rows:
        print(
            f"{name:15}{precision:10}{cost.bare:9.0f}{cost.indexed:9.0f}{cost.indexed / cost.bare:7.2f}"
            f"{cost.neuron:9.0f}{cost.neuron / cost.bare:7.2f}{cost.two_threads:11.0f}"
            f"{cost.two_threads / cost.bare:7.2f}{cost.peak:10.2f}{cost.error:10.1e}"
        )


def print_pipelines(rows: Iterator[tuple[str, str, PipelineCost]]) -> None:
    print(f"{'images a second':25}{'bare':>9}{'ours':>9}{'ratio':>7}{'peak GiB':>10}{'off by':>10}")
    for name, precision, cost in rows:
        print(
            f"{name:15}{precision:10}{cost.bare:9.2f}{cost.ours:9.2f}{cost.ours / cost.bare:7.2f}{cost.peak:10.2f}"
            f"{cost.error:10.1e}"
        )
