"""A network in a file of a person's: loaded, indexed and read, equal to the module's own hooks."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests import ROOT
from tests.support.plugin_files import NETWORK, plugged_in, write_plugin
from workers import registry
from workers.errors import MaiaError, UnknownName
from workers.lab.laboratory import Laboratory
from workers.protocols import LabSettings
from workers.record.systems import SystemSpec

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
        network.stem.register_forward_hook(lambda _, __, output: kept.append(output))
        with torch.no_grad():
            logits = network(torch.stack([space["to_tensor"](each) for each in images]))
        found = laboratory.model("our-net").maps(images, ["stem", "logits"])
        assert torch.allclose(found["stem"], kept[0], atol=1e-6)
        assert torch.allclose(found["logits"].flatten(1), logits, atol=1e-6)

        index = laboratory.index("our-net", folder)
        best = kept[0].amax((2, 3)).argmax(0)
        for unit in range(6):
            spec = SystemSpec("unit", "our-net", "stem", unit, {"dataset": folder})
            first = laboratory.subject(spec).exemplars()[0]
            assert index.unit("stem", unit).positions[0] == first.index == best[unit]
            assert first.activation == pytest.approx(float(kept[0][best[unit], unit].max()), abs=1e-5)
            assert first.masked.size == first.picture.image.size


NAN = NETWORK.replace("return self.head(", "images = images / 0 * 0\n        return self.head(")
CHANGING = NETWORK.replace(
    "return self.head(self.block(self.stem(images))",
    "return self.head(self.block(self.stem(images[..., : 16 - 2 * (images.mean() > 0.5)]))",
)
UNEVEN = NETWORK.replace("image.resize((16, 16))", "image")
FOUR = NETWORK.replace('["cat", "dog"]', '["cat", "dog", "cow", "hen"]')
NO_LAYER = NETWORK.replace('"block"]', '"wing"]')
RAISES = NETWORK.replace("return torch.from_numpy", "raise KeyError('lens')\n    return torch.from_numpy")


def test_the_example_of_the_documentation_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "workers" / "OWN_PARTS.md").read_text().partition("```python\n")[2].partition("```")[0]
    assert "/data/our_net.pt" in text
    write_plugin(tmp_path / "lab", NETWORK.partition("def to_tensor")[0], "our_lab.py")
    monkeypatch.syspath_prepend(str(tmp_path / "lab"))
    space: dict = {}
    exec(NETWORK, space)
    torch.save(space["OurNet"]().state_dict(), tmp_path / "our_net.pt")
    model = look(tmp_path, text.replace("/data", str(tmp_path)))
    assert [each.name for each in model.layers()] == ["stem", "block", "logits"]
    assert model.maps(pictures(9), ["block"])["block"].shape == (1, 8, 32, 32)


def pictures(*greys: int, size: tuple[int, int] = (16, 16)) -> list[Image.Image]:
    return [Image.new("RGB", size, (grey, grey, grey)) for grey in greys]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (NAN, "stem of our-net gives values that are no finite numbers"),
        (CHANGING, "stem of our-net gives maps of shape (1, 6, 8, 7) for (1, 6, 8, 8)"),
        (UNEVEN, "The preprocessing of our-net gives the shape (3, 16, 16) for (3, 256, 256)"),
        (FOUR, "our-net gives 2 outputs, and its plug-in names 4 classes"),
        (NO_LAYER, "The layer 'wing' of our-net"),
        (RAISES, "The preprocessing of our-net fails for an image of 256 x 256 pixels: KeyError: 'lens'"),
    ],
)
def test_a_mistake_is_told_with_the_model_the_layer_and_the_shapes(tmp_path: Path, text: str, told: str) -> None:
    model = look(tmp_path, text)
    with pytest.raises(MaiaError, match=re.escape(told)):
        [model.maps(pictures(grey), ["stem"]) for grey in (20, 240)]


def test_layers_are_found_and_outputs_without_classes_are_an_embedding(tmp_path: Path) -> None:
    model = look(tmp_path, NETWORK.replace(', ["cat", "dog"], ["stem", "block"]', ""))
    names = [each.name for each in model.layers()]
    assert names == ["stem", "block.0", "block.1", "block.2", "block"]
    assert model.outputs(pictures(10, 200), "stem").shape == (2, 2)


def test_a_unit_can_be_silenced_and_a_class_says_where_it_is_seen(tmp_path: Path) -> None:
    model = look(tmp_path, NETWORK)
    images = pictures(10, 200)
    plain = model.outputs(images, "block")
    assert torch.allclose(plain, model.maps(images, ["logits"])["logits"].flatten(1))
    assert torch.allclose(
        model.outputs(images, "block", torch.zeros_like)[0], model.outputs(images, "block", torch.zeros_like)[1]
    )
    shares, maps = model.evidence(images, 1)
    assert np.allclose(shares, plain.softmax(1)[:, 1].numpy())
    assert maps.shape == (2, 8, 8)


def test_weights_that_were_put_away_are_made_again(tmp_path: Path) -> None:
    model = look(tmp_path, NETWORK)
    before = model.maps(pictures(77), ["stem"])["stem"]
    model._settings.model_cache.evict()
    assert model._settings.model_cache.loaded() == []
    assert torch.equal(model.maps(pictures(77), ["stem"])["stem"], before)


def test_the_revision_changes_with_the_weights_and_with_the_file(tmp_path: Path) -> None:
    texts = (NETWORK, NETWORK.replace("manual_seed(5)", "manual_seed(6)"), NETWORK + "# another preprocessing\n")
    revisions = [look(tmp_path, text).revision for text in texts]
    assert len(set(revisions)) == 3
    assert revisions[0].partition("-")[0] == revisions[2].partition("-")[0] != revisions[1].partition("-")[0]


OWN_MODEL = """
import torch
from workers.protocols import LayerInfo

class Ours:
    name, revision = "ours", "1"
    def layers(self):
        return [LayerInfo("map", "map", "conv", 2)]
    def maps(self, images, layers):
        side = 2 if len(images) < 3 else 3
        return {"map": torch.full((len(images), 2, side, side), float("nan") if len(images) == 2 else 1.0)}

def register(maia):
    maia.vision_model("ours", "Ours", lambda settings: Ours())
    maia.vision_model("none", "None", lambda settings: 7)
"""


def test_a_model_of_ones_own_is_checked_too(tmp_path: Path) -> None:
    model = look(tmp_path, OWN_MODEL, "ours")
    assert model.revision == "1"
    assert model.maps(pictures(1), ["map"])["map"].shape == (1, 2, 2, 2)
    with pytest.raises(MaiaError, match="map of ours gives values that are no finite numbers"):
        model.maps(pictures(1, 2), ["map"])
    with pytest.raises(MaiaError, match=r"map of ours gives maps of shape \(3, 2, 3, 3\) for \(3, 2, 2, 2\)"):
        model.maps(pictures(1, 2, 3), ["map"])
    with pytest.raises(MaiaError, match="no vision model: int has no name, revision, layers, maps"):
        look(tmp_path, OWN_MODEL, "none")


def test_a_name_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="'our-net'"):
        registry.load(registry.VISION_MODELS, "our-net")
