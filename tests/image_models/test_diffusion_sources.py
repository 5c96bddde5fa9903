"""Pipelines that are not there, not whole or of another trade: each error names the thing and the remedy."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import huggingface_hub.constants
import pytest

from tests.support import pipelines
from workers import registry
from workers.errors import MissingPart
from workers.protocols import LabSettings

pytestmark = [
    pytest.mark.filterwarnings(f"ignore:{pipelines.OLD_ARRAYS}:DeprecationWarning"),
    pytest.mark.usefixtures("one_thread"),
]
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    return pipelines.stable_diffusion(tmp_path_factory.mktemp("whole"))


@pytest.fixture
def folder(whole, tmp_path) -> Path:
    """A copy to spoil."""
    return Path(shutil.copytree(whole, tmp_path / "pipeline"))


@pytest.fixture
def cache(monkeypatch, tmp_path) -> Path:
    """An empty cache of Hugging Face."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def refusal(plugins, name, state) -> str:
    """Why a pipeline is refused; what is said to be missing must agree."""
    settings = LabSettings(state)
    with pytest.raises(MissingPart) as caught:
        registry.load(plugins, f"diffusion:{name}")(settings)
    assert registry.missing(plugins, f"diffusion:{name}", settings) == str(caught.value)
    return str(caught.value)


def refused(name, state) -> str:
    return refusal(registry.IMAGE_GENERATORS, name, state)


def test_weights_that_are_there_in_half_precision_alone_are_read(folder, tmp_path):
    settings = LabSettings(tmp_path, image_steps=1)
    (wanted,) = registry.load(registry.IMAGE_GENERATORS, f"diffusion:{folder}")(settings).generate(["a cat"], [0])
    for path in folder.glob("*/*.safetensors"):
        path.rename(path.with_suffix(".fp16.safetensors"))
    assert registry.missing(registry.IMAGE_GENERATORS, f"diffusion:{folder}", settings) == ""
    (found,) = registry.load(registry.IMAGE_GENERATORS, f"diffusion:{folder}")(settings).generate(["a cat"], [0])
    assert found.image == wanted.image


def test_a_snapshot_of_the_hub_is_found_by_its_id(whole, cache, tmp_path):
    snapshot = cache / "models--toys--drawing" / "snapshots" / COMMIT
    shutil.copytree(whole, snapshot)
    (cache / "models--toys--drawing" / "refs").mkdir()
    (cache / "models--toys--drawing" / "refs" / "main").write_text(COMMIT)
    settings = LabSettings(tmp_path, generator="toys/drawing", image_steps=1)
    assert registry.missing(registry.IMAGE_GENERATORS, "diffusion", settings) == ""
    found = registry.load(registry.IMAGE_GENERATORS, "diffusion")(settings)
    assert (found.name, found.revision) == ("toys/drawing", COMMIT)
    assert found.generate(["a cat"], [0])[0].image.size == (pipelines.SIDE, pipelines.SIDE)


def test_the_revision_of_a_folder_follows_its_files(whole, folder, tmp_path):
    load = registry.load(registry.IMAGE_GENERATORS, f"diffusion:{folder}")
    before = load(LabSettings(tmp_path)).revision
    assert before == registry.load(registry.IMAGE_GENERATORS, f"diffusion:{whole}")(LabSettings(tmp_path)).revision
    (folder / "README.md").write_text("Notes change nothing.")
    assert load(LabSettings(tmp_path)).revision == before
    (folder / "scheduler" / "scheduler_config.json").write_text("{}")
    assert load(LabSettings(tmp_path)).revision != before


@pytest.mark.parametrize(
    ("plugins", "key", "setting"),
    [(registry.IMAGE_GENERATORS, "generator", "MAIA_GENERATOR"), (registry.IMAGE_EDITORS, "editor", "MAIA_EDITOR")],
)
def test_an_id_that_is_not_here_comes_with_the_command_that_gets_it(cache, tmp_path, plugins, key, setting):
    said = registry.missing(plugins, "diffusion", LabSettings(tmp_path, **{key: "nobody/nothing"}))
    assert "'nobody/nothing' is not on this machine" in said
    assert "hf download nobody/nothing --include" in said
    assert setting in said
    assert "hf download stable-diffusion" in refused("stable-diffusion-v1-5/stable-diffusion-v1-5", tmp_path)


@pytest.mark.parametrize("name", ["/no/such/folder", "./nothing", "a b", "../..x/"])
def test_a_folder_that_is_not_there_is_named(cache, tmp_path, name):
    assert f"There is no folder {name!r}" in refused(name, tmp_path)


def test_a_folder_without_an_index_is_no_pipeline(tmp_path):
    assert f"{tmp_path} holds no model_index.json" in refused(tmp_path, tmp_path)


