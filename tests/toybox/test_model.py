"""toybox-net as a model under study, on its real weights."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from workers import registry
from workers.errors import UnknownName
from workers.protocols import LabSettings
from workers.toybox.model import ToyboxModel
from workers.toybox.networks import nets

LAYERS = ["conv1", "layer1", "layer2", "layer3", "layer4", "logits"]
model: ToyboxModel = registry.load(registry.VISION_MODELS, "toybox")(LabSettings(Path("unused"), batch_size=4))


def noise(count: int, seed: int = 0) -> list[Image.Image]:
    pixels = np.random.default_rng(seed).integers(0, 256, (count, 64, 64, 3), dtype=np.uint8)
    return [Image.fromarray(each) for each in pixels]


def test_it_names_its_layers_and_their_units() -> None:
    layers = model.layers()
    assert [layer.name for layer in layers] == LAYERS
    assert [layer.kind for layer in layers] == ["conv"] * 5 + ["logit"]
    assert layers[-1].units == len(model.classes)
    found = model.maps(noise(1), LAYERS)
    assert [found[layer.name].shape[1] for layer in layers] == [layer.units for layer in layers]


def test_it_gives_float_maps_for_the_layers_asked_for_alone() -> None:
    found = model.maps(noise(5), ["layer4", "logits"])
    assert set(found) == {"layer4", "logits"}
    assert found["layer4"].shape == (5, 96, 12, 12)
    assert found["logits"].shape == (5, 41, 1, 1)
    assert {part.dtype for part in found.values()} == {torch.float32}
    assert not found["layer4"].requires_grad


def test_no_images_give_empty_maps() -> None:
    assert model.maps([], ["layer4"])["layer4"].shape == (0, 96, 12, 12)


def test_an_unknown_layer_is_refused_with_those_there_are() -> None:
    with pytest.raises(UnknownName, match=r"'layer9'.*conv1, layer1"):
        model.maps(noise(1), ["layer4", "layer9"])


def test_an_image_is_answered_alike_whatever_batch_it_is_in() -> None:
    images = noise(7)
    together = model.maps(images, LAYERS)
    for number, image in enumerate(images):
        alone = model.maps([image], LAYERS)
        for layer in LAYERS:
            torch.testing.assert_close(together[layer][number], alone[layer][0], atol=1e-4, rtol=1e-4)


def test_the_same_image_gives_the_same_numbers() -> None:
    first, second = (model.maps(noise(3), LAYERS) for _ in range(2))
    torch.testing.assert_close(first, second)  # threads sum in any order


def test_two_threads_get_the_answers_to_their_own_images() -> None:
    batches = [noise(3, seed) for seed in range(8)]

    def ask(images: Sequence[Image.Image]) -> torch.Tensor:
        return model.maps(images, ["layer4"])["layer4"]

    expected = [ask(images) for images in batches]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(ask, batches * 3))
    for number, each in enumerate(found):
        torch.testing.assert_close(each, expected[number % len(batches)], atol=1e-4, rtol=1e-4)


def test_its_revision_is_that_of_its_weights(tmp_path: Path) -> None:
    assert model.revision == nets.fingerprint(nets.NET_FILE)
    other = tmp_path / "net.safetensors"
    nets.save_weights(nets.ToyboxNet(nets.load_net().vocabulary), other)
    assert ToyboxModel(other, LabSettings(tmp_path)).revision != model.revision
