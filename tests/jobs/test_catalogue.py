"""What a worker writes down of the plug-ins when it starts."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from django.contrib.auth.models import User
from django.utils import timezone

from experiments.models import Backbone, Dataset, Layer, LayerIndex, Toolset, Unit, UnitProfile, VisionModelRow
from tests.support import torchvision_weights
from tests.support.builders import make_run
from tests.support.checkpoints import CLASSES, resnet
from tests.support.glb_files import make_cone
from workers import registry
from workers.errors import Cancelled, MissingPart
from workers.jobs import briefing, catalogue, heartbeat, lease, long, registration
from workers.jobs import laboratory as place
from workers.vision_models.torchvision_resnet.network import BasicBlock

pytestmark = pytest.mark.usefixtures("laboratory", "one_thread")


def load_and_fail(_: object) -> None:
    raise ZeroDivisionError("three by nothing")


def test_every_plug_in_has_a_row_and_what_is_missing_has_its_command() -> None:
    long.write_catalogue()
    assert set(VisionModelRow.objects.values_list("name", flat=True)) == {
        key for key, _ in registry.choices(registry.VISION_MODELS)
    }
    toybox = VisionModelRow.objects.get(name="toybox")
    assert toybox.available
    assert [layer.name for layer in toybox.layers.all()][-1] == "logits"
    logits = toybox.layers.get(name="logits")
    assert len(logits.names) == logits.units
    resnet_152 = VisionModelRow.objects.get(name="hf:microsoft/resnet-152")
    assert not resnet_152.available
    assert "hf download microsoft/resnet-152" in resnet_152.remedy
    assert (Dataset.objects.get().key, Dataset.objects.get().images) == ("toybox", 20)
    assert dict(Backbone.objects.values_list("key", "available")) == {
        "scripted": True,
        "scripted-functions": True,
        "openai": False,
        "person": True,
    }
    assert "OPENAI_API_KEY" in Backbone.objects.get(key="openai").remedy
    toolsets = dict(Toolset.objects.values_list("key", "available"))
    assert toolsets == {key: key.startswith("toybox") for key in registry.TOOLSETS}
    assert Toolset.objects.get(key="diffusion").remedy.count("hf download") == 2


def test_files_of_toys_are_looked_at_and_what_is_left_out_is_logged_and_told(
    settings: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings.LAB_GAME_MODELS = str(tmp_path)
    make_cone().write(tmp_path / "beacon.glb")
    (tmp_path / "anvil.glb").write_bytes(b"no toy")
    assert heartbeat.list_problems() == []
    with caplog.at_level("WARNING"):
        catalogue.look_at_engine("toybox")
    told = "'anvil.glb': it is no glTF in binary form: it does not begin with glTF; export it as .glb."
    assert told in caplog.text
    assert heartbeat.list_problems() == [told]
    report = heartbeat.Heartbeat(1).report()
    assert report["problems"] == [told]
    assert heartbeat.summarize_report(report) != heartbeat.summarize_report(report | {"problems": []})
    assert "also knows beacon" in briefing.read_extras()


def test_units_of_the_paper_are_those_of_torchvisions_weights_and_of_no_others() -> None:
    assert "another unit" in VisionModelRow(name="hf:microsoft/resnet-152").weights
    assert registry.PAPER_RESNET in registry.weights_warning("hf:microsoft/resnet-50")
    assert registry.weights_warning(registry.PAPER_RESNET) == registry.weights_warning("hf:microsoft/swin-tiny") == ""
    assert "paper" in registry.label(registry.VISION_MODELS, registry.PAPER_RESNET)


def test_a_model_says_which_weights_it_has(tmp_path: Path) -> None:
    path = torchvision_weights.saved(
        torchvision_weights.random_weights(BasicBlock, (1, 1, 1, 1)), tmp_path / "resnet.pth"
    )
    row = catalogue.look_at_model(f"torchvision:{path}")
    assert row.weights == "in a file that torchvision did not publish, by its hash"


def test_with_a_key_the_backbone_is_there_with_its_models(settings) -> None:
    settings.OPENAI_API_KEY, settings.OPENAI_MODELS = "sk-test", ["gpt-4o", "gpt-4.1"]
    catalogue.write_backbone("openai")
    row = Backbone.objects.get()
    assert (row.available, row.remedy, row.model_names) == (True, "", ["gpt-4o", "gpt-4.1"])
    assert "sk-test" not in str(vars(row))


def test_a_plug_in_that_raises_stops_no_other_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = {
        "broken": ("A broken one", "tests.jobs.test_catalogue.load_and_fail"),
        "gone": ("Gone", "no.such.module.load"),
    }
    monkeypatch.setattr(registry, "VISION_MODELS", broken | {"toybox": registry.VISION_MODELS["toybox"]})
    catalogue.write_all()
    assert VisionModelRow.objects.get(name="toybox").available
    assert VisionModelRow.objects.get(name="broken").remedy == "ZeroDivisionError: three by nothing"
    assert "no" in VisionModelRow.objects.get(name="gone").remedy
    assert not VisionModelRow.objects.get(name="gone").available


def test_it_stops_with_its_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    lease.stopping.set()
    try:
        long.write_catalogue()
    finally:
        lease.stopping.clear()
    assert not VisionModelRow.objects.exists()
    with pytest.raises(Cancelled):
        catalogue.write_all(stop)


def stop(*_: object) -> None:
    raise Cancelled("enough")


def test_a_model_of_ones_own_has_its_layers_and_is_not_loaded_again(checkpoint: Path) -> None:
    row = registration.model(str(checkpoint))
    assert row.name == f"hf:{checkpoint}"
    assert (row.label, row.available, row.added is not None) == ("own-resnet", True, True)
    assert [(layer.name, layer.kind, layer.units) for layer in row.layers.all()] == [
        ("conv1", "conv", 8),
        ("stem", "conv", 8),
        ("layer1", "conv", 16),
        ("layer2", "conv", 24),
        ("layer3", "conv", 32),
        ("layer4", "conv", 40),
        ("logits", "logit", 5),
    ]
    logits = row.layers.get(name="logits")
    assert (logits.names, logits.scale) == (list(CLASSES), "softmax")
    assert not row.layers.exclude(name="logits").exclude(scale="")
    place.build_laboratory.cache_clear()
    catalogue.write_model(row.name)
    assert place.laboratory().settings.model_cache.loaded() == []
    row.refresh_from_db()
    assert row.available


@pytest.mark.parametrize(("precision", "rounds"), [("float32", False), ("bfloat16", True)])
def test_float32_is_not_rounded_to_tf32(
    precision: str, rounds: bool, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    settings.LAB_PRECISION = precision
    place.build_laboratory.cache_clear()
    place.laboratory()
    assert torch.backends.cudnn.allow_tf32 is rounds
    place.build_laboratory.cache_clear()


def test_an_older_row_learns_how_its_logits_become_probabilities(checkpoint: Path) -> None:
    row = registration.model(str(checkpoint))
    row.layers.update(scale="")
    catalogue.write_model(row.name)
    assert row.layers.get(name="logits").scale == "softmax"


def test_what_goes_missing_says_so_and_comes_back(checkpoint: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(checkpoint, tmp_path / "copy")
    row = registration.model(str(copy))
    (copy / "config.json").rename(tmp_path / "config.json")
    catalogue.write_model(row.name)
    row.refresh_from_db()
    assert not row.available
    assert "config.json" in row.remedy
    assert row.layers.count() == 7
    (tmp_path / "config.json").rename(copy / "config.json")
    catalogue.write_model(row.name)
    row.refresh_from_db()
    assert (row.available, row.remedy) == (True, "")


def test_new_weights_make_what_was_measured_out_of_date(tmp_path: Path) -> None:
    folder = resnet(tmp_path / "changing")
    row = registration.model(str(folder))
    layer = row.layers.get(name="layer1")
    toybox = Dataset.objects.create(key="toybox")
    profile = UnitProfile.objects.create(
        unit=Unit.objects.create(layer=layer, number=1), dataset=toybox, written=timezone.now()
    )
    LayerIndex.objects.create(layer=layer, dataset=toybox)
    shutil.rmtree(folder)
    resnet(folder, seed=1)
    place.build_laboratory.cache_clear()
    catalogue.write_model(row.name)
    assert Layer.objects.get(pk=layer.pk).units == 16
    assert VisionModelRow.objects.get().revision != row.revision
    assert not UnitProfile.objects.filter(pk=profile.pk).exists()
    assert not LayerIndex.objects.exists()


def test_a_layer_that_is_called_otherwise_keeps_its_units_and_its_runs(checkpoint: Path) -> None:
    """Other weights bring the list of layers anew; what an older list called conv1 is the stem."""
    row = registration.model(str(checkpoint))
    row.layers.get(name="conv1").delete()
    row.layers.filter(name="stem").update(name="conv1")
    unit = Unit.objects.create(layer=row.layers.get(name="conv1"), number=3)
    run = make_run(User.objects.create(username="asker"), model=row.name, layer="conv1")
    VisionModelRow.objects.update(revision="older")
    catalogue.write_model(row.name)
    assert [layer.name for layer in row.layers.all()][:3] == ["conv1", "stem", "layer1"]
    unit.refresh_from_db()
    run.refresh_from_db()
    assert (unit.layer.name, run.layer) == ("stem", "stem")


def test_a_changed_folder_makes_what_was_measured_out_of_date(photographs: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(photographs, tmp_path / "changing")
    row = registration.dataset(f"folder:{folder}", "Changing")
    assert (row.images, row.label) == (10, "Changing")
    Dataset.objects.update(broken_count=2, broken=[{"file": "a", "reason": "b"}])
    (folder / "below" / "3.png").unlink()
    place.build_laboratory.cache_clear()
    catalogue.write_dataset(row.key)
    row.refresh_from_db()
    assert (row.images, row.broken_count, row.broken, row.label) == (9, 0, [], "Changing")
    shutil.rmtree(folder)
    catalogue.write_dataset(row.key)
    row.refresh_from_db()
    assert not row.available
    assert str(folder) in row.remedy


def test_a_model_that_is_not_here_is_not_added() -> None:
    with pytest.raises(MissingPart, match="hf download nobody/nothing"):
        registration.model("nobody/nothing")
    assert not VisionModelRow.objects.exists()
