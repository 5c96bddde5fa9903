"""Running a model with one layer replaced: each kind of model, by small checkpoints with random weights."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from tests.support import checkpoints
from tests.support.checkpoints import noise
from tests.support.torchvision_weights import random_weights, saved
from workers import registry
from workers.errors import MissingPart, UnknownName
from workers.protocols import LabSettings
from workers.vision_models.classifier.network import ClassifierCard, GroupClassifier, save_classifier
from workers.vision_models.clip_rn50.network import ClipImageEncoder
from workers.vision_models.torchvision_resnet.network import BasicBlock

pytestmark = pytest.mark.usefixtures("one_thread")
TRANSFORMERS = ("resnet", "dino", "wide_dino", "dinov2", "clip", "mae", "convnext", "swin", "poolformer")
KINDS = ("toybox", "torchvision", "clip-rn50", "classifier", *TRANSFORMERS)


def write_clip(folder: Path) -> str:
    torch.manual_seed(3)
    network = ClipImageEncoder(8, dict.fromkeys(("layer1", "layer2", "layer3", "layer4"), 1), side=2, outputs=16)
    path = folder / "clip.safetensors"
    save_file({f"visual.{name}": value + 0.05 for name, value in network.state_dict().items()}, path)
    return f"clip-rn50:{path}"


def write_classifier(folder: Path) -> str:
    torch.manual_seed(4)
    (folder / "classifiers").mkdir()
    card = ClassifierCard("small", ("red", "blue", "green"), "toys", 0)
    save_classifier(GroupClassifier("small", 3), card, folder / "classifiers" / "toys.safetensors")
    return "classifier:toys"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    """A model of that kind, its files written once."""
    found: dict[str, Any] = {}

    def load(kind: str) -> Any:
        if kind not in found:
            folder = tmp_path_factory.mktemp(kind)
            key = {
                "toybox": lambda: "toybox",
                "torchvision": lambda: (
                    f"torchvision:{saved(random_weights(BasicBlock, (1, 1, 1, 1)), folder / 'r.pth')}"
                ),
                "clip-rn50": lambda: write_clip(folder),
                "classifier": lambda: write_classifier(folder),
            }.get(kind, lambda: f"hf:{getattr(checkpoints, kind)(folder)}")()
            found[kind] = registry.load(registry.VISION_MODELS, key)(LabSettings(folder, batch_size=2))
        return found[kind]

    return load


def layers_of(model: Any) -> list[str]:
    return [info.name for info in model.layers() if info.kind != "logit"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_put_in_a_layers_place_decides_the_output(models, kind: str) -> None:
    model, images = models(kind), noise(3)
    for layer in layers_of(model):
        own = model.outputs(images, layer)
        assert own.dtype == torch.float32
        torch.testing.assert_close(model.outputs(images, layer, lambda maps: maps), own)
        # The maps of the first image, spread over all, leave the first as it is
        first = model.outputs(images[:1], layer)
        same = model.maps(images[:1], [layer])[layer][0]
        found = model.outputs(images, layer, lambda _, same=same: same)
        torch.testing.assert_close(found[:1], first, atol=1e-5, rtol=1e-4)
        assert not torch.allclose(model.outputs(images, layer, torch.zeros_like), own, atol=1e-6), layer


@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_is_replaced_where_its_maps_are_read(models, kind: str) -> None:
    model, images = models(kind), noise(2)
    for layer in layers_of(model):
        seen: list[torch.Tensor] = []
        model.outputs(images, layer, lambda maps, seen=seen: seen.append(maps.clone()) or maps)
        torch.testing.assert_close(seen[0], model.maps(images, [layer])[layer])


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_flow_to_the_replacement_where_they_are_asked_for(models, kind: str) -> None:
    model, images = models(kind), noise(3)
    for layer in layers_of(model):
        points: list[torch.Tensor] = []

        def hold(maps: torch.Tensor, points=points) -> torch.Tensor:
            points.append(maps.detach().requires_grad_())
            return points[-1]

        plain = model.outputs(images, layer, hold)
        assert not plain.requires_grad
        points.clear()
        found = model.outputs(images, layer, hold, gradients=True)
        torch.testing.assert_close(found.detach(), plain)
        slopes = torch.autograd.grad(found[:, 0].sum(), points)
        assert sum(len(each) for each in slopes) == len(images), "in batches of two"
        assert all(each.abs().max() > 0 for each in slopes), layer


@pytest.mark.parametrize("kind", ["toybox", "torchvision", "classifier", "resnet", "convnext"])
def test_without_a_replacement_the_output_is_the_logits(models, kind: str) -> None:
    model, images = models(kind), noise(3)
    logits = model.maps(images, ["logits"])["logits"].flatten(1)
    for layer in layers_of(model):
        torch.testing.assert_close(model.outputs(images, layer), logits)
    assert model.outputs([], layers_of(model)[0]).numel() == 0
    with pytest.raises(MissingPart, match="is the output itself"):
        model.outputs(images, "logits")
    with pytest.raises(UnknownName, match="layer9"):
        model.outputs(images, "layer9")


def test_the_class_token_stays_as_it_is(models, tmp_path: Path) -> None:
    """A ViT's logits come of the class token alone: in the last block nothing follows from the places."""
    checkpoints.vit(tmp_path)
    model, images = checkpoints.model(tmp_path), noise(2)
    for layer, changes in (("blocks.0.mlp.fc1", True), ("blocks.1.mlp.fc1", False)):
        changed = not torch.equal(model.outputs(images, layer, torch.zeros_like), model.outputs(images, layer))
        assert changed == changes


@pytest.mark.parametrize("kind", ["toybox", "torchvision", "resnet"])
def test_other_threads_see_the_model_as_it_is(models, kind: str) -> None:
    model, images = models(kind), noise(2)
    layer = layers_of(model)[-1]
    own = model.outputs(images, layer)
    erased = model.outputs(images, layer, torch.zeros_like)
    with ThreadPoolExecutor(4) as pool:
        plain = [pool.submit(model.outputs, images, layer) for _ in range(8)]
        zeros = [pool.submit(model.outputs, images, layer, torch.zeros_like) for _ in range(8)]
    for futures, expected in ((plain, own), (zeros, erased)):
        assert all(torch.allclose(each.result(), expected, atol=1e-5) for each in futures)


@pytest.mark.parametrize("kind", ["toybox", "torchvision", "resnet"])
def test_a_replacement_that_fails_leaves_nothing_behind(models, kind: str) -> None:
    model, images = models(kind), noise(2)
    layer = layers_of(model)[-1]
    own = model.outputs(images, layer)

    def fail(_: torch.Tensor) -> torch.Tensor:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        model.outputs(images, layer, fail)
    torch.testing.assert_close(model.outputs(images, layer), own)


def test_half_precision_replaces_in_float32(tmp_path: Path) -> None:
    model = registry.load(registry.VISION_MODELS, "toybox")(LabSettings(tmp_path, precision="bfloat16"))
    kinds = set()
    found = model.outputs(noise(2), "layer3", lambda maps: kinds.add(maps.dtype) or maps)
    torch.testing.assert_close(found, model.outputs(noise(2), "layer3"))
    assert kinds == {found.dtype} == {torch.float32}
