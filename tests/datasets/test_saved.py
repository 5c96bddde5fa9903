"""Datasets saved by the library `datasets`, with real files of its own making."""

from __future__ import annotations

import io

import datasets
import pytest
from PIL import Image

from tests.support.tiny_lab import TinyModel
from workers import registry
from workers.errors import BrokenImage, MissingPart, UnknownName
from workers.lab.exemplars import ExemplarIndex
from workers.protocols import LabSettings

COLOURS = ((255, 0, 0), (0, 0, 0), (0, 255, 0))

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.fixture
def quiet():
    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()


def table(colours=COLOURS, **columns):
    features = datasets.Features(
        {"text": datasets.Value("string"), "photo": datasets.Image(), "kind": datasets.ClassLabel(names=["a", "b"])}
    )
    rows = {
        "text": [str(each) for each in colours],
        "photo": [Image.new("RGB", (8, 8), each) for each in colours],
        "kind": [at % 2 for at in range(len(colours))],
    }
    return datasets.Dataset.from_dict(rows | columns, features=features)


@pytest.fixture
def saved(tmp_path):
    table().save_to_disk(tmp_path / "saved")
    return tmp_path / "saved"


def opened(path, **settings):
    return registry.load(registry.DATASETS, f"saved:{path}")(LabSettings(path.parent / "state", **settings))


def test_the_column_of_images_is_found_and_labels_are_kept_aside(saved):
    dataset = opened(saved)
    assert (dataset.name, len(dataset)) == ("saved", 3)
    assert [each.image.getpixel((0, 0)) for each in dataset] == list(COLOURS)
    assert dataset.classes == ("a", "b")
    assert [dataset.label(at) for at in range(3)] == [0, 1, 0]


def test_it_is_indexed_as_any_other(saved):
    index = ExemplarIndex(LabSettings(saved.parent / "state"), TinyModel(), opened(saved))
    assert index.unit("patches", 0).positions == (0,)


def test_a_dataset_without_labels_has_none(tmp_path):
    table().remove_columns(["kind", "text"]).save_to_disk(tmp_path / "bare")
    assert (opened(tmp_path / "bare").classes, opened(tmp_path / "bare").label(0)) == ((), None)


def test_a_split_is_chosen_by_name_else_the_training_images(tmp_path):
    splits = {"test": table(COLOURS[:1]), "train": table(COLOURS[:2])}
    datasets.DatasetDict(splits).save_to_disk(tmp_path / "splits")
    datasets.DatasetDict({"b": splits["test"]}).save_to_disk(tmp_path / "other")
    assert len(opened(tmp_path / "splits")) == 2
    assert len(opened(tmp_path / "splits#test")) == 1
    assert len(opened(tmp_path / "other")) == 1
    assert opened(tmp_path / "splits").revision != opened(tmp_path / "splits#test").revision
    with pytest.raises(UnknownName, match=r"no split 'val'. Choose one of: test, train"):
        opened(tmp_path / "splits#val")


def test_a_dataset_without_splits_has_none_to_choose(saved):
    with pytest.raises(UnknownName, match="Leave out #train"):
        opened(saved.parent / "saved#train")


def test_a_folder_may_have_the_sign_of_a_split_in_its_name(saved):
    saved.rename(saved.parent / "odd#name")
    assert len(opened(saved.parent / "odd#name")) == 3


def test_the_revision_stays_and_the_limit_changes_it(saved):
    assert opened(saved).revision == opened(saved).revision
    assert opened(saved, dataset_images=2).revision == f"{opened(saved).revision}-2"
    assert len(opened(saved, dataset_images=2)) == 2


