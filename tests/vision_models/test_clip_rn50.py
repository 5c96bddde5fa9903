"""CLIP's ResNet-50 by a narrow network with random weights, in every form in which the real ones are published."""

from __future__ import annotations

import pickle
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from tests.support.checkpoints import noise
from workers import registry
from workers.errors import MachineryError, MissingPart, UnknownName
from workers.protocols import LabSettings
from workers.vision_models.clip_rn50.network import AttentionPool, ClipImageEncoder

pytestmark = pytest.mark.usefixtures("one_thread")
NAMES = ["conv1", "layer1", "layer2", "layer3", "layer4"]
BLOCKS = {"layer1": 1, "layer2": 2, "layer3": 1, "layer4": 1}


class Both(torch.nn.Module):
    """The image side under the name it has in CLIP, beside something of the text side."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.visual = ClipImageEncoder(8, BLOCKS, side=2, outputs=16).eval()
        for weight in self.visual.parameters():
            weight.data += 0.05 * torch.randn_like(weight)
        self.logit_scale = torch.nn.Parameter(torch.tensor(4.6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.visual(x) * self.logit_scale


@pytest.fixture(scope="module")
def clip() -> Both:
    return Both()


def load(name: object, **settings: object):
    return registry.load(registry.VISION_MODELS, f"clip-rn50:{name}")(LabSettings(Path("unused"), **settings))


@pytest.fixture
def file(clip: Both, tmp_path: Path) -> Path:
    return saved(clip.state_dict(), tmp_path / "RN50.safetensors")


def saved(weights: dict[str, torch.Tensor], path: Path) -> Path:
    if path.suffix == ".safetensors":
        save_file({key: value.clone() for key, value in weights.items()}, path)
    else:
        torch.save(weights, path)
    return path


def archived(clip: Both, path: Path) -> Path:
    """A TorchScript archive, as OpenAI's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.jit.trace(clip, torch.zeros(1, 3, 64, 64)).save(str(path))
    return path


def test_layers_are_the_stem_and_the_stages(file) -> None:
    layers = load(file).layers()
    assert [(layer.name, layer.units, layer.kind) for layer in layers] == [
        (name, units, "conv") for name, units in zip(NAMES, (8, 32, 64, 128, 256), strict=True)
    ]
    found = load(file).maps(noise(3), NAMES)
    assert [found[name].shape for name in NAMES] == [
        (3, 8, 32, 32), (3, 32, 16, 16), (3, 64, 8, 8), (3, 128, 4, 4), (3, 256, 2, 2)
    ]  # fmt: skip
    assert all(each.dtype == torch.float32 and each.min() >= 0 for each in found.values())


def test_every_published_form_gives_the_same(clip, file, tmp_path) -> None:
    expected = load(file).maps(noise(2), ["layer4"])["layer4"]
    half = {key: value.half() if value.is_floating_point() else value for key, value in clip.state_dict().items()}
    wrapped = {"state_dict": {f"module.{key}": value for key, value in clip.state_dict().items()}}
    folder = tmp_path / "folder"
    folder.mkdir()
    shutil.copy(file, folder / "open_clip_model.safetensors")
    for path in (
        saved(clip.state_dict(), tmp_path / "plain.pt"),
        saved(clip.visual.state_dict(), tmp_path / "side.pt"),
        saved(wrapped, tmp_path / "wrapped.pt"),
        archived(clip, tmp_path / "RN50.pt"),
        folder,
    ):
        torch.testing.assert_close(load(path).maps(noise(2), ["layer4"])["layer4"], expected)
    found = load(saved(half, tmp_path / "half.pt")).maps(noise(2), ["layer4"])["layer4"]
    torch.testing.assert_close(found, expected, atol=0.02, rtol=0.05)


def test_the_true_network_has_as_many_weights_as_the_published_one() -> None:
    with torch.device("meta"):
        network = ClipImageEncoder(64, {"layer1": 3, "layer2": 4, "layer3": 6, "layer4": 3}, side=7, outputs=1024)
    assert sum(weight.numel() for weight in network.parameters()) == 38_316_896
    assert network.input == 224
    assert list(network.widths.values()) == [64, 256, 512, 1024, 2048]


def test_attention_pools_as_multi_head_attention_does() -> None:
    torch.manual_seed(0)
    pool = AttentionPool(3, 128, 10)
    torch.nn.init.normal_(pool.positional_embedding)
    x = torch.randn(2, 128, 3, 3)
    tokens = torch.cat([x.mean((2, 3))[None], x.flatten(2).permute(2, 0, 1)]) + pool.positional_embedding[:, None]
    projections = (pool.q_proj, pool.k_proj, pool.v_proj)
    expected, _ = torch.nn.functional.multi_head_attention_forward(
        tokens[:1], tokens, tokens, 128, 2, None, torch.cat([each.bias for each in projections]),
        None, None, False, 0.0, pool.c_proj.weight, pool.c_proj.bias, training=False, use_separate_proj_weight=True,
        q_proj_weight=pool.q_proj.weight, k_proj_weight=pool.k_proj.weight, v_proj_weight=pool.v_proj.weight,
    )  # fmt: skip
    torch.testing.assert_close(pool(x), expected[0], atol=1e-5, rtol=1e-4)


