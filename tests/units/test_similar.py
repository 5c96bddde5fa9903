"""Neighbours: which units are alike by the index, and what a worker writes down of them."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from experiments.models import LayerIndex, Unit, UnitProfile
from tests.support.tiny_lab import GREEN, RED, TinyModel, TinyPictures
from workers.jobs import long, registration
from workers.lab.exemplars import ExemplarIndex
from workers.lab.index_files import LayerStatistics
from workers.lab.running_stats import SAMPLED, RunningStats
from workers.lab.similar_units import MIN_IMAGES, find_similar_units
from workers.protocols import LabSettings

NAMES = [f"{colour} {corner}" for colour in ("red", "green", "blue", "grey", "black") for corner in range(4)] * 2


def index_of(folder: Path, *names: str) -> ExemplarIndex:
    return ExemplarIndex(LabSettings(folder, batch_size=4), TinyModel(), TinyPictures(*(names or NAMES)))


def test_units_are_alike_that_go_up_and_down_on_the_same_images(tmp_path: Path) -> None:
    index = index_of(tmp_path)
    index.prepare(["patches", "logits"])
    found = find_similar_units(index.known(["patches", "logits"]), "patches", RED)
    assert (found.measure, found.images) == ("correlation", len(NAMES))
    assert found.others[0].layer == "logits"
    assert found.others[0].unit == RED
    assert found.others[0].similarity == pytest.approx(1.0)
    assert found.same[0].unit == 3  # red, not blue
    assert RED not in [each.unit for each in found.same]
    assert all(0 < each.similarity <= 1.0001 for each in found.same)


def test_similarity_is_the_correlation_over_the_sampled_images(tmp_path: Path) -> None:
    index = index_of(tmp_path)
    layer = index.layer("patches")
    expected = np.corrcoef(layer.sample[:, RED], layer.sample[:, 3])[0, 1]
    found = find_similar_units({"patches": layer}, "patches", RED)
    assert found.same[0].similarity == pytest.approx(expected, abs=1e-6)
    assert found.same[0].shared == len(set(layer.positions[layer.kept[:, RED], RED]) & set(layer.positions[:, 3]))


@pytest.mark.parametrize("names", [NAMES[: MIN_IMAGES - 2], ["black 0"] * 30])
def test_few_images_or_a_unit_that_never_varies_leave_the_overlap_of_exemplars(
    tmp_path: Path, names: list[str]
) -> None:
    found = find_similar_units({"patches": index_of(tmp_path, *names).layer("patches")}, "patches", GREEN)
    assert found.measure == "overlap"
    assert all(0 < each.similarity <= 1 for each in found.same)


def test_an_index_from_before_there_were_samples_is_kept_and_compared_by_exemplars(tmp_path: Path) -> None:
    index = index_of(tmp_path)
    index.layer("patches")
    path = index.folder / "patches.npz"
    with np.load(path) as saved:
        older = {name: saved[name] for name in saved if name != "sample"}
    np.savez(path, **older)
    again = index_of(tmp_path)
    found = find_similar_units({"patches": again.layer("patches")}, "patches", RED)
    assert found.measure == "overlap"
    assert again._model.batches == []
    assert {field.name for field in fields(LayerStatistics)} - older.keys() == {"sample"}


def test_a_layer_that_is_not_indexed_is_not_computed(tmp_path: Path) -> None:
    index = index_of(tmp_path)
    assert index.known(["patches", "logits"]) == {}
    assert index._model.batches == []


def test_the_sample_is_even_and_bounded() -> None:
    import torch

    stats = RunningStats(2, 3, 0.9, 2000)
    for start in range(0, 2000, 100):
        positions = np.arange(start, start + 100)
        stats.add(torch.from_numpy(positions.astype(np.float32)).view(-1, 1, 1, 1).expand(-1, 2, 1, 1), positions)
    assert len(stats.sample) <= SAMPLED
    assert stats.sample[:, 0].tolist() == [float(n) for n in range(0, 2000, 4)]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("laboratory", "one_thread")
def test_a_worker_writes_them_down_with_what_is_dead(checkpoint: Path, photographs: Path, redis_url: str) -> None:
    model, dataset = registration.model(str(checkpoint)), registration.dataset(f"folder:{photographs}")
    registration.index_layers(dataset, model.name, ["layer1", "layer2"], lambda *_: None)
    layer = model.layers.get(name="layer2")
    profile = UnitProfile.objects.create(unit=Unit.objects.create(layer=layer, number=2), dataset=dataset)
    long.write_neighbours(profile.pk)
    profile.refresh_from_db()
    assert profile.compared
    told = profile.neighbours
    assert (told["measure"], told["layers"]) == ("overlap", 2)
    assert {row[0] for row in told["same"]} <= {layer.pk}
    assert {row[0] for row in told["others"]} <= {model.layers.get(name="layer1").pk}
    assert all(isinstance(each, list) for each in LayerIndex.objects.values_list("dead", flat=True))


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("laboratory", "one_thread")
def test_without_an_index_a_worker_says_so_and_makes_none(checkpoint: Path, photographs: Path, redis_url: str) -> None:
    model, dataset = registration.model(str(checkpoint)), registration.dataset(f"folder:{photographs}")
    unit = Unit.objects.create(layer=model.layers.get(name="layer2"), number=2)
    profile = UnitProfile.objects.create(unit=unit, dataset=dataset)
    long.write_neighbours(profile.pk)
    profile.refresh_from_db()
    assert "is not indexed over photographs" in profile.neighbours["problem"]
    assert not LayerIndex.objects.exists()
    long.write_neighbours(999_999)