def test_rows_that_are_no_image_say_why(tmp_path):
    png = io.BytesIO()
    Image.new("RGB", (300, 300)).save(png, "PNG")
    photos = [
        {"bytes": png.getvalue(), "path": None},
        {"bytes": b"no image", "path": None},
        None,
        {"bytes": png.getvalue()[:-40], "path": "a.png"},
    ]
    table(photo=photos, text=[""] * 4, kind=[0] * 4).save_to_disk(tmp_path / "odd")
    dataset, said = opened(tmp_path / "odd"), []
    assert dataset[0].image.size == (300, 300)
    for at in (1, 2, 3):
        with pytest.raises(BrokenImage) as caught:
            dataset[at]
        said.append(str(caught.value))
    assert said[0] == "row 1: it is no JPEG, PNG, WebP, GIF, BMP, TIFF, PPM, PGM, AVIF or JPEG 2000 image."
    assert said[1] == "row 2: the dataset holds no image there, at most the path of one."
    assert said[2].startswith("row 3: it is damaged (")


def test_paths_in_a_dataset_are_not_followed(tmp_path):
    Image.new("RGB", (8, 8)).save(tmp_path / "secret.png")
    linked = table(photo=[str(tmp_path / "secret.png")], text=[""], kind=[0])
    dataset = opened_table(linked)
    with pytest.raises(BrokenImage, match="holds no image there"):
        dataset[0]
    with pytest.raises(MissingPart, match=r"has 1 rows, and none holds an image in 'photo'"):
        dataset.count()


def opened_table(rows):
    from workers.datasets.saved import SavedImages

    return SavedImages("rows", rows, "photo")


def test_rows_outside_are_refused(saved):
    for index in (-1, 3):
        with pytest.raises(IndexError, match="There is no row"):
            opened(saved)[index]


def test_a_dataset_without_images_names_its_columns(tmp_path):
    table().remove_columns("photo").save_to_disk(tmp_path / "words")
    with pytest.raises(MissingPart, match="has no column of images, only: text, kind"):
        opened(tmp_path / "words")


def test_of_several_columns_of_images_a_person_picks_one(tmp_path):
    blue = table([(0, 0, 255)] * 3).select_columns("photo").rename_column("photo", "other")
    two = datasets.concatenate_datasets([table(), blue], axis=1)
    datasets.DatasetDict({"train": two, "test": two.select([1])}).save_to_disk(tmp_path / "two")
    path = tmp_path / "two"
    names = f"saved:{path}#train/photo or saved:{path}#train/other"
    with pytest.raises(MissingPart, match=f"several columns of images: photo, other. Name one: {names}"):
        opened(path)
    with pytest.raises(UnknownName, match=f"has no column of images 'text'. Choose saved:{path}#test/photo or "):
        opened(tmp_path / "two#test/text")
    photo, other = opened(tmp_path / "two#/photo"), opened(tmp_path / "two#test/other")
    assert (len(photo), photo[2].image.getpixel((0, 0))) == (3, COLOURS[2])
    assert (len(other), other[0].image.getpixel((0, 0))) == (1, (0, 0, 255))
    assert photo.revision != opened(tmp_path / "two#/other").revision


def test_rows_without_an_image_are_not_counted(tmp_path):
    photos = [Image.new("RGB", (8, 8)), None, Image.new("RGB", (8, 8), "red")]
    table(photo=photos).save_to_disk(tmp_path / "gaps")
    assert (opened(tmp_path / "gaps").count(), len(opened(tmp_path / "gaps"))) == (2, 3)
    assert opened(tmp_path / "gaps", dataset_images=2).count() == 1


@pytest.mark.parametrize("path", ["nowhere", ".", "#", ""])
def test_what_is_no_saved_dataset_is_said_so(tmp_path, path):
    settings = LabSettings(tmp_path)
    with pytest.raises((MissingPart, UnknownName), match=r"is no dataset saved by the library|There is no 'saved:'"):
        registry.load(registry.DATASETS, f"saved:{tmp_path / path if path else ''}")(settings)
    assert "save_to_disk" in registry.missing(registry.DATASETS, f"saved:{tmp_path}", settings)


@pytest.mark.parametrize("name", ["state.json", "dataset_info.json", "data-00000-of-00001.arrow"])
@pytest.mark.parametrize("content", [b"", b"damaged", None])
def test_a_damaged_dataset_is_refused_by_name(saved, name, content):
    if content is None:
        (saved / name).unlink()
    else:
        (saved / name).write_bytes(content)
    with pytest.raises(MissingPart, match="saved' cannot be opened"):
        opened(saved)
