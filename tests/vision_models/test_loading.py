"""How checkpoints are found and loaded: folders, the hub's cache, and whatever may be wrong with them."""

from __future__ import annotations

import json
import pickle
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import huggingface_hub
import pytest
import torch
import transformers

from tests.support import checkpoints
from tests.support.checkpoints import noise
from workers import git_lfs, registry
from workers.errors import MachineryError, MissingPart, UnknownName
from workers.jobs.laboratory import fetching
from workers.protocols import LabSettings
from workers.vision_models.huggingface import model as huggingface

pytestmark = pytest.mark.usefixtures("one_thread")
COMMIT = "0123456789abcdef0123456789abcdef01234567"
SETTINGS = LabSettings(Path("unused"))


@pytest.fixture(scope="module")
def resnet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkpoints.resnet(tmp_path_factory.mktemp("made") / "resnet")


@pytest.fixture
def folder(resnet: Path, tmp_path: Path) -> Path:
    """A copy to spoil."""
    return Path(shutil.copytree(resnet, tmp_path / "resnet"))


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the hub, and no network."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    return tmp_path / "cache"


def missing(name: object) -> str:
    return registry.missing(registry.VISION_MODELS, f"hf:{name}", SETTINGS)


def test_a_relative_folder_stays_found_when_the_process_moves(folder, monkeypatch) -> None:
    monkeypatch.chdir(folder.parent)
    model = checkpoints.model("resnet")
    monkeypatch.chdir("/")
    assert len(model.layers()) == 7
    assert model.name == "hf:resnet"


def test_a_cached_id_loads_as_a_folder_does(resnet, hub_cache) -> None:
    place = hub_cache / "models--team--tiny-resnet"
    shutil.copytree(resnet, place / "snapshots" / COMMIT)
    (place / "refs").mkdir()
    (place / "refs" / "main").write_text(COMMIT)
    assert missing("team/tiny-resnet") == ""
    model = checkpoints.model("team/tiny-resnet")
    assert model.revision.startswith(COMMIT[:12])
    expected = checkpoints.model(resnet).maps(noise(2), ["layer4"])["layer4"]
    torch.testing.assert_close(model.maps(noise(2), ["layer4"])["layer4"], expected)


def test_a_missing_id_is_named_with_the_command_that_gets_it(hub_cache) -> None:
    assert "hf download microsoft/resnet-152" in missing("microsoft/resnet-152")
    model = checkpoints.model("microsoft/resnet-152")
    with pytest.raises(MissingPart, match="hf download microsoft/resnet-152"):
        model.layers()
    with pytest.raises(MissingPart, match="hf download microsoft/resnet-152"):
        _ = model.revision


