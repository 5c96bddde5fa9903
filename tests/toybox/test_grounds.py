"""The twin of Spawrious: which class stands on which ground, in which split."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from workers import registry
from workers.errors import UnknownName
from workers.protocols import LabSettings


@pytest.fixture
def load(tmp_path):
    return lambda name: registry.load(registry.DATASETS, f"toybox-grounds:{name}")(LabSettings(tmp_path))


def test_training_has_the_shares_of_spawrious_and_nine_tenths_of_the_pool(load):
    train, validation = load("seed-3:train"), load("seed-3:validation")
    assert (len(train), len(validation)) == (5_400, 600)
    cells = np.concatenate([train.cells, validation.cells])
    counts = Counter(map(tuple, cells.tolist()))
    assert {cell: counts[cell] for cell in counts if cell[1] < 4} == dict.fromkeys(((a, a) for a in range(4)), 1_379)
    assert {cell: counts[cell] for cell in counts if cell[1] == 4} == dict.fromkeys(((a, 4) for a in range(4)), 121)


def test_the_validation_split_has_the_same_bias(load):
    cells = load("seed-3:validation").cells
    assert 0.85 < (cells[:, 0] == cells[:, 1]).mean() < 0.97


def test_balanced_has_every_class_on_every_ground_and_the_test_each_on_others(load):
    balanced, test = load("seed-0:balanced"), load("seed-0:test")
    assert set(Counter(map(tuple, balanced.cells.tolist())).values()) == {80}
    assert set(Counter(map(tuple, test.cells.tolist())).values()) == {125}
    assert not (test.cells[:, 0] == test.cells[:, 1]).any()


def test_a_scene_shows_its_class_on_its_ground_and_nothing_else_goes_with_it(load):
    split = load("seed-0-of-400:train")
    scenes = [split.scene(at) for at in range(len(split))]
    for scene, (toy, ground) in zip(scenes, split.cells, strict=True):
        assert [thing.noun for thing in scene.things] == [split.classes[toy]]
        assert scene.ground == split.grounds[ground]
    assert len({scene.things[0].colour for scene in scenes}) == 10
    assert {scene.light for scene in scenes} == {"day", "sunset", "night"}


def test_pictures_follow_from_the_seed_and_no_split_shares_any(load):
    first, again, other = load("seed-0:test"), load("seed-0:test"), load("seed-1:test")
    assert first[5].image.tobytes() == again[5].image.tobytes()
    assert first.scene(5) != other.scene(5)
    seen = [str(load(f"seed-0:{split}").scene(0)) for split in ("train", "validation", "balanced", "test")]
    assert len(set(seen)) == 4


@pytest.mark.parametrize("name", ["seed-0:all", "seed-x:test", "seed-0-of-100:test", "0"])
def test_what_there_is_not_is_refused_with_what_there_is(load, name):
    with pytest.raises(UnknownName, match="toybox-grounds:seed-0:validation"):
        load(name)
