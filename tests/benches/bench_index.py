"""What the exemplar index costs beside the forward pass it needs, and whether its memory grows with the dataset."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests import ROOT
from tests.support import checkpoints
from workers import registry
from workers.lab.exemplars import ExemplarIndex
from workers.protocols import Dataset, LabSettings, Picture, VisionModel

LAYERS = ("layer1", "layer2", "layer3", "layer4")
TIMES = 2
"""Times that both are measured, by turns; the fastest counts, since others use the machine too."""


class InMemory:
    """A dataset of a few images that are shown again and again, so that no time goes into decoding."""

    name, revision = "in-memory", "1"

    def __init__(self, images: Sequence[Image.Image], length: int) -> None:
        self.images = images
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Picture:
        return Picture(self.images[index % len(self.images)])


def photos(count: int) -> list[Image.Image]:
    """Smooth noise, 224 x 224: shapes of all sizes, as photographs have."""
    random, found = np.random.default_rng(0), []
    for _ in range(count):
        layers = [random.uniform(0, 255, (side, side, 3)).astype(np.uint8) for side in (4, 14, 56, 224)]
        sized = [Image.fromarray(layer).resize((224, 224), Image.Resampling.BICUBIC) for layer in layers]
        found.append(Image.fromarray(np.mean([np.asarray(each) for each in sized], axis=0).astype(np.uint8)))
    return found


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """By the clock, and of processor time, which depends less on what else the machine does."""
    began, used = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - began, time.process_time() - used


@pytest.mark.bench
@pytest.mark.timeout(0)
@pytest.mark.parametrize(("name", "batch", "images"), [("toybox-net", 64, 640), ("ResNet-152", 8, 48)])
def test_indexing_against_the_bare_forward_pass(tmp_path: Path, name: str, batch: int, images: int) -> None:
    """The bare pass is `model.maps` on decoded images, one batch after the other."""
    key = "toybox" if name == "toybox-net" else f"hf:{checkpoints.resnet_152(tmp_path / 'resnet-152')}"
    model: VisionModel = registry.load(registry.VISION_MODELS, key)(LabSettings(tmp_path, batch_size=batch))
    shown = photos(batch)
    sources: dict[str, Dataset] = {"decoded images": InMemory(shown, images)}
    if name == "toybox-net":  # decoding takes as long as this network
        sources["JPEG files"] = files(tmp_path, shown, images)

    def index(source: str, turn: int) -> None:
        settings = LabSettings(tmp_path / f"{source} {turn}", batch_size=batch)
        ExemplarIndex(settings, model, sources[source]).prepare(LAYERS)

    model.maps(shown, LAYERS)
    bare, whole = [], {source: [] for source in sources}
    for turn in range(TIMES):
        bare.append(seconds(lambda: [model.maps(shown, LAYERS) for _ in range(images // batch)]))
        for source, times in whole.items():
            times.append(seconds(partial(index, source, turn)))
    print(f"\n{name}, {images} images of 224 px, batches of {batch}, {torch.get_num_threads()} threads")
    print(f"{'images a second':40}{'by the clock':>14}{'of processor':>14}")
    rate = best(bare, images)
    print(f"{'bare forward pass':40}{rate[0]:14.1f}{rate[1]:14.1f}")
    for source, times in whole.items():
        found = best(times, images)
        print(f"{f'indexing layer1..layer4 of {source}':40}{found[0]:14.1f}{found[1]:14.1f}")
        print(f"{'  ratio':40}{found[0] / rate[0]:14.3f}{found[1] / rate[1]:14.3f}  goal 0.95")


def best(times: Sequence[tuple[float, float]], images: int) -> list[float]:
    """Images a second, by the clock and of processor time."""
    return [images / min(each) for each in zip(*times, strict=True)]


def files(folder: Path, images: Sequence[Image.Image], count: int) -> Dataset:
    """A folder with so many JPEG files."""
    folder = folder / "photos"
    folder.mkdir()
    for at, image in enumerate(images):
        image.save(folder / f"{at:05}.jpg")
    for at in range(len(images), count):
        os.link(folder / f"{at % len(images):05}.jpg", folder / f"{at:05}.jpg")
    return registry.load(registry.DATASETS, f"folder:{folder}")(LabSettings(folder.parent / "state"))


INDEXED = """
import json, resource, sys
from pathlib import Path
from workers import registry
from workers.lab.exemplars import ExemplarIndex
from workers.protocols import LabSettings

folder, state, images = sys.argv[1:]
settings = LabSettings(Path(state), dataset_images=int(images))
model = registry.load(registry.VISION_MODELS, "toybox")(settings)
index = ExemplarIndex(settings, model, registry.load(registry.DATASETS, f"folder:{folder}")(settings))
index.prepare(["layer4"])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"images": index.unit("layer4", 0).images, "peak": peak}))
"""


@pytest.mark.bench
@pytest.mark.timeout(0)
def test_peak_memory_at_ten_times_the_images(tmp_path: Path) -> None:
    """In a process each; a folder of small files, so that reading them is part of it."""
    files(tmp_path, [image.resize((96, 96)) for image in photos(8)], 20_000)
    peaks = []
    for images in (2_000, 20_000):
        command = [sys.executable, "-c", INDEXED, str(tmp_path / "photos"), str(tmp_path / str(images)), str(images)]
        child = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
        told = json.loads(child.stdout)
        assert told["images"] == images
        peaks.append(told["peak"] / 1024)
    print("\nPeak memory of a process that indexes a folder with toybox-net")
    print(f"{'2,000 images':40}{peaks[0]:9.1f} MB")
    print(f"{'20,000 images':40}{peaks[1]:9.1f} MB")
    print(f"{'ratio':40}{peaks[1] / peaks[0]:9.3f}  goal 0.95 to 1.05")
