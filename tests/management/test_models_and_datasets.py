"""`manage.py models` and `manage.py datasets`: what is there, what is missing, adding, indexing, removing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from experiments.core import notify
from experiments.models import Dataset, LayerIndex, VisionModelRow
from tests.support import checkpoints
from tests.support.checkpoints import noise

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("laboratory", "one_thread")]


@pytest.fixture(autouse=True)
def heard_again() -> Iterator[None]:
    """The commands work without Redis, and say so to the whole process."""
    yield
    notify.muted.clear()


def said(*words: str) -> str:
    out = StringIO()
    call_command(*words, stdout=out)
    return out.getvalue()


def test_models_lists_what_is_installed_and_how_to_get_the_rest(checkpoint: Path) -> None:
    said("models", str(checkpoint))
    found = {each["name"]: each for each in json.loads(said("models", "--json"))}
    assert found["toybox"]["installed"]
    assert not found["hf:microsoft/resnet-152"]["installed"]
    assert found[f"hf:{checkpoint}"]["layers"] == 7
    told = said("models")
    assert "hf download microsoft/resnet-152" in told
    assert f"hf:{checkpoint}" in told


def test_models_lists_the_layers_of_one_and_has_the_form_offer_it(
    checkpoint: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(checkpoint.parent)
    lines = said("models", f"hf:{checkpoint.name}").splitlines()
    assert [line.split() for line in lines][:2] == [["conv1", "conv", "8"], ["stem", "conv", "8"]]
    assert len(lines) == 7
    assert VisionModelRow.objects.get().name == f"hf:{checkpoint}"
    assert json.loads(said("models", str(checkpoint), "--json"))[-1]["names"][0] == "cat"
    said("models", str(checkpoint), "--remove")
    assert not VisionModelRow.objects.exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("models", "resnet"), "There is no model 'resnet'. Choose one of: toybox"),
        (("models", "nobody/nothing"), "hf download nobody/nothing"),
        (("models", "hf:/no/such/folder"), "/no/such/folder"),
        (("models", "x" * 201 + "/y"), "at most 200"),
        (("models", "toybox", "--remove"), "No model 'toybox' was added"),
        (("datasets", "add", "/no/such/folder"), "There is no folder /no/such/folder"),
        (("datasets", "add", ""), "There is no folder without a name"),
        (("datasets", "add", "saved:/no/such/folder"), "/no/such/folder"),
        (("datasets", "index", "birds", "--model", "toybox"), "There is no dataset 'birds'"),
        (("datasets", "remove", "birds"), "There is no dataset 'birds'"),
    ],
)
def test_what_does_not_exist_is_named_with_the_remedy(words: tuple[str, ...], says: str) -> None:
    with pytest.raises(CommandError, match=says):
        said(*words)
    assert not VisionModelRow.objects.exists()
    assert not Dataset.objects.exists()


def test_for_a_model_of_ones_own_nothing_of_toybox_is_taken_unasked(checkpoint: Path) -> None:
    unit = ("--model", f"hf:{checkpoint}", "--layer", "layer4", "--unit", "1")
    with pytest.raises(CommandError, match=r"Name --toolset, one of toybox, diffusion and --dataset"):
        said("investigate", *unit)
    with pytest.raises(CommandError, match=r"unasked\. Name --dataset \("):
        said("investigate", *unit, "--toolset", "toybox")


def test_a_database_of_another_version_is_refused_with_the_command_that_mends_it() -> None:
    applied = MigrationRecorder(connection)
    newest = max(name for app, name in applied.applied_migrations() if app == "experiments")
    applied.record_unapplied("experiments", newest)
    try:
        with pytest.raises(CommandError, match=f"lacks 1 changes.*{newest}.*manage.py migrate"):
            said("models")
    finally:
        applied.record_applied("experiments", newest)


def test_a_folder_is_added_indexed_listed_and_removed(
    checkpoint: Path,
    photographs: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(photographs.parent)
    assert "10 images, called Birds" in said("datasets", "add", "photographs", "--name", "Birds")
    assert "called Birds" in said("datasets", "add", "photographs")
    told = said("datasets", "index", "Birds", "--model", str(checkpoint), "--layers", "layer1", "layer4")
    assert "2 files are left out" in told
    assert "broken <b>.jpg: " in told
    assert set(LayerIndex.objects.values_list("layer__name", flat=True)) == {"layer1", "layer4"}
    (listed, toybox) = json.loads(said("datasets", "--json"))
    assert (listed["key"], listed["broken"], len(listed["indexed"])) == (f"folder:{photographs}", 2, 2)
    assert toybox["key"] == "toybox"
    assert "indexed: " in said("datasets")
    with pytest.raises(CommandError, match="has no layer 'layer9'"):
        said("datasets", "index", str(photographs), "--model", str(checkpoint), "--layers", "layer9")
    with pytest.raises(CommandError, match="belongs to the installation"):
        said("datasets", "remove", "toybox")
    said("datasets", "remove", str(photographs))
    assert [row.key for row in Dataset.objects.all()] == ["toybox"]
    assert (photographs / "below").is_dir()


def test_published_exemplars_are_indexed_for_their_layers_and_of_other_weights_if_somebody_insists(
    checkpoint: Path,
    tmp_path: Path,
) -> None:
    """As MAIA's archive lays them out; they are of the weights of the checkpoint."""
    images = noise(32, size=(64, 64))
    folder = tmp_path / "exemplars" / "own" / "imagenet" / "layer1"
    folder.mkdir(parents=True)
    np.save(folder / "images.npy", np.stack([np.asarray(each) for each in images]).reshape(16, 2, 64, 64, 3))
    best = checkpoints.model(checkpoint).maps(images, ["layer1"])["layer1"].amax((2, 3)).reshape(16, 2, 16)
    np.savetxt(folder / "activations.csv", [best[unit, :, unit].tolist() for unit in range(16)], delimiter=",")
    np.savetxt(folder / "thresholds.csv", [0.5] * 16, delimiter=",")
    added = said("datasets", "add", str(tmp_path / "exemplars"), "--name", "Theirs")
    assert added.startswith(f"published:{tmp_path}/exemplars: 32 images")
    told = said("datasets", "index", "Theirs", "--model", str(checkpoint))
    assert "layer1: 32 images indexed" in told
    assert "Nothing was published of conv1, stem, layer2, layer3, layer4, logits, so that is left out." in told
    with pytest.raises(CommandError, match="Theirs has no exemplars of layer4, only of: layer1"):
        call_command("datasets", "index", "Theirs", "--model", str(checkpoint), "--layers", "layer4")
    other = ["index", "Theirs", "--model", str(checkpoints.resnet(tmp_path / "other", seed=1)), "--layers", "layer1"]
    with pytest.raises(CommandError, match="is of other weights than"):
        call_command("datasets", *other)
    assert "Published for other weights: of unit" in said("datasets", *other, "--insist")
