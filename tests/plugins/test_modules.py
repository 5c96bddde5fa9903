"""A network in a file of a person's: loaded, indexed and read, equal to the module's own hooks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.support.plugin_files import NETWORK, plugged_in, write_plugin
from workers import registry
from workers.errors import MaiaError, UnknownName
from workers.lab.laboratory import Laboratory
from workers.protocols import LabSettings

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """Twelve pictures as a dataset's key."""
    place = tmp_path / "pictures"
    place.mkdir()
    rng = np.random.default_rng(3)
    for number in range(12):
        Image.fromarray(rng.integers(0, 256, (20, 24, 3), np.uint8)).save(place / f"{number:02}.png")
    return f"folder:{place}"


def look(tmp_path: Path, text: str, key: str = "our-net"):
    """The model of a file, opened within its plug-in."""
    with plugged_in(write_plugin(tmp_path, text)) as (report,):
        assert report.problem == ""
        return registry.load(registry.VISION_MODELS, key)(LabSettings(tmp_path / "state", batch_size=4))


def test_a_network_in_a_file_is_indexed_and_equals_its_own_hooks(tmp_path: Path, folder: str) -> None:
    with plugged_in(write_plugin(tmp_path, NETWORK)) as (report,):
        assert report.problem == ""
        assert report.keys == ("vision model our-net",)
        laboratory = Laboratory(LabSettings(tmp_path / "state", batch_size=5))
        layers = laboratory.layers("our-net")
        assert [(each.name, each.units) for each in layers] == [("stem", 6), ("block", 8), ("logits", 2)]
        assert layers[-1].names == ("cat", "dog")
        images = [laboratory.dataset(folder)[position].image for position in range(12)]

        # What the module gives by itself
        space: dict = {}
        exec(NETWORK, space)
        network, kept = space["OurNet"]().eval(), []
        network.block.register_forward_hook(lambda _, __, output: kept.append(output))
        with torch.no_grad():
            logits = network(torch.stack([space["to_tensor"](each) for each in images]))
        found = laboratory.model("our-net").maps(images, ["block", "logits"])
        assert torch.allclose(found["block"], kept[0], atol=1e-6)
        assert torch.allclose(found["logits"].flatten(1), logits, atol=1e-6)

        index = laboratory.index("our-net", folder)
        best = kept[0].amax((2, 3)).argmax(0)
        for unit in range(8):
            first = index.exemplars("block", unit)[0]
            assert first.position == best[unit]
            assert first.activation == pytest.approx(float(kept[0][best[unit], unit].max()), abs=1e-5)