class Hub:
    """A hub on loopback that knows nothing; `asked` holds the paths of the requests."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                hub.asked.append(self.path)
                self.send_response(503)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Nothing on the terminal."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()


@pytest.fixture
def reachable_hub(hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    hub = Hub()
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", f"http://127.0.0.1:{hub.server.server_port}")
    yield hub
    hub.server.shutdown()
    hub.server.server_close()


def test_nothing_is_fetched_unasked_and_a_hub_in_trouble_is_asked_once(reachable_hub: Hub) -> None:
    with pytest.raises(MissingPart, match=r"hf download team/none$"):
        checkpoints.model("team/none").layers()
    assert reachable_hub.asked == []
    with fetching(allowed=True):
        assert missing("team/none") == ""
        with pytest.raises(MissingPart, match=r"hf download team/none \(the hub cannot be reached: .*503"):
            checkpoints.model("team/none").layers()
    assert [path for path in reachable_hub.asked if "team/none" in path] == ["/api/models/team/none"]
    assert "hf download" in missing("team/none")


def test_a_cached_id_without_its_weights_is_missing(resnet, hub_cache) -> None:
    place = hub_cache / "models--team--half"
    (place / "snapshots" / COMMIT).mkdir(parents=True)
    (place / "refs").mkdir()
    (place / "refs" / "main").write_text(COMMIT)
    shutil.copy(resnet / "config.json", place / "snapshots" / COMMIT)
    assert "hf download team/half" in missing("team/half")


def test_what_is_neither_a_folder_nor_an_id_is_said_to_be_so(hub_cache) -> None:
    assert "no folder 'no/such/folder'" in missing("no/such/folder")
    with pytest.raises(UnknownName, match=r"no folder 'no/such/folder'.*microsoft/resnet-152"):
        checkpoints.model("no/such/folder").layers()


@pytest.mark.parametrize("file", ["config.json", "preprocessor_config.json", "model.safetensors"])
def test_a_folder_that_lacks_a_file_is_refused_with_its_name(folder, file) -> None:
    (folder / file).unlink()
    assert file in missing(folder)
    with pytest.raises(MissingPart, match=rf"{folder} has no {file}.*save_pretrained"):
        checkpoints.model(folder).layers()


def test_shards_are_found_and_a_missing_one_is_noticed(folder) -> None:
    network = transformers.ResNetForImageClassification.from_pretrained(folder)
    (folder / "model.safetensors").unlink()
    network.save_pretrained(folder, max_shard_size="20KB")
    assert missing(folder) == ""
    assert checkpoints.model(folder).maps(noise(1), ["layer4"])["layer4"].shape[1] == 40
    shards = set(json.loads((folder / "model.safetensors.index.json").read_text())["weight_map"].values())
    assert len(shards) > 1
    (folder / sorted(shards)[0]).unlink()
    assert f"has no {sorted(shards)[0]}, of the shards that model.safetensors.index.json lists" in missing(folder)


SENSELESS = [
    b"{...}",
    b'{"a": {"data_offsets": [0, "end"]}}',
    b'{"a": {"data_offsets": [0, 1e999]}}',
    b'{"a": {"data_offsets": [0, [1]]}}',
    b"[" * 200_000,
]
"""Headers of safetensors files that say nothing."""


def test_what_headers_tell_of_damage_is_told_before_anything_is_loaded(folder) -> None:
    weights = folder / "model.safetensors"
    whole = weights.read_bytes()
    damaged = [
        ("its header speaks of", whole[:-100]),
        ("no safetensors file", b"no numbers"),
        *(("makes no sense", len(header).to_bytes(8, "little") + header) for header in SENSELESS),
    ]
    for told, content in damaged:
        weights.write_bytes(content)
        assert f"{weights} is damaged" in missing(folder)
        assert told in missing(folder)
    weights.write_bytes(whole)
    assert missing(folder) == ""
    for text in ("{", "[" * 200_000):
        (folder / "preprocessor_config.json").write_text(text)
        assert "preprocessor_config.json is damaged" in missing(folder)


def test_what_a_clone_did_not_fetch_is_told_from_what_is_damaged(folder) -> None:
    (folder / "model.safetensors").write_bytes(git_lfs.MARK + b"v1\noid sha256:" + b"a" * 64 + b"\nsize 3443\n")
    assert "model.safetensors is a pointer of Git LFS and not the file itself: run `git lfs pull`" in missing(folder)


def test_a_pickle_is_looked_at_without_being_run(folder) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return Path, ("x",)

    weights = folder / "pytorch_model.bin"
    (folder / "model.safetensors").unlink()
    torch.save({"classifier.1.weight": torch.zeros(2)}, weights)
    assert missing(folder) == ""
    weights.write_bytes(weights.read_bytes()[:200])
    assert "no file of PyTorch, or cut short" in missing(folder)
    torch.save({"classifier.1.weight": Trap()}, weights, pickle_module=pickle)
    assert "it would run code, so it is not loaded" in missing(folder)


def test_checkpoints_of_other_libraries_are_named_with_what_to_do(hub_cache, tmp_path) -> None:
    place = hub_cache / "models--timm--resnet50.tv_in1k"
    (place / "snapshots" / COMMIT).mkdir(parents=True)
    (place / "refs").mkdir()
    (place / "refs" / "main").write_text(COMMIT)
    about = {"architecture": "resnet50", "pretrained_cfg": {"tag": "tv_in1k"}}
    (place / "snapshots" / COMMIT / "config.json").write_text(json.dumps(about))
    told = missing("timm/resnet50.tv_in1k")
    assert "a checkpoint of timm, which is not supported" in told
    assert "torchvision:timm/resnet50.tv_in1k" in told
    with pytest.raises(MissingPart, match="a checkpoint of timm"):
        checkpoints.model("timm/resnet50.tv_in1k").layers()
    (tmp_path / "resnet152-394f9c45.pth").touch()
    assert f"torchvision:{tmp_path}/resnet152-394f9c45.pth" in missing(tmp_path)
    words = checkpoints.language(tmp_path / "bert")
    (words / "preprocessor_config.json").unlink()
    assert "is no image model: its config says 'bert'" in missing(words)


def test_missing_weights_are_refused_by_name(folder) -> None:
    checkpoints.alter(folder, "resnet.encoder.stages.3.layers.0.layer.0.convolution.weight", lambda _: None)
    model = checkpoints.model(folder)
    with pytest.raises(MissingPart, match=r"lack 1 of those .*resnet\.encoder\.stages\.3.*whole checkpoint again"):
        model.maps(noise(1), ["layer4"])


def test_a_head_without_weights_is_refused(folder) -> None:
    checkpoints.alter(folder, "classifier.1.weight", lambda _: None)
    with pytest.raises(MissingPart, match=r"classifier\.1\.weight"):
        checkpoints.model(folder).maps(noise(1), ["logits"])


def test_weights_of_another_shape_are_refused(folder) -> None:
    checkpoints.alter(folder, "classifier.1.weight", lambda tensor: tensor[:3].clone())
    with pytest.raises(MissingPart, match=r"cannot be loaded"):
        checkpoints.model(folder).maps(noise(1), ["logits"])


def test_damaged_weights_are_refused(folder) -> None:
    (folder / "model.safetensors").write_bytes(b"no numbers")
    with pytest.raises(MissingPart, match=r"cannot be loaded.*Fetch or save the checkpoint again"):
        checkpoints.model(folder).maps(noise(1), ["layer4"])


def test_a_pickle_that_runs_code_is_refused(folder, tmp_path) -> None:
    trace = tmp_path / "was here"

    class Trap:
        def __reduce__(self) -> tuple[object, tuple[Path]]:
            return Path.touch, (trace,)

    (folder / "model.safetensors").unlink()
    torch.save({"classifier.1.weight": Trap()}, folder / "pytorch_model.bin", pickle_module=pickle)
    with pytest.raises(MissingPart, match="cannot be loaded"):
        checkpoints.model(folder).maps(noise(1), ["layer4"])
    assert not trace.exists()


def test_code_in_a_checkpoint_is_refused(folder, tmp_path) -> None:
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'was here')!r}, 'w')")
    checkpoints.configure(folder, model_type="evil", auto_map={"AutoConfig": "evil.Config", "AutoModel": "evil.Model"})
    with pytest.raises(MissingPart, match=r"config\.json"):
        checkpoints.model(folder).layers()
    assert not (tmp_path / "was here").exists()


def test_a_damaged_config_is_refused(folder) -> None:
    (folder / "config.json").write_text("{")
    with pytest.raises(MissingPart, match=r"cannot read the config\.json of"):
        checkpoints.model(folder).layers()


def test_a_processor_that_cannot_be_read_is_refused(folder) -> None:
    (folder / "preprocessor_config.json").write_text("{")
    with pytest.raises(MissingPart, match="image processor in"):
        checkpoints.model(folder).layers()


def test_a_model_of_words_is_refused(tmp_path) -> None:
    with pytest.raises(UnknownName, match=r"is no image model: its config says 'bert'"):
        checkpoints.model(checkpoints.language(tmp_path / "bert")).layers()


def test_a_model_for_other_images_is_refused(tmp_path) -> None:
    config = transformers.ViTConfig(**checkpoints.BLOCKS, image_size=32, patch_size=8, num_channels=1)
    grey = checkpoints.saved(transformers.ViTModel, config, checkpoints.SQUARE, tmp_path / "grey")
    with pytest.raises(MissingPart, match=r"cannot look at single images of 32 x 32 pixels"):
        checkpoints.model(grey).layers()


def test_a_processor_for_grey_images_is_refused_in_a_sentence(folder) -> None:
    path = folder / "preprocessor_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "image_mean": [0.5], "image_std": [0.5]}))
    with pytest.raises(MissingPart, match=r"is for images of 1 channel, not for colour images"):
        checkpoints.model(folder).layers()


def test_numbers_that_are_none_are_the_operators_business(folder) -> None:
    name = "resnet.encoder.stages.2.layers.0.layer.0.convolution.weight"
    checkpoints.alter(folder, name, lambda tensor: tensor * float("nan"))
    model = checkpoints.model(folder)
    with pytest.raises(MachineryError, match=r"layer4 of hf:.* no finite numbers.*MAIA_PRECISION=float32"):
        model.maps(noise(1), ["layer4"])
    with pytest.raises(MachineryError, match="no finite numbers"):
        model.evidence(noise(1), 0)
    assert model.maps(noise(1), ["layer2"])["layer2"].isfinite().all()


def test_the_revision_follows_the_files(folder) -> None:
    before = checkpoints.model(folder)
    assert before.revision == checkpoints.model(folder).revision
    checkpoints.alter(folder, "classifier.1.bias", lambda tensor: tensor + 1)
    after = checkpoints.model(folder)
    assert after.revision != before.revision
    with pytest.raises(MachineryError, match="replaced meanwhile"):
        before.maps(noise(1), ["layer4"])
    config = folder / "preprocessor_config.json"
    config.write_text(config.read_text().replace("0.3", "0.31"))
    assert checkpoints.model(folder).revision != after.revision


def test_the_revision_follows_the_way_in_which_layers_are_read(folder, monkeypatch) -> None:
    before = checkpoints.model(folder).revision
    monkeypatch.setattr(huggingface, "READING", huggingface.READING + 1)
    assert checkpoints.model(folder).revision != before


def test_the_revision_needs_no_weights_loaded(folder) -> None:
    settings = LabSettings(Path("unused"))
    model = registry.load(registry.VISION_MODELS, f"hf:{folder}")(settings)
    assert model.revision
    assert len(model.layers()) == 7
    assert settings.model_cache.loaded() == []
    model.maps(noise(1), ["layer4"])
    assert [each.name for each in settings.model_cache.loaded()] == [f"hf:{folder} {model.revision}"]
