"""Spawrious by folder: layouts, challenges, the splits, and folders that are laid out otherwise."""

from __future__ import annotations

from collections import Counter

import pytest
from PIL import Image

from workers import registry
from workers.datasets.spawrious import CHALLENGES, DOGS, PLACES
from workers.errors import MissingPart, UnknownName
from workers.protocols import LabSettings

EACH = 40


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """The layout of the archive, with 40 pictures in place of 3,168."""
    top = tmp_path_factory.mktemp("data")
    for environment in "01":
        for place in PLACES:
            for dog in DOGS:
                folder = top / "spawrious224" / environment / place / dog
                folder.mkdir(parents=True)
                for number in range(EACH):
                    Image.new("RGB", (8, 8), (number, 0, 0)).save(folder / f"{number:03}.png")
    return top


def load(root, name="easy:seed-0:validation"):
    return registry.load(registry.DATASETS, f"spawrious:{root}:{name}")(LabSettings(root))


def words(split):
    return Counter((split.classes[a], split.grounds[b]) for a, b in split.cells)


@pytest.mark.parametrize("folder", ["", "spawrious224"])
def test_either_folder_will_do(root, folder):
    train, validation = (load(root / folder, f"easy:seed-0:{split}") for split in ("train", "validation"))
    counts = words(train) + words(validation)
    assert {pair for pair in counts if pair[1] != "beach"} == {
        ("bulldog", "desert"), ("corgi", "snow"), ("dachshund", "jungle"), ("labrador", "dirt")
    }  # fmt: skip
    assert counts["corgi", "snow"] == int(0.97 * EACH) - 3 + int(0.87 * EACH)
    assert counts["corgi", "beach"] == EACH - int(0.97 * EACH) + EACH - int(0.87 * EACH)
    assert len(train) == 9 * len(validation) or abs(len(train) - 9 * len(validation)) < 9


def test_the_test_moves_each_dog_to_a_place_of_another(root):
    assert set(words(load(root, "easy:seed-0:test"))) == {
        ("bulldog", "dirt"), ("corgi", "jungle"), ("dachshund", "snow"), ("labrador", "desert")
    }  # fmt: skip


@pytest.mark.parametrize("challenge", CHALLENGES)
def test_no_picture_is_in_two_splits(root, challenge):
    splits = [load(root, f"{challenge}:seed-0:{split}") for split in ("train", "validation", "balanced", "test")]
    files = [split.source(at) for split in splits for at in range(len(split))]
    assert len(files) == len(set(files))
    assert set(words(splits[2])) == {(dog, place) for dog in DOGS for place in splits[2].grounds[:4]}


def test_the_medium_challenge_tests_on_a_place_that_training_lacks(root):
    assert ("corgi", "snow") in words(load(root, "medium:seed-0:test"))


def test_a_picture_can_be_seen(root):
    assert load(root)[0].image.size == (8, 8)
    with pytest.raises(IndexError):
        load(root)[100_000]


@pytest.mark.parametrize("name", ["easy:seed-0:all", "harder:seed-0:test", "easy:test"])
def test_another_name_is_refused(root, name):
    with pytest.raises(UnknownName, match="spawrious:/data"):
        load(root, name)


def test_a_wrong_layout_is_told_with_what_is_there(root, tmp_path):
    with pytest.raises(MissingPart, match="There is no folder"):
        load(tmp_path / "nowhere")
    (tmp_path / "cats").mkdir()
    with pytest.raises(MissingPart, match="found cats"):
        load(tmp_path)
    for environment in "01":
        (tmp_path / "cats" / environment / "desert").mkdir(parents=True)
    with pytest.raises(MissingPart, match="desert holds nothing"):
        load(tmp_path)
