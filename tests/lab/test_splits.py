"""One split of a dataset: by the pixels of an image, the same wherever it stands, and no image in two."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.support.distinct_pictures import draw_pictures
from tests.support.exemplar_index import Unreliable, index_over
from tests.support.tiny_lab import RED, SPEC, TinyModel
from workers.errors import Cancelled, MissingPart
from workers.lab.measured_splits import MeasuredSplit
from workers.lab.memory import ImagesInMemory
from workers.lab.ordinary import measure_ordinary
from workers.lab.splits import MIN_SPLIT_IMAGES, SHARES, HeldOutSplit, Split, is_split, split_of
from workers.protocols import LabSettings
from workers.systems.unit import Unit

COUNT = 2_000
PICTURES = draw_pictures(COUNT)


def splits_of(positions: list[int]) -> set[Split]:
    return {split_of(PICTURES[at].image) for at in positions}


def measure(folder: Path, split: HeldOutSplit, images: int = COUNT) -> MeasuredSplit:
    dataset = draw_pictures(images)
    return MeasuredSplit(LabSettings(folder, batch_size=64), TinyModel(), dataset, index_over(folder, dataset), split)


def test_the_shares_are_about_what_they_are_said_to_be() -> None:
    found = Counter(split_of(PICTURES[at].image) for at in range(COUNT))
    assert sum(SHARES.values()) == pytest.approx(1)
    for split, share in SHARES.items():
        assert found[split] / COUNT == pytest.approx(share, abs=4 * (share * (1 - share) / COUNT) ** 0.5)


def test_an_image_is_in_the_same_split_wherever_it_stands() -> None:
    image = PICTURES[7].image
    assert split_of(image) == split_of(image.copy())
    again = Image.frombytes("RGB", image.size, image.tobytes())
    again.info["name"] = "another file"
    assert split_of(again) == split_of(image)


def test_exemplars_come_of_their_split_and_what_is_counted_of_all_images(tmp_path: Path) -> None:
    index = index_over(tmp_path, PICTURES)
    unit = index.unit("patches", RED)
    assert len(unit.positions) > 0
    assert splits_of(list(unit.positions)) == {"exemplars"}
    assert unit.images == COUNT
    reds = sum(name.startswith("red") for name in PICTURES.names)
    greys = sum(name.startswith("grey") for name in PICTURES.names)
    assert unit.active == pytest.approx((reds + greys) / COUNT)


def test_the_three_splits_share_no_image(tmp_path: Path) -> None:
    index = index_over(tmp_path, PICTURES)
    shown = [int(at) for unit in range(4) for at in index.unit("patches", unit).positions]
    subject = Unit(SPEC, TinyModel(), index, batch_size=4)
    memory = ImagesInMemory()
    ordinary = [
        split_of(memory.load(each.image))
        for seed in range(5)
        for each in measure_ordinary(subject, index, PICTURES, memory, seed)
    ]
    assert ordinary
    assert {*ordinary, *splits_of(shown)} == {"exemplars"}
    for split in ("development", "probe"):
        positions, table = measure(tmp_path, split).activations("patches")
        assert splits_of(positions.tolist()) == {split}
        assert len(positions) == len(table) == sum(split_of(PICTURES[at].image) == split for at in range(COUNT))


def test_a_unit_is_as_frequent_on_the_probe_as_in_the_dataset(tmp_path: Path) -> None:
    """Exemplars used to be cut from it, which takes the images that a unit answers most to."""
    _, table = measure(tmp_path, "probe").activations("patches")
    reds = sum(name.startswith("red") for name in PICTURES.names) / COUNT
    share = float((table[:, RED] > 0.9).mean())
    assert share == pytest.approx(reds, abs=4 * (reds * (1 - reds) / len(table)) ** 0.5)


def test_a_split_grows_with_what_is_asked_of_it(tmp_path: Path) -> None:
    probe = measure(tmp_path, "probe")
    few, values = probe.activations("patches", 100)
    more, table = probe.activations("patches", 300)
    assert (len(few), len(more)) == (100, 300)
    assert more[:100].tolist() == few.tolist()
    assert np.array_equal(table[:100], values)
    again, whole = measure(tmp_path, "probe").activations("patches", COUNT)
    assert again[:300].tolist() == more.tolist()
    assert sorted(again) == [at for at in range(COUNT) if split_of(PICTURES[at].image) == "probe"]
    assert len(whole) == len(again)
    told: list[str] = []
    measure(tmp_path, "probe").activations("patches", COUNT, lambda what, done, total: told.append(what))
    assert told == [], "all of it is known"


def test_what_was_measured_until_somebody_stops_it_is_kept(tmp_path: Path) -> None:
    def stop(what: str, done: int, total: int) -> None:
        if done >= 150:
            raise Cancelled

    with pytest.raises(Cancelled):
        measure(tmp_path, "probe").activations("patches", 400, stop)
    done: list[int] = []
    measure(tmp_path, "probe").activations("patches", 400, lambda what, at, total: done.append(at))
    assert done[0] >= 150


def test_a_dataset_of_broken_images_says_so_every_time(tmp_path: Path) -> None:
    dataset = Unreliable(*["broken"] * (MIN_SPLIT_IMAGES + 1))
    index = index_over(tmp_path, dataset)
    probe = MeasuredSplit(LabSettings(tmp_path, batch_size=64), TinyModel(), dataset, index, "probe")
    for _ in range(2):
        with pytest.raises(MissingPart, match="can be read, so no label"):
            probe.activations("patches")


def test_a_longer_dataset_keeps_the_splits_of_what_it_had(tmp_path: Path) -> None:
    before = set(measure(tmp_path / "short", "probe", 600).activations("patches")[0].tolist())
    after = set(measure(tmp_path / "long", "probe").activations("patches")[0].tolist())
    assert before
    assert before == {at for at in after if at < 600}


def test_a_small_dataset_is_all_exemplars_and_says_so(tmp_path: Path) -> None:
    small = draw_pictures(MIN_SPLIT_IMAGES - 1)
    assert not is_split(small)
    assert is_split(draw_pictures(MIN_SPLIT_IMAGES))
    exemplars = index_over(tmp_path / "small", small).unit("patches", RED).positions
    assert len(exemplars) > 0
    with pytest.raises(MissingPart, match=f"squares has {MIN_SPLIT_IMAGES - 1} images.*none is held back.*Add images"):
        measure(tmp_path, "probe", MIN_SPLIT_IMAGES - 1).activations("patches")


def test_an_index_from_before_datasets_were_split_is_made_anew(tmp_path: Path) -> None:
    index = index_over(tmp_path, PICTURES)
    index.layer("patches")
    path = index.folder / "patches.npz"
    with np.load(path) as saved:
        old = dict(saved)
    old["stamp"], old["positions"] = old["stamp"][:3], np.zeros_like(old["positions"])
    np.savez(path, **old)
    assert len(set(index_over(tmp_path, PICTURES).unit("patches", RED).positions)) > 1