@pytest.mark.parametrize("text", ["{", "[1]", "\x00"])
def test_an_index_that_cannot_be_read_is_named(folder, tmp_path, text):
    (folder / "model_index.json").write_text(text)
    assert "model_index.json" in refused(folder, tmp_path)


def test_a_pipeline_of_another_trade_is_refused(whole, tmp_path):
    editing = pipelines.pix2pix(tmp_path / "editing")
    said = refused(editing, tmp_path)
    assert "StableDiffusionInstructPix2PixPipeline, not a text-to-image pipeline" in said
    said = refusal(registry.IMAGE_EDITORS, whole, tmp_path)
    assert "StableDiffusionPipeline, not a pipeline that edits by instruction" in said


@pytest.mark.parametrize(
    "kind", ["DDPMPipeline", "StableDiffusionImg2ImgPipeline", "StableDiffusionInpaintPipeline", "AnimateDiffPipeline"]
)
def test_pipelines_that_vary_fill_in_or_film_neither_draw_nor_edit(folder, tmp_path, kind):
    respell(folder, _class_name=kind)
    assert f"{kind}, not a text-to-image pipeline" in refused(folder, tmp_path)
    assert f"{kind}, not a pipeline that edits" in refusal(registry.IMAGE_EDITORS, folder, tmp_path)


@pytest.mark.parametrize("kind", ["NoSuchPipeline", ["pipeline", "Own"], None, "UNet2DConditionModel"])
def test_a_class_that_diffusers_does_not_have_is_refused(folder, tmp_path, kind):
    respell(folder, _class_name=kind)
    assert "code that comes with a pipeline is never run" in refused(folder, tmp_path)


@pytest.mark.parametrize("value", [["os", "system"], ["own_code", "Network"], ["diffusers", "NoSuch"], ["diffusers"]])
def test_code_that_comes_with_a_pipeline_is_never_run(folder, tmp_path, value):
    (folder / "unet" / "own_code.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Network: pass\n")
    respell(folder, unet=value)
    assert f"its unet is {value!r}" in refused(folder, tmp_path)
    assert not (tmp_path / "ran").exists()


def respell(folder: Path, **entries) -> None:
    path = folder / "model_index.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **entries}))


def test_weights_that_are_not_there_are_named(folder, tmp_path):
    (folder / "text_encoder" / "model.safetensors").rename(folder / "text_encoder" / "pytorch_model.bin")
    assert "text_encoder/ has its weights as .bin alone, which may run code" in refused(folder, tmp_path)
    shutil.rmtree(folder / "scheduler")
    assert "scheduler/ is missing" in refused(folder, tmp_path)


def test_a_shard_that_is_not_there_is_named(folder, tmp_path):
    (folder / "unet" / "diffusion_pytorch_model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {"conv_in.weight": "diffusion_pytorch_model-00002-of-00002.safetensors"}})
    )
    assert "unet/diffusion_pytorch_model-00002-of-00002.safetensors is missing" in refused(folder, tmp_path)


def test_an_index_of_shards_that_cannot_be_read_is_named(folder, tmp_path):
    (folder / "unet" / "diffusion_pytorch_model.safetensors.index.json").write_text("{}")
    assert "unet/diffusion_pytorch_model.safetensors.index.json cannot be read" in refused(folder, tmp_path)


def drawn(folder, state):
    settings = LabSettings(state, image_steps=1)
    return registry.load(registry.IMAGE_GENERATORS, f"diffusion:{folder}")(settings).generate(["a cat"], [0])


@pytest.mark.parametrize(
    ("part", "weight"),
    [("unet", "conv_in.weight"), ("text_encoder", "final_layer_norm.weight"), ("vae", "decoder.conv_in.bias")],
)
def test_a_checkpoint_without_all_weights_is_never_filled_up_with_chance(whole, tmp_path, part, weight):
    gone = pipelines.changed(whole, tmp_path / "gone", part, lambda name, value: None if weight in name else value)
    with pytest.raises(MissingPart, match=rf"{part} lacks \d of its weights, \S*{weight}.*save_pretrained"):
        drawn(gone, tmp_path)


def test_weights_of_another_shape_and_files_cut_short_are_named(whole, folder, tmp_path):
    wide = pipelines.changed(whole, tmp_path / "wide", "unet", lambda name, value: value.repeat_interleave(2, 0))
    with pytest.raises(MissingPart, match="unet does not load: "):
        drawn(wide, tmp_path)
    path = folder / "vae" / "diffusion_pytorch_model.safetensors"
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(MissingPart, match="vae does not load: "):
        drawn(folder, tmp_path)


def test_a_tokenizer_that_cannot_be_read_is_an_error_of_the_pipeline(folder, tmp_path):
    (folder / "tokenizer" / "tokenizer.json").write_text("{")
    with pytest.raises(MissingPart, match="cannot be used: "):
        drawn(folder, tmp_path)
