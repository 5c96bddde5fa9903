"""Models of timm, by a stand-in for the package: timm needs torchvision, which is not among our packages."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch
from PIL import Image
from torch import nn

from workers import hub, registry
from workers.errors import UnknownName
from workers.protocols import LabSettings

pytestmark = pytest.mark.usefixtures("one_thread")
NAME = "tinynet.ours"


class TinyNet(nn.Module):
    """Named as timm's ResNets are."""

    def __init__(self) -> None:
        super().__init__()
        self.num_classes = 3
        self.stages = nn.Sequential(nn.Conv2d(3, 4, 3, stride=2, padding=1), nn.Conv2d(4, 5, 3, stride=2, padding=1))
        self.fc = nn.Linear(5, 3)

    def forward(self, images):
        return self.fc(self.stages(images).mean((2, 3)))


def test_without_the_package_the_command_that_gets_it_is_told(tmp_path: Path) -> None:
    lack = registry.missing(registry.VISION_MODELS, f"timm:{NAME}", LabSettings(tmp_path))
    assert lack == f"timm:{NAME} needs the package timm. Get it where the worker runs: .venv/bin/pip install timm"


@pytest.fixture
def timm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The parts of timm's interface that the adapter calls, with weights in a folder."""
    weights = tmp_path / "weights"
    weights.mkdir()
    torch.manual_seed(1)
    torch.save(TinyNet().state_dict(), weights / "pytorch_model.bin")
    config = SimpleNamespace(
        hf_hub_id=str(weights), input_size=(3, 32, 32), crop_pct=0.8, interpolation="bilinear",
        mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25), label_names=None,
    )  # fmt: skip

    def get_pretrained_cfg(name: str):
        if name != NAME:
            raise RuntimeError(f"Unknown model ({name})")
        return config

    def create_model(name: str, pretrained: bool, checkpoint_path: str) -> TinyNet:
        assert (name, pretrained) == (NAME, False)
        network = TinyNet()
        network.load_state_dict(torch.load(checkpoint_path, weights_only=True))
        return network

    module, models = ModuleType("timm"), ModuleType("timm.models")
    module.__dict__.update(create_model=create_model, models=models, __version__="1.0", __spec__=SimpleNamespace())
    models.__dict__.update(get_pretrained_cfg=get_pretrained_cfg)
    monkeypatch.setitem(sys.modules, "timm", module)
    monkeypatch.setitem(sys.modules, "timm.models", models)
    return module


def test_a_model_of_timm_has_its_stages_its_classes_and_its_preprocessing(timm: ModuleType, tmp_path: Path) -> None:
    model = registry.load(registry.VISION_MODELS, f"timm:{NAME}")(LabSettings(tmp_path / "state"))
    assert [(each.name, each.units) for each in model.layers()] == [("stages.0", 4), ("stages.1", 5), ("logits", 3)]
    image = Image.new("RGB", (64, 64), (255, 0, 0))
    assert model.find_visible((64, 64)) == (0.1, 0.1, 0.9, 0.9)
    network = timm.create_model(NAME, False, str(tmp_path / "weights" / "pytorch_model.bin")).eval()
    pixels = torch.tensor([2.0, -2.0, -2.0])[None, :, None, None].expand(1, 3, 32, 32)
    with torch.no_grad():
        assert torch.allclose(model.maps([image], ["logits"])["logits"].flatten(1), network(pixels), atol=1e-6)


def test_unknown_names_and_missing_weights_are_told(timm: ModuleType, tmp_path: Path) -> None:
    settings = LabSettings(tmp_path / "state")
    with pytest.raises(UnknownName, match="timm has no weights called 'gone'"):
        registry.missing(registry.VISION_MODELS, "timm:gone", settings)
    (tmp_path / "weights" / "pytorch_model.bin").unlink()
    assert "model.safetensors" in registry.missing(registry.VISION_MODELS, f"timm:{NAME}", settings)
    assert not hub.fetching.is_set()