def test_the_centre_is_seen_and_normalised(clip, file) -> None:
    model = load(file)
    assert model.find_visible((64, 64)) == (0, 0, 1, 1)
    assert model.find_visible((200, 100)) == (0.25, 0, 0.75, 1)
    image = noise(1, size=(64, 64))[0]
    mean, deviation = np.array([0.4815, 0.4578, 0.4082]), np.array([0.2686, 0.2613, 0.2758])
    pixels = torch.tensor(((np.asarray(image) / 255 - mean) / deviation).transpose(2, 0, 1)[None], dtype=torch.float32)
    with torch.no_grad():
        expected = clip.visual.maps(pixels)["layer2"]
    torch.testing.assert_close(model.maps([image], ["layer2"])["layer2"], expected, atol=1e-3, rtol=1e-3)


def test_the_revision_is_that_of_the_file(clip, file) -> None:
    before = load(file).revision
    changed = {**clip.state_dict(), "visual.bn1.bias": clip.visual.bn1.bias + 1}
    saved(changed, file)
    assert load(file).revision != before
    assert load(file, precision="bfloat16").revision == f"{load(file).revision}-bfloat16"


def test_weights_that_lack_or_add_something_are_refused(clip, tmp_path) -> None:
    weights = clip.state_dict()
    lacking = {key: value for key, value in weights.items() if "layer2.1.bn2.bias" not in key}
    with pytest.raises(MissingPart, match=r"lacks layer2\.1\.bn2\.bias \(1\)"):
        load(saved(lacking, tmp_path / "lacking.pt")).layers()
    more = {**weights, "visual.layer5.weight": torch.zeros(1)}
    with pytest.raises(MissingPart, match=r"has besides layer5\.weight \(1\)"):
        load(saved(more, tmp_path / "more.pt")).layers()
    other = {**weights, "visual.layer3.0.conv2.weight": torch.zeros(3, 3)}
    with pytest.raises(MissingPart, match=r"does not fit.*layer3\.0\.conv2\.weight"):
        load(saved(other, tmp_path / "other.pt")).layers()


def test_other_files_are_refused(tmp_path) -> None:
    with pytest.raises(MissingPart, match=r"no ResNet of CLIP.*hf download timm/resnet50_clip\.openai"):
        load(saved({"fc.weight": torch.zeros(2)}, tmp_path / "vit.pt")).layers()
    with pytest.raises(MissingPart, match="no tensor in it"):
        load(saved({"visual.conv1.weight": 3}, tmp_path / "numbers.pt")).layers()  # type: ignore[dict-item]
    (tmp_path / "text.pt").write_text("hello")
    with pytest.raises(MissingPart, match="cannot be read as weights"):
        load(tmp_path / "text.pt").layers()
    (tmp_path / "text.safetensors").write_text("hello")
    with pytest.raises(MissingPart, match="cannot be read as weights"):
        load(tmp_path / "text.safetensors").layers()


def test_code_in_a_file_is_never_run(clip, tmp_path) -> None:
    trace = tmp_path / "was here"

    class Trap:
        def __reduce__(self) -> tuple[object, tuple[Path]]:
            return Path.touch, (trace,)

    torch.save({"visual.conv1.weight": Trap()}, tmp_path / "trap.pt", pickle_module=pickle)
    archive = archived(clip, tmp_path / "archive.pt")
    spoilt(archive, pickle.dumps(Trap()))
    for path in (tmp_path / "trap.pt", archive):
        with pytest.raises(MissingPart, match="objects that only code"):
            load(path).layers()
    assert not trace.exists()


def spoilt(archive: Path, data: bytes) -> None:
    """Replace the pickle in an archive."""
    import zipfile

    with zipfile.ZipFile(archive) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    with zipfile.ZipFile(archive, "w") as file:
        for name, content in parts.items():
            file.writestr(name, data if name.endswith("data.pkl") else content)


def test_numbers_that_are_none_are_the_operators_business(clip, tmp_path) -> None:
    weights = {**clip.state_dict(), "visual.layer3.0.bn1.bias": clip.visual.layer3[0].bn1.bias * float("nan")}
    with pytest.raises(MachineryError, match=r"layer3 of clip-rn50:.* no finite numbers"):
        load(saved(weights, tmp_path / "nan.pt")).maps(noise(1), ["layer3"])


def test_what_is_missing_is_said_with_the_command(file) -> None:
    def missing(name: object) -> str:
        return registry.missing(registry.VISION_MODELS, f"clip-rn50:{name}", LabSettings(Path("unused")))

    assert missing(file) == ""
    assert "hf download timm/resnet50_clip.openai" in missing("timm/resnet50_clip.openai")
    assert "open_clip_model.safetensors" in missing(file.parent)
    with pytest.raises(UnknownName, match="no folder"):
        load("no/such/file.pt").layers()
    with pytest.raises(UnknownName, match=r"no layer 'layer5'.*conv1, layer1"):
        load(file).maps(noise(1), ["layer5"])
