"""Models of transformers, from small checkpoints on disk: layers, maps, what they see, evidence."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from tests.support import checkpoints
from tests.support.checkpoints import CLASSES, noise
from workers.errors import UnknownName

pytestmark = pytest.mark.usefixtures("one_thread")


def in_stages(*blocks: tuple[int, int]) -> Iterator[str]:
    """The layers of blocks, each a stage and its number there."""
    for stage, number in blocks:
        yield from (f"stages.{stage}.blocks.{number}.mlp.fc1", f"stages.{stage}.blocks.{number}")


ARCHITECTURES = {
    "resnet": ["conv1", "stem", "layer1", "layer2", "layer3", "layer4", "logits"],
    "dino": ["blocks.0.mlp.fc1", "blocks.1.mlp.fc1"],
    "wide_dino": ["blocks.0.mlp.fc1", "blocks.1.mlp.fc1"],
    "vit": ["blocks.0.mlp.fc1", "blocks.1.mlp.fc1", "logits"],
    "distilled": ["blocks.0.mlp.fc1", "blocks.1.mlp.fc1", "logits"],
    "dinov2": ["blocks.0.mlp.fc1", "blocks.1.mlp.fc1", "logits"],
    "dinov3": ["blocks.0.mlp.up_proj", "blocks.1.mlp.up_proj"],
    "clip": ["blocks.0.mlp.fc1", "blocks.1.mlp.fc1"],
    "clip_classifier": ["blocks.0.mlp.fc1", "blocks.1.mlp.fc1", "logits"],
    "siglip_classifier": ["blocks.0.mlp.fc1", "blocks.1.mlp.fc1", "logits"],
    "mae": ["blocks.0.mlp.fc1", "blocks.1.mlp.fc1"],
    "mobilenet": ["stem", *(f"blocks.{at}" for at in range(16)), "head", "logits"],
    "dinov3_convnext": ["stages.0", "stages.1", "stages.2", "stages.3"],
    "convnext": ["stem", "stages.0", "stages.1", "stages.2", "stages.3", "logits"],
    "swin": ["layers.0.blocks.0.mlp.fc1", "layers.1.blocks.0.mlp.fc1", "logits"],
    "pvt": [*in_stages((0, 0), (1, 0), (1, 1), (2, 0), (3, 0)), "logits"],
    "poolformer": [*in_stages((0, 0), (1, 0), (2, 0), (3, 0)), "logits"],
}
GRIDS = {"pvt": (2, 2), "poolformer": (2, 2)} | {
    "wide_dino": (4, 8),
    "dinov2": (4, 4),
    "dinov3": (4, 4),
    "distilled": (4, 4),
    "clip": (4, 4),
    "swin": (4, 4),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory):
    """The folder of a checkpoint of that kind, written once."""
    top = tmp_path_factory.mktemp("checkpoints")

    def folder(kind: str) -> Path:
        place = top / kind
        return place if place.exists() else getattr(checkpoints, kind)(place)

    return folder


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_layers_have_the_names_of_the_papers_and_give_maps_of_their_units(made, kind) -> None:
    model = checkpoints.model(made(kind))
    layers = model.layers()
    assert [layer.name for layer in layers] == ARCHITECTURES[kind]
    found = model.maps(noise(3), ARCHITECTURES[kind])
    assert [found[layer.name].shape[:2] for layer in layers] == [(3, layer.units) for layer in layers]
    assert {each.dtype for each in found.values()} == {torch.float32}
    spatial = [found[layer.name].shape[2:] for layer in layers if layer.kind != "logit"]
    assert spatial[-1] == GRIDS.get(kind, spatial[-1])
    assert all(min(each) > 1 for each in spatial) or kind == "mobilenet"  # its last maps are 1 x 1


def test_a_network_that_was_trained_on_hidden_patches_sees_all_of_them_where_they_are(made) -> None:
    """ViT-MAE without its masking is a ViT, whose own code lays the patches out."""
    folder = made("mae")
    model = checkpoints.model(folder)
    first, again = (model.maps(noise(2), ["blocks.1.mlp.fc1"])["blocks.1.mlp.fc1"] for _ in range(2))
    assert first.shape[2:] == (4, 4)
    torch.testing.assert_close(first, again)
    trained = transformers.ViTMAEModel.from_pretrained(folder).eval()
    trained.config.mask_ratio = 0.0
    order = torch.arange(16.0).expand(2, 16)
    seen: list[torch.Tensor] = []
    fc1 = next(each for name, each in trained.named_modules() if name.endswith((".1.mlp.fc1", ".1.intermediate.dense")))
    fc1.register_forward_hook(lambda _, __, output: seen.append(output))
    with torch.no_grad():
        trained(**prepared(folder, 2), noise=order)
        trained(**prepared(folder, 2), noise=order.flip(1))
    torch.testing.assert_close(first.flatten(2), seen[0][:, 1:].transpose(1, 2), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(seen[1][:, 1:].flip(1), seen[0][:, 1:], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", ["clip_classifier", "siglip_classifier"])
def test_a_head_of_classes_on_an_image_side_is_seen(made, kind) -> None:
    model = checkpoints.model(made(kind))
    assert model.layers()[-1].names == CLASSES
    classifier = "CLIPForImageClassification" if kind == "clip_classifier" else "SiglipForImageClassification"
    with torch.no_grad():
        network = getattr(transformers, classifier).from_pretrained(made(kind)).eval()
        expected = network(**prepared(made(kind), 3)).logits
    torch.testing.assert_close(model.maps(noise(3), ["logits"])["logits"].flatten(1), expected, atol=1e-4, rtol=1e-4)
    assert model.evidence(noise(2), 1)[1].shape == (2, 4, 4)


def test_a_head_without_classes_is_none(tmp_path) -> None:
    config = transformers.ViTConfig(**checkpoints.BLOCKS, image_size=32, patch_size=8, num_labels=0)
    folder = checkpoints.saved(transformers.ViTForImageClassification, config, checkpoints.SQUARE, tmp_path / "vit")
    assert [layer.name for layer in checkpoints.model(folder).layers()] == ["blocks.0.mlp.fc1", "blocks.1.mlp.fc1"]


def test_resnet_gives_what_its_stages_give(made) -> None:
    folder = made("resnet")
    network = transformers.ResNetForImageClassification.from_pretrained(folder).eval()
    with torch.no_grad():
        expected = network(**prepared(folder, 3), output_hidden_states=True)
    found = checkpoints.model(folder).maps(noise(3), ARCHITECTURES["resnet"])
    for layer, truth in zip(ARCHITECTURES["resnet"][1:], expected.hidden_states, strict=False):
        torch.testing.assert_close(found[layer], truth, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(found["logits"].flatten(1), expected.logits, atol=1e-4, rtol=1e-4)
    raw = network.resnet.embedder.embedder.convolution(prepared(folder, 3)["pixel_values"]).detach()
    torch.testing.assert_close(found["conv1"], raw, atol=1e-4, rtol=1e-4)
    assert checkpoints.model(folder).layers()[-1].names == CLASSES


@pytest.mark.parametrize("kind", ["dino", "wide_dino", "clip"])
def test_mlp_units_are_read_before_their_nonlinearity_without_the_class_token(made, kind) -> None:
    folder = made(kind)
    tower = transformers.CLIPModel if kind == "clip" else transformers.ViTModel
    network = tower.from_pretrained(folder).eval()
    vision = network.vision_model if kind == "clip" else network
    blocks = (vision.encoder if hasattr(vision, "encoder") else vision).layers
    seen: list[torch.Tensor] = []
    blocks[1].mlp.fc1.register_forward_hook(lambda _, __, output: seen.append(output))
    with torch.no_grad():
        vision(**prepared(folder, 2))
    found = checkpoints.model(folder).maps(noise(2), ["blocks.1.mlp.fc1"])["blocks.1.mlp.fc1"]
    rows, columns = found.shape[2:]
    for row, column in ((0, 0), (1, 2), (rows - 1, columns - 1)):
        torch.testing.assert_close(found[:, :, row, column], seen[0][:, 1 + row * columns + column])
    assert found.min() < 0


def test_an_unknown_architecture_lists_all_that_gives_maps(made) -> None:
    model = checkpoints.model(made("swiftformer"))
    layers = model.layers()
    names = [layer.name for layer in layers]
    assert "swiftformer.encoder.network.2.blocks.0.linear.fc1" in names
    assert names[-1] == "logits"
    found = model.maps(noise(2), names)
    assert all(min(found[name].shape[2:]) > 1 for name in names[:-1])
    assert [found[layer.name].shape[1] for layer in layers] == [layer.units for layer in layers]


def test_a_layer_that_is_no_map_is_refused_with_what_it_gives(made) -> None:
    model = checkpoints.model(made("resnet"))
    with pytest.raises(
        UnknownName, match=r"'resnet.encoder' of hf:.* gives no tensor but .*Choose one of: conv1, stem, layer1"
    ):
        model.maps(noise(1), ["resnet.encoder"])
    with pytest.raises(UnknownName, match=r"has no 'layer9'.*layer4, logits"):
        model.maps(noise(1), ["layer9"])


def test_no_images_give_no_maps(made) -> None:
    model = checkpoints.model(made("resnet"))
    assert model.maps([], ["layer4"])["layer4"].shape[:2] == (0, 40)
    probabilities, maps = model.evidence([], 0)
    assert len(probabilities) == len(maps) == 0


def test_an_image_is_answered_alike_in_any_batch(made) -> None:
    together = checkpoints.model(made("resnet")).maps(noise(5), ["layer3"])["layer3"]
    by_two = checkpoints.model(made("resnet"), batch_size=2).maps(noise(5), ["layer3"])["layer3"]
    torch.testing.assert_close(together, by_two, atol=1e-5, rtol=1e-4)


def test_what_is_cropped_away_is_told(made) -> None:
    resnet, vit = checkpoints.model(made("resnet")), checkpoints.model(made("vit"))
    assert vit.find_visible((300, 200)) == (0, 0, 1, 1)
    assert resnet.find_visible((512, 512)) == pytest.approx((1 / 16, 1 / 16, 15 / 16, 15 / 16), abs=0.003)
    left, top, right, bottom = resnet.find_visible((800, 400))
    assert (left, right) == pytest.approx((9 / 32, 23 / 32), abs=0.003)
    assert (top, bottom) == pytest.approx((1 / 16, 15 / 16), abs=0.003)
    assert resnet.find_visible((1, 1)) == (0, 0, 1, 1)


def test_images_of_all_shapes_are_answered(made) -> None:
    model = checkpoints.model(made("vit"))
    images = [noise(1, size=size)[0] for size in ((1, 1), (640, 20), (31, 33))] + [noise(1)[0].convert("L")]
    assert model.maps(images, ["logits"])["logits"].isfinite().all()


def test_half_precision_gives_nearly_the_same_in_float32(made) -> None:
    full = checkpoints.model(made("resnet"))
    half = checkpoints.model(made("resnet"), precision="bfloat16")
    found = half.maps(noise(2), ["layer4"])["layer4"]
    assert found.dtype == torch.float32
    exact = full.maps(noise(2), ["layer4"])["layer4"]
    assert 0 < (found - exact).norm() < 0.05 * exact.norm()
    assert half.revision != full.revision


def test_two_threads_get_the_answers_to_their_own_images(made) -> None:
    model = checkpoints.model(made("resnet"))
    batches = [noise(2, seed) for seed in range(6)]

    def ask(at: int) -> tuple[torch.Tensor, np.ndarray]:
        layer = ("layer1", "layer4")[at % 2]
        return model.maps(batches[at], [layer])[layer], model.evidence(batches[at], at % 5)[1]

    expected = [ask(at) for at in range(6)]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(ask, list(range(6)) * 3))
    for number, (maps, evidence) in enumerate(found):
        torch.testing.assert_close(maps, expected[number % 6][0], atol=1e-5, rtol=1e-4)
        np.testing.assert_allclose(evidence, expected[number % 6][1], atol=1e-5)


def test_no_hook_stays(made) -> None:
    model = checkpoints.model(made("vit"))
    model.maps(noise(1), ["blocks.0.mlp.fc1"])
    model.evidence(noise(1), 1)
    with model._open().slot as network:
        assert not any(module._forward_hooks for module in network.modules())


@pytest.mark.parametrize("kind", ["resnet", "vit", "distilled", "dinov2", "convnext", "swin", "poolformer", "pvt"])
def test_evidence_is_a_probability_and_a_map(made, kind) -> None:
    model = checkpoints.model(made(kind))
    images = noise(4)
    every = [model.evidence(images, unit) for unit in range(len(CLASSES))]
    logits = model.maps(images, ["logits"])["logits"].flatten(1)
    np.testing.assert_allclose(np.stack([each[0] for each in every], 1), logits.softmax(1), atol=1e-5)
    assert all(maps.shape[0] == 4 and maps.min() >= 0 for _, maps in every)
    assert any(maps.max() > 0 for _, maps in every)


def test_evidence_of_a_linear_head_is_the_class_activation_map(made) -> None:
    """Behind a mean and a linear layer, Grad-CAM's weights are the head's, over the number of places."""
    folder = made("resnet")
    network = transformers.ResNetForImageClassification.from_pretrained(folder).eval()
    model = checkpoints.model(folder)
    layer4 = model.maps(noise(3), ["layer4"])["layer4"]
    weights = network.classifier[1].weight[2].detach() / layer4[0, 0].numel()
    expected = torch.einsum("u,buhw->bhw", weights, layer4).relu()
    np.testing.assert_allclose(model.evidence(noise(3), 2)[1], expected, atol=1e-5)


def test_a_model_without_classes_knows_no_evidence(made) -> None:
    with pytest.raises(UnknownName, match="has no classes"):
        checkpoints.model(made("dino")).evidence(noise(1), 0)
    with pytest.raises(UnknownName, match="classes from 0 to 4"):
        checkpoints.model(made("vit")).evidence(noise(1), 5)


def prepared(folder: Path, count: int) -> dict[str, torch.Tensor]:
    """Images as the processor of transformers prepares them, on its own."""
    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    return processor(noise(count), return_tensors="pt")
