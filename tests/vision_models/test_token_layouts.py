"""Where tokens stand: maps of transformers against hooks of the test's own, which know each family's tokens."""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from torch import Tensor, nn

from tests.support import checkpoints
from tests.support.checkpoints import noise
from workers.errors import UnknownName
from workers.vision_models.huggingface import tensors
from workers.vision_models.huggingface.tensors import TensorLayout, TokenLayouts, convert_to_maps

pytestmark = pytest.mark.usefixtures("one_thread")
SIZES = ((64, 64), (64, 96))
"""Heights and widths that processors give."""
FAMILIES: dict[str, tuple[str, str, int, int, int]] = {
    "dino": ("ViTModel", "blocks.1.mlp.fc1", 8, 1, 0),
    "vit": ("ViTForImageClassification", "blocks.1.mlp.fc1", 8, 1, 0),
    "distilled": ("DeiTForImageClassificationWithTeacher", "blocks.1.mlp.fc1", 8, 2, 0),
    "dinov2": ("Dinov2WithRegistersForImageClassification", "blocks.1.mlp.fc1", 8, 5, 0),
    "dinov3": ("DINOv3ViTModel", "blocks.1.mlp.up_proj", 8, 5, 0),
    "clip": ("CLIPVisionModel", "blocks.1.mlp.fc1", 8, 1, 0),
    "siglip_classifier": ("SiglipForImageClassification", "blocks.1.mlp.fc1", 8, 0, 0),
    "beit": ("BeitForImageClassification", "blocks.1.mlp.fc1", 8, 1, 0),
    "yolos": ("YolosModel", "blocks.1.mlp.fc1", 8, 1, 3),
    "swin": ("SwinForImageClassification", "layers.1.blocks.0.mlp.fc1", 8, 0, 0),
}
"""Class of transformers, a layer, the side of a place in pixels, and how many tokens that are no places stand in front
and behind."""


def read_tokens(kind: str, folder: Path, path: str) -> Tensor:
    """What a module gives for two images, by a hook of the test's own."""
    network: Any = getattr(transformers, kind).from_pretrained(folder).eval()
    seen: list[Tensor] = []
    modules = dict(network.named_modules())
    own = path if path in modules else path.partition(".")[2]
    modules[own].register_forward_hook(lambda _, __, output: seen.append(output))
    takes = signature(network.forward).parameters
    more = {"interpolate_pos_encoding": True} if "interpolate_pos_encoding" in takes else {}
    processor = transformers.ViTImageProcessorPil.from_pretrained(folder)
    with torch.no_grad():
        network(**processor(noise(2), return_tensors="pt"), **more)
    return seen[0]


@pytest.mark.parametrize("size", SIZES, ids=["square", "wide"])
@pytest.mark.parametrize("family", FAMILIES)
def test_maps_are_the_patches_where_they_stand(family: str, size: tuple[int, int], tmp_path: Path) -> None:
    kind, layer, side, front, behind = FAMILIES[family]
    folder = checkpoints.see(getattr(checkpoints, family)(tmp_path / "net"), *size)
    check_places(folder, kind, layer, (size[0] // side, size[1] // side), front, behind)


def check_places(folder: Path, kind: str, layer: str, grid: tuple[int, int], front: int, behind: int = 0) -> None:
    """The maps of a layer hold each token where the test says it stands."""
    model = checkpoints.model(folder)
    (info,) = (each for each in model.layers() if each.name == layer)
    found, tokens = model.maps(noise(2), [layer])[layer], read_tokens(kind, folder, info.path)
    assert found.shape[2:] == grid
    assert tokens.shape[1] == front + grid[0] * grid[1] + behind
    for row, column in np.ndindex(grid):
        expected = tokens[:, front + row * grid[1] + column]
        torch.testing.assert_close(found[:, :, row, column], expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("side", [64, 96])
def test_a_class_token_of_the_last_stage_is_left_out(side: int, tmp_path: Path) -> None:
    folder = checkpoints.pvt(tmp_path / "net", side)
    check_places(folder, "PvtForImageClassification", "stages.2.blocks.0.mlp.fc1", (side // 16, side // 16), 0)
    check_places(folder, "PvtForImageClassification", "stages.3.blocks.0.mlp.fc1", (side // 32, side // 32), 1)


@pytest.mark.parametrize("size", SIZES, ids=["square", "wide"])
def test_stages_that_give_maps_need_no_tokens(size: tuple[int, int], tmp_path: Path) -> None:
    folder = checkpoints.see(checkpoints.segformer(tmp_path / "net"), *size)
    model = checkpoints.model(folder)
    path = next(each.path for each in model.layers() if each.name == "stages.2")
    found = model.maps(noise(2), ["stages.2"])["stages.2"]
    assert found.shape[2:] == (size[0] // 16, size[1] // 16)
    torch.testing.assert_close(
        found, read_tokens("SegformerForImageClassification", folder, path), atol=1e-4, rtol=1e-4
    )


def test_detections_that_make_a_square_with_the_patches_are_no_places(tmp_path: Path) -> None:
    """1 + 50 x 50 + 100 tokens are 51 x 51."""
    folder = checkpoints.see(checkpoints.yolos(tmp_path / "net", detections=100), 400, 400)
    model = checkpoints.model(folder)
    found = model.maps(noise(1), ["blocks.0.mlp.fc1"])["blocks.0.mlp.fc1"]
    assert found.shape[2:] == (50, 50)
    tokens = read_tokens("YolosModel", folder, model.layers()[0].path)[:1, 1:2501]
    torch.testing.assert_close(found.flatten(2), tokens.transpose(1, 2), atol=1e-4, rtol=1e-4)


def test_tokens_whose_places_are_not_known_are_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As registers were before anybody had heard of them."""
    monkeypatch.setattr(tensors, "_IN_FRONT", ("cls_token",))
    model = checkpoints.model(checkpoints.dinov2(tmp_path / "net"))
    unknown = "dinov2_with_registers.encoder.layer.0.mlp.fc1"
    assert not [each.name for each in model.layers() if "fc1" in each.name]
    with pytest.raises(UnknownName, match=r"shape \(21, 24\).* unknown positions in the image"):
        model.maps(noise(1), [unknown])


def test_a_number_of_tokens_alone_says_nothing() -> None:
    known = TokenLayouts(grids=((4, 4), (2, 8)), extra=((1, 3),), queries=16)
    assert known.find(20) == TensorLayout("tokens", (4, 4), 1, 3)
    assert [known.find(tokens) for tokens in (16, 17, 19, 25)] == [None] * 4
    assert TokenLayouts(grids=((4, 4),), extra=()).find(16) == TensorLayout("tokens", (4, 4))


def test_grids_are_those_of_convolutions_over_the_whole_image() -> None:
    network = nn.ModuleDict(
        {"patches": nn.Conv2d(3, 2, 8, 8), "strip": nn.Conv2d(3, 2, (1, 32)), "line": nn.Linear(3, 2)}
    )
    image = torch.zeros(1, 3, 32, 64)
    outputs = {name: module(image) for name, module in network.items() if name != "line"}
    known = TokenLayouts.of(network, outputs | {"line": torch.zeros(1, 7, 2)}, (32, 64))
    assert known.grids == ((4, 8),)
    assert convert_to_maps(torch.arange(64.0).reshape(1, 32, 2), TensorLayout("tokens", (4, 8)))[0, 0, 1, 0] == 16
