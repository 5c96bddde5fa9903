"""torchvision's ResNets by narrow networks with random weights, against the arithmetic written out by key."""

from __future__ import annotations

import json
import pickle
import zipfile
from argparse import Namespace
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as f
from PIL import Image
from torch import Tensor

from tests.support.checkpoints import noise
from tests.support.torchvision_weights import STAGES, random_weights, saved
from workers import git_lfs, registry
from workers.errors import MissingPart, UnknownName
from workers.protocols import LabSettings
from workers.vision_models.torchvision_resnet import model as torchvision_resnet
from workers.vision_models.torchvision_resnet import weights as files
from workers.vision_models.torchvision_resnet.network import PLAIN, BasicBlock, Inside, ResNet, ResNetBottleneck

pytestmark = pytest.mark.usefixtures("one_thread")


class Options(dict[str, int]):
    """What a library keeps its settings in."""


LAYERS = ["conv1", *STAGES, "logits"]
BASIC, DEEP = (2, 1, 1, 1), (1, 2, 1, 1)


def reference(weights: dict[str, Tensor], x: Tensor) -> dict[str, Tensor]:
    """What torchvision computes, by the keys of its state dict alone."""

    def normed(name: str, y: Tensor) -> Tensor:
        mean, var = weights[f"{name}.running_mean"], weights[f"{name}.running_var"]
        return f.batch_norm(y, mean, var, weights[f"{name}.weight"], weights[f"{name}.bias"], eps=1e-5)

    def convolved(name: str, y: Tensor, stride: int = 1) -> Tensor:
        weight = weights[f"{name}.weight"]
        groups = y.shape[1] // weight.shape[1]
        return f.conv2d(y, weight, stride=stride, padding=weight.shape[2] // 2, groups=groups)

    found = {"conv1": convolved("conv1", x, 2)}
    x = f.max_pool2d(f.relu(normed("bn1", found["conv1"])), 3, 2, 1)
    for stage in STAGES:
        block = 0
        while f"{stage}.{block}.conv1.weight" in weights:
            at, stride = f"{stage}.{block}", 2 if block == 0 and stage != "layer1" else 1
            deep = f"{at}.conv3.weight" in weights
            y = f.relu(normed(f"{at}.bn1", convolved(f"{at}.conv1", x, 1 if deep else stride)))
            y = normed(f"{at}.bn2", convolved(f"{at}.conv2", y, stride if deep else 1))
            y = normed(f"{at}.bn3", convolved(f"{at}.conv3", f.relu(y))) if deep else y
            if f"{at}.downsample.0.weight" in weights:
                x = normed(f"{at}.downsample.1", convolved(f"{at}.downsample.0", x, stride))
            x, block = f.relu(x + y), block + 1
        found[stage] = x
    found["logits"] = f.linear(x.mean((2, 3)), weights["fc.weight"], weights["fc.bias"])[:, :, None, None]
    return found


def prepared(image: Image.Image) -> Tensor:
    """Resize(256), CenterCrop(224), ToTensor and Normalize, as torchvision documents them."""
    width, height = image.size
    wide = (256, int(256 * height / width)) if width <= height else (int(256 * width / height), 256)
    left, top = (round((side - 224) / 2.0) for side in wide)
    cut = image.convert("RGB").resize(wide, Image.Resampling.BILINEAR).crop((left, top, left + 224, top + 224))
    mean, deviation = (np.array(each, dtype=np.float32) for each in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
    return torch.from_numpy((np.asarray(cut, dtype=np.float32) / 255 - mean) / deviation).permute(2, 0, 1)[None]


@pytest.fixture(scope="module")
def deep() -> dict[str, Tensor]:
    return random_weights(ResNetBottleneck, DEEP)


@pytest.fixture
def file(deep: dict[str, Tensor], tmp_path: Path) -> Path:
    return saved(deep, tmp_path / "resnet.pth")


def load(name: object, **settings: object):
    return registry.load(registry.VISION_MODELS, f"torchvision:{name}")(LabSettings(Path("unused"), **settings))


@pytest.mark.parametrize(
    ("block", "depths", "inside"),
    [
        (BasicBlock, BASIC, PLAIN),
        (ResNetBottleneck, DEEP, PLAIN),
        (ResNetBottleneck, DEEP, Inside(Fraction(2))),
        (ResNetBottleneck, DEEP, Inside(Fraction(2), 4)),
    ],
    ids=["basic", "deep", "wide", "groups"],
)
def test_every_layer_gives_what_torchvision_computes(block, depths, inside, tmp_path) -> None:
    weights = random_weights(block, depths, inside)
    model = load(saved(weights, tmp_path / "resnet.pth"))
    images = [noise(1, size=size)[0] for size in ((300, 211), (64, 97))]
    found = model.maps(images, LAYERS)
    for at, image in enumerate(images):
        for name, expected in reference(weights, prepared(image)).items():
            torch.testing.assert_close(found[name][at : at + 1], expected, atol=1e-4, rtol=1e-4)
    assert [(info.name, info.units) for info in model.layers()] == [(name, found[name].shape[1]) for name in LAYERS]
    assert found["conv1"].shape[2:] == (112, 112)
    assert found["conv1"].min() < 0, "conv1 is read before its batch norm and ReLU"


def test_the_true_networks_have_as_many_weights_as_the_published_ones() -> None:
    """Counts of the published resnet18, 34, 50, 101, 152; wide_resnet50_2, 101_2; resnext50_32x4d, 101_32x8d,
    101_64x4d."""
    published = (
        (BasicBlock, (2, 2, 2, 2), PLAIN, 11_689_512),
        (BasicBlock, (3, 4, 6, 3), PLAIN, 21_797_672),
        (ResNetBottleneck, (3, 4, 6, 3), PLAIN, 25_557_032),
        (ResNetBottleneck, (3, 4, 23, 3), PLAIN, 44_549_160),
        (ResNetBottleneck, (3, 8, 36, 3), PLAIN, 60_192_808),
        (ResNetBottleneck, (3, 4, 6, 3), Inside(Fraction(2)), 68_883_240),
        (ResNetBottleneck, (3, 4, 23, 3), Inside(Fraction(2)), 126_886_696),
        (ResNetBottleneck, (3, 4, 6, 3), Inside(Fraction(2), 32), 25_028_904),
        (ResNetBottleneck, (3, 4, 23, 3), Inside(Fraction(4), 32), 88_791_336),
        (ResNetBottleneck, (3, 4, 23, 3), Inside(Fraction(4), 64), 83_455_272),
    )
    for block, depths, inside, count in published:
        with torch.device("meta"):
            network = ResNet(block, 64, dict(zip(STAGES, depths, strict=True)), 1000, inside)
        assert sum(weight.numel() for weight in network.parameters()) == count


def test_every_form_of_the_weights_gives_the_same(deep, file, tmp_path) -> None:
    folder = tmp_path / "hub"
    folder.mkdir()
    saved(deep, folder / "model.safetensors")
    plain = {key: value for key, value in deep.items() if "num_batches_tracked" not in key}
    half = {key: value.half() if value.is_floating_point() else value for key, value in deep.items()}
    expected = load(file).maps(noise(1), ["layer4"])["layer4"]
    for path in (folder, saved(plain, tmp_path / "old.pth")):
        torch.testing.assert_close(load(path).maps(noise(1), ["layer4"])["layer4"], expected)
    found = load(saved(half, tmp_path / "half.pth")).maps(noise(1), ["layer4"])["layer4"]
    torch.testing.assert_close(found, expected, atol=0.05, rtol=0.05)


def named(weights: Mapping[str, Tensor], start: str) -> dict[str, Tensor]:
    return {f"{start}{key}": value for key, value in weights.items()}


TRAINING = {"optimizer": {"state": {0: {"exp_avg": torch.zeros(2)}}, "param_groups": [{"lr": 0.1}]}, "epoch": 5}
CHECKPOINTS: dict[str, Callable[[dict[str, Tensor]], object]] = {
    "torchvision's script": lambda w: {"model": w, **TRAINING, "args": Namespace(lr=0.1, data=Path("/data"))},
    "Places365": lambda w: {"arch": "resnet18", "state_dict": named(w, "module."), "best_prec1": torch.tensor(54.0)},
    "torch.compile": lambda w: named(w, "_orig_mod."),
    "compiled and parallel": lambda w: {"model_state_dict": named(w, "_orig_mod.module.")},
    "Lightning": lambda w: {"state_dict": named(w, "model.backbone."), "callbacks": {}, "hyper_parameters": {"lr": 1}},
    "a criterion beside": lambda w: {"state_dict": {**named(w, "net."), "criterion.weight": torch.ones(5)}},
    "NumPy's numbers": lambda w: {"net": w, "acc": np.float64(54.3), "history": np.zeros(3)},
    "any key": lambda w: {"checkpoint": {"weights_of_last_epoch": w}},
}


@pytest.mark.parametrize("form", CHECKPOINTS)
def test_weights_are_found_in_checkpoints_of_training(form, deep, file, tmp_path) -> None:
    torch.save(CHECKPOINTS[form](deep), tmp_path / "checkpoint.ckpt")
    model, expected = load(tmp_path / "checkpoint.ckpt"), load(file).maps(noise(1), LAYERS)
    found = model.maps(noise(1), LAYERS)
    for layer in LAYERS:
        torch.testing.assert_close(found[layer], expected[layer])


def test_a_linear_head_may_have_any_name(deep, file, tmp_path) -> None:
    expected = load(file).maps(noise(1), ["logits"])["logits"]
    for at, name in enumerate(("fc.1.", "head.", "classifier.out.")):
        renamed = {key.replace("fc.", name): value for key, value in deep.items()}
        path = saved(renamed, tmp_path / f"{at}.pth")
        torch.testing.assert_close(load(path).maps(noise(1), ["logits"])["logits"], expected)


@pytest.mark.parametrize("head", [{}, {"fc.0.weight": (9, 256), "fc.0.bias": (9,), "fc.2.weight": (3, 9)}])
def test_layers_are_studied_without_a_head_that_is_understood(head, deep, file, tmp_path) -> None:
    trunk = {key: value for key, value in deep.items() if not key.startswith("fc.")}
    path = saved(trunk | {name: torch.zeros(shape) for name, shape in head.items()}, tmp_path / "trunk.pth")
    model = load(path)
    assert [layer.name for layer in model.layers()] == LAYERS[:-1]
    assert "without a head" in model.about()
    found = model.maps(noise(2), ["layer4"])["layer4"]
    torch.testing.assert_close(found, load(file).maps(noise(2), ["layer4"])["layer4"])
    torch.testing.assert_close(model.outputs(noise(2), "layer2"), found.mean((2, 3)))
    with pytest.raises(UnknownName, match="no head, so it knows no class 0"):
        model.evidence(noise(1), 0)
    with pytest.raises(UnknownName, match="no layer 'logits'"):
        model.maps(noise(1), ["logits"])


def test_the_part_seen_is_the_centre_that_is_cut_out(file) -> None:
    assert load(file).find_visible((512, 256)) == pytest.approx((144 / 512, 16 / 256, 368 / 512, 240 / 256))


def test_evidence_is_the_softmax_and_the_class_activation_map(deep, file) -> None:
    model = load(file)
    found = model.maps(noise(2), ["layer4", "logits"])
    signed = torch.einsum("cu,buhw->cbhw", deep["fc.weight"], found["layer4"]) / found["layer4"][0, 0].numel()
    assert signed.min() < -1e-3
    for unit in range(5):
        probabilities, maps = model.evidence(noise(2), unit)
        np.testing.assert_allclose(probabilities, found["logits"].flatten(1).softmax(1)[:, unit], atol=1e-6)
        np.testing.assert_allclose(maps, signed[unit].relu(), atol=1e-5)
    assert [len(each) for each in model.evidence([], 0)] == [0, 0]
    with pytest.raises(UnknownName, match="classes from 0 to 4"):
        model.evidence(noise(1), 5)


def test_classes_are_named_by_a_config_beside_the_weights(deep, tmp_path) -> None:
    path = saved(deep, tmp_path / "model.safetensors")
    assert load(path).layers()[-1].names == ()
    names = {str(at): f"kind {at}" for at in range(5)}
    (tmp_path / "config.json").write_text(json.dumps({"id2label": names}))
    assert load(path).layers()[-1].names == tuple(names.values())
    (tmp_path / "config.json").write_text(json.dumps({"id2label": {"0": "one too few"}}))
    assert load(path).layers()[-1].names == ()


def test_what_is_known_of_the_weights_is_said(file, tmp_path, deep, monkeypatch) -> None:
    assert "that torchvision did not publish" in load(file).about()
    monkeypatch.setitem(files.PUBLISHED, load(file).revision[:8], "IMAGENET1K_V1")
    assert load(file).about() == "torchvision's own file of IMAGENET1K_V1, by its hash"
    assert "nothing proves which" in load(saved(deep, tmp_path / "model.safetensors")).about()


def test_other_files_are_refused(deep, tmp_path, monkeypatch) -> None:
    def refused(words: str, weights: object = None, name: str = "other.pth") -> None:
        if weights is not None:
            torch.save(weights, tmp_path / name)
        with pytest.raises(MissingPart, match=words):
            load(tmp_path / name).layers()

    layer1 = r"layer1\.0\.conv1\.weight"
    refused(
        rf"no ResNet of torchvision: none of its 1 tensors is called {layer1}.*“fc.weight”",
        {"fc.weight": deep["bn1.bias"]},
    )
    refused(r"no ResNet of torchvision: it has no .*layer3", {k: v for k, v in deep.items() if "layer3" not in k})
    refused("there is no tensor in it", {"state_dict": {"conv1.weight": 3}})
    refused(
        r"2 networks, whose names begin with “student.net.”, “teacher.”",
        {"student": named(deep, "net."), "teacher": deep},
    )
    refused(r"objects that only code .*state_dict\(\)", {"model": deep, "options": Options(lr=1)})
    refused(r"does not fit.*layer2\.1\.bn2\.bias", {k: v for k, v in deep.items() if k != "layer2.1.bn2.bias"})
    refused(r"does not fit.*layer5", deep | {"layer5.weight": torch.zeros(1)})
    refused(r"does not fit.*size mismatch.*layer3", deep | {"layer3.0.conv2.weight": torch.zeros(3, 3)})
    (tmp_path / "text.pth").write_text("hello")
    refused("cannot be read as weights", name="text.pth")
    (tmp_path / "pointer.pth").write_bytes(git_lfs.MARK + b"v1\noid sha256:" + b"a" * 64 + b"\nsize 46830571\n")
    refused(r"pointer of Git LFS .*git lfs pull", name="pointer.pth")
    refused(r"no ResNet of torchvision: layer1\.0\.conv2", deep | {"layer1.0.conv2.weight": torch.zeros(8, 3, 3, 3)})
    monkeypatch.setattr(files, "MAX_BYTES", 1 << 20)
    with zipfile.ZipFile(tmp_path / "bomb.pth", "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("archive/data.pkl", bytes(2 << 20))
    refused("more than any ResNet", name="bomb.pth")


def test_code_in_a_file_is_never_run(deep, tmp_path) -> None:
    trace = tmp_path / "was here"

    class Trap:
        def __reduce__(self) -> tuple[object, tuple[Path]]:
            return Path.touch, (trace,)

    torch.save({"conv1.weight": Trap()}, tmp_path / "trap.pth", pickle_module=pickle)
    torch.save({"model": deep, "note": Trap()}, tmp_path / "old.pth", _use_new_zipfile_serialization=False)
    for name, words in (("trap.pth", "objects that only code"), ("old.pth", r"objects \(getattr\) that only code")):
        with pytest.raises(MissingPart, match=words):
            load(tmp_path / name).layers()
    assert not trace.exists()


def test_what_is_missing_is_said_with_the_command_and_the_address(file) -> None:
    def missing(name: object) -> str:
        return registry.missing(registry.VISION_MODELS, f"torchvision:{name}", LabSettings(Path("unused")))

    assert missing(file) == ""
    told = missing(torchvision_resnet.PAPER)
    assert "hf download timm/resnet152.tv_in1k" in told
    assert "resnet152-394f9c45.pth" in told
    assert "no folder" in missing("no/such/file.pth")
