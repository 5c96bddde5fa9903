"""Exemplars that others have published: read from the files of the release, and taken for a unit's own."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.tiny_lab import COLOURS, CORNERS, GREEN, RED, TinyModel
from workers import registry
from workers.errors import MissingPart
from workers.lab.comparison import compare_exemplars
from workers.lab.exemplars import ExemplarIndex
from workers.protocols import LabSettings, no_progress
from workers.record.systems import SystemSpec
from workers.systems.unit import Unit

UNITS, K = 4, 3
ACTIVATIONS = [[0.9, 0.5, 0.7], [0.8, 0.3, 0.1], [0, 0, 0], [2, 1.5, 1]]
THRESHOLDS = [0.25, 0.5, 0, 1.75]
SHOWN = [["red", "grey", "red"], ["green", "grey", "black"], ["black", "black", "black"], ["red", "red", "grey"]]


def pictures():
    """(units, k, 8, 8, 3): squares in a corner each."""
    images = np.zeros((UNITS, K, 8, 8, 3), dtype=np.uint8)
    for unit in range(UNITS):
        for rank in range(K):
            left, top = CORNERS[rank]
            images[unit, rank, top : top + 4, left : left + 4] = COLOURS[SHOWN[unit][rank]]
    return images


def publish(folder, images=None, thresholds=THRESHOLDS, activations=ACTIVATIONS, masks=None):
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "images.npy", pictures() if images is None else images)
    np.save(folder / "masks.npy", np.zeros((UNITS, K, 1, 8, 8), dtype=np.uint8) if masks is None else masks)
    np.savetxt(folder / "activations.csv", activations, delimiter=",")
    if thresholds is not None:
        np.savetxt(folder / "thresholds.csv", thresholds, delimiter=",")
    return folder


@pytest.fixture
def release(tmp_path):
    return publish(tmp_path / "tiny" / "imagenet" / "patches").parents[1]


def opened(path):
    return registry.load(registry.DATASETS, f"published:{path}")(LabSettings(path / "state"))


def index_of(path, model=None):
    return ExemplarIndex(LabSettings(path.parent / "state", batch_size=4), model or TinyModel(), opened(path))


def test_a_unit_has_the_published_exemplars_best_first_and_the_published_threshold(release):
    index = index_of(release)
    red = index.unit("patches", RED)
    assert red.positions == (0, 2, 1)
    assert red.activations == pytest.approx((0.9, 0.7, 0.5))
    assert red.quantile == 0.25
    assert index.unit("patches", GREEN).positions == (3, 4, 5)
    assert index.unit("patches", 2).positions == ()
    assert index.note("patches") == ""


def test_what_a_publication_does_not_say_is_not_made_up(release):
    red = index_of(release).unit("patches", RED)
    assert np.isnan([red.mean, red.active, red.quantile_error, red.start, red.width]).all()
    assert (red.images, red.counts, red.maximum) == (0, (), pytest.approx(0.9))


def test_they_are_saved_as_any_index(release):
    index_of(release).prepare(["patches"])
    again = index_of(release)
    again._dataset.published = None
    assert again.unit("patches", RED).positions == (0, 2, 1)


def test_a_system_shows_them_masked_as_the_model_at_hand_sees_them(release):
    exemplars = Unit(SystemSpec("unit", "tiny", "patches", RED), TinyModel(), index_of(release), 4).exemplars()
    assert [each.index for each in exemplars] == [0, 2, 1]
    assert [each.activation for each in exemplars] == pytest.approx([1.0, 1.0, 0.2])
    assert exemplars[0].picture.image.getpixel((0, 0)) == COLOURS["red"]
    assert exemplars[0].masked.getpixel((0, 0)) == COLOURS["red"]


def test_without_thresholds_they_are_measured_on_the_published_images(tmp_path):
    release = publish(tmp_path / "patches", thresholds=None)
    index = index_of(release)
    red = index.unit("patches", RED)
    assert red.images == UNITS * K
    assert red.positions == (0, 2, 1)
    assert red.activations == pytest.approx((0.9, 0.7, 0.5))
    assert 0 < red.quantile <= 1
    assert 0 < red.mean < 1


class Shuffled(TinyModel):
    """The same network with other weights: each number means another unit."""

    name = "other"

    def maps(self, images, layers):
        return {layer: maps[:, [1, 2, 3, 0]] for layer, maps in super().maps(images, layers).items()}


def test_exemplars_of_other_weights_are_refused_with_both_figures_unless_somebody_insists(release):
    index = index_of(release, Shuffled())
    with pytest.raises(MissingPart, match=r"is of other weights than other: of unit \d of patches it says \d"):
        index.prepare(["patches"])
    with pytest.raises(MissingPart, match=r"where other gives 0, 0.* with an AUC of 0\.\d+.*--insist"):
        index.unit("patches", RED)
    index.prepare(["patches"], insist=True)
    assert index.unit("patches", RED).positions == (0, 2, 1)
    again = index_of(release, Shuffled())
    assert again.note("patches").startswith("Published for other weights: of unit ")
    exemplars = Unit(SystemSpec("unit", "other", "patches", RED), Shuffled(), again, 4).exemplars()
    assert {each.picture.note for each in exemplars} == {again.note("patches")}


def test_figures_of_another_size_are_refused_even_in_the_same_order(release):
    class Louder(TinyModel):
        def maps(self, images, layers):
            return {layer: 5 * maps for layer, maps in super().maps(images, layers).items()}

    with pytest.raises(MissingPart, match=r"it says 0.9, 0.7, 0.5, where tiny gives 5, 5, 1"):
        index_of(release, Louder()).prepare(["patches"])


def test_figures_of_the_same_size_in_no_order_are_refused(release):
    class Flat(TinyModel):
        def maps(self, images, layers):
            return {layer: 0 * maps + 0.7 for layer, maps in super().maps(images, layers).items()}

    with pytest.raises(MissingPart, match=r"where tiny gives 0.7, 0.7.* with an AUC of 0.50"):
        index_of(release, Flat()).prepare(["patches"])


def test_masks_are_compared_and_told(tmp_path):
    masks = np.zeros((UNITS, K, 8, 8), dtype=np.uint8)
    for rank, (left, top) in enumerate(CORNERS[:K]):
        masks[:, rank, top : top + 4, left : left + 4] = 1
    dataset = opened(publish(tmp_path / "patches", masks=masks))
    found = compare_exemplars(dataset.published("patches"), "patches", TinyModel(), dataset, 4, no_progress)
    assert not found.differs
    assert 0.2 < found.overlap < 1
    assert f"its masks cover {found.overlap:.0%} of the published ones" in str(found)
    (tmp_path / "patches" / "masks.npy").unlink()
    bare = opened(tmp_path / "patches")
    assert np.isnan(compare_exemplars(bare.published("patches"), "patches", TinyModel(), bare, 4, no_progress).overlap)


def test_no_more_exemplars_are_taken_than_the_settings_want(release):
    settings = LabSettings(release.parent / "state", batch_size=4, exemplars=2)
    assert ExemplarIndex(settings, TinyModel(), opened(release)).unit("patches", RED).positions == (0, 2)


def test_a_release_of_fewer_units_serves_those_it_has_and_the_rest_are_measured(tmp_path):
    release = publish(tmp_path / "patches", pictures()[:2], THRESHOLDS[:2], ACTIVATIONS[:2], np.zeros((2, K, 8, 8)))
    index = index_of(release)
    assert index.unit("patches", RED).positions == (0, 2, 1)
    assert (index.unit("patches", RED).quantile, index.unit("patches", GREEN).quantile) == (0.25, 0.5)
    assert index.unit("patches", 3).activations == pytest.approx((2, 2))


def test_channels_may_come_first_as_in_the_release(tmp_path):
    last, first = publish(tmp_path / "a" / "patches"), tmp_path / "b" / "patches"
    publish(first, pictures().transpose(0, 1, 4, 2, 3))
    assert all(one.image == other.image for one, other in zip(opened(last), opened(first), strict=True))


def test_every_layer_of_a_model_is_found_by_its_folder(tmp_path):
    publish(tmp_path / "tiny" / "patches")
    publish(tmp_path / "tiny" / "logits", activations=np.array(ACTIVATIONS) / 4)
    dataset = opened(tmp_path / "tiny")
    assert len(dataset) == 2 * UNITS * K
    assert dataset.source(0) == "logits, unit 0, exemplar 0"
    assert dataset.source(UNITS * K + 4) == "patches, unit 1, exemplar 1"
    index = index_of(tmp_path / "tiny")
    index.prepare(["patches", "logits"])
    assert index.unit("logits", RED).positions == (0, 2, 1)
    assert index.unit("patches", RED).positions == (12, 14, 13)
    for outside in (-1, len(dataset)):
        with pytest.raises(IndexError):
            dataset[outside]


def test_the_same_layer_of_two_models_is_refused(tmp_path):
    publish(tmp_path / "one" / "patches")
    publish(tmp_path / "two" / "patches")
    with pytest.raises(MissingPart, match=r"holds the layer patches twice\. Name the folder of one model"):
        opened(tmp_path)


def test_a_layer_that_was_not_published_is_named_with_those_that_were(release):
    with pytest.raises(MissingPart, match="published tiny has no exemplars of 'logits', only of: patches"):
        index_of(release).prepare(["logits"])


def test_exemplars_of_another_model_are_refused(release):
    class Narrower(TinyModel):
        def layers(self):
            return [type(info)(info.name, info.path, info.kind, 3) for info in super().layers()]

    with pytest.raises(MissingPart, match="exemplars of 4 units of patches, but tiny has 3 there"):
        index_of(release, Narrower()).prepare(["patches"])


def test_the_revision_follows_the_files(release):
    before = opened(release).revision
    assert opened(release).revision == before
    publish(release / "imagenet" / "patches", thresholds=[1, 2, 3, 4])
    assert opened(release).revision != before


def test_a_folder_without_exemplars_is_said_so(tmp_path):
    assert "holds no published exemplars" in registry.missing(
        registry.DATASETS, f"published:{tmp_path}", LabSettings(tmp_path)
    )
    with pytest.raises(MissingPart, match=r"no images\.npy in it or within 3 folders below"):
        opened(tmp_path)


@pytest.mark.parametrize(
    "images",
    [
        np.zeros((4, 3, 8, 8), np.uint8),
        np.zeros((4, 3, 8, 8, 4), np.uint8),
        np.zeros((4, 0, 8, 8, 3), np.uint8),
        np.zeros((4, 3, 8, 8, 3), np.float32),
        np.zeros((), np.uint8),
    ],
)
def test_images_of_a_wrong_shape_or_type_are_refused(tmp_path, images):
    with pytest.raises(MissingPart, match=r"images\.npy is .* of shape .*Wanted: uint8 of shape \(units, k, 3"):
        opened(publish(tmp_path / "patches", images))


def test_objects_archives_and_damaged_arrays_are_refused_unread(tmp_path):
    folder = publish(tmp_path / "patches")
    path = folder / "images.npy"
    whole = path.read_bytes()

    class Trap:
        def __reduce__(self):
            return print, ("sprung",)

    np.save(path, np.array([Trap()], dtype=object), allow_pickle=True)
    contents = [path.read_bytes(), whole[:-5], whole[:40], b"", b"no array"]
    np.savez(path.with_suffix(".npz"), images=np.zeros(3))
    contents.append(path.with_suffix(".npz").read_bytes())
    for content in contents:
        path.write_bytes(content)
        with pytest.raises(MissingPart, match=r"images\.npy is no array that can be read"):
            opened(folder)


@pytest.mark.parametrize("shape", [(4, 2, 8, 8), (3, 3, 8, 8), (4, 3, 8), (4, 3, 2, 8, 8)])
def test_masks_of_other_images_are_refused(tmp_path, shape):
    with pytest.raises(MissingPart, match=r"masks\.npy has shape .* does not go with \(4, 3\)"):
        opened(publish(tmp_path / "patches", masks=np.zeros(shape, np.uint8)))


@pytest.mark.parametrize("shape", [(4, 3, 16, 16), (4, 3, 1, 7, 7), (4, 3, 8, 8, 1)])
def test_masks_may_have_a_size_of_their_own_or_be_missing(tmp_path, shape):
    folder = publish(tmp_path / "patches", masks=np.zeros(shape, bool))
    assert len(opened(folder)) == UNITS * K
    (folder / "masks.npy").unlink()
    assert len(opened(folder)) == UNITS * K


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("activations", "", "is empty"),
        ("activations", "1,2,3\n1,2\n1,2,3\n1,2,3", "cannot be read"),
        ("activations", "unit,activation\n0,1", "cannot be read .*could not convert string to float: 'unit'"),
        ("activations", "1,2,nan\n" * 4, ".*not finite"),
        ("activations", "1,2,inf\n" * 4, ".*not finite"),
        ("activations", "1,2,3\n" * 3, r"has 3 rows of 3 numbers, but images\.npy shows 4 units with 3 images"),
        ("activations", "1,2\n" * 4, "has 4 rows of 2 numbers"),
        ("activations", "\x00\xff", "cannot be read"),
        ("thresholds", "1\n2\n3", r"has 3 numbers, but images\.npy shows 4 units"),
        ("thresholds", "1\n2\nx\n4", "cannot be read"),
        ("thresholds", "1\n2\n-inf\n4", ".*not finite"),
    ],
)
def test_tables_with_junk_in_them_are_refused_by_name(tmp_path, name, text, said):
    folder = publish(tmp_path / "patches")
    (folder / f"{name}.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(MissingPart, match=rf"{name}\.csv {said}"):
        opened(folder)


def test_a_missing_table_is_named(tmp_path):
    folder = publish(tmp_path / "patches")
    (folder / "activations.csv").unlink()
    with pytest.raises(MissingPart, match=r"activations\.csv cannot be read \(.*No such file"):
        opened(folder)
