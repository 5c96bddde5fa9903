"""The exemplar index: what it finds, how exactly, and that it is computed once."""

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest

from tests import ROOT
from tests.support.exemplar_index import NAMES, Unreliable, index_of, index_over
from tests.support.tiny_lab import DEAD, GREEN, RED, RED_NOT_BLUE, TinyModel
from workers.errors import Cancelled, MachineryError, MissingPart, UnknownName
from workers.lab import index_files, indexing
from workers.lab.index_files import SkippedImage


def test_it_finds_the_best_images_of_each_unit_best_first_and_the_lower_position_first_among_equals(tmp_path):
    red = index_of(tmp_path).unit("patches", RED)
    assert red.activations == pytest.approx((1.0, 1.0, 0.2))
    assert red.positions == (2, 4, 1)
    assert index_of(tmp_path).unit("patches", GREEN).positions == (3, 1)


def test_it_keeps_no_more_exemplars_than_asked_for(tmp_path):
    names = ["red 0", "grey 0"] * 10 + ["black 0"]
    assert index_of(tmp_path, *names).unit("patches", RED).positions == (*range(0, 20, 2), *range(1, 10, 2))
    assert index_of(tmp_path, *names, exemplars=3).unit("patches", RED).positions == (0, 2, 4)


def test_it_knows_mean_maximum_and_share_of_active_images(tmp_path):
    red = index_of(tmp_path).unit("patches", RED)
    assert red.mean == pytest.approx(2.2 / 6)
    assert red.maximum == pytest.approx(1.0)
    assert red.active == pytest.approx(3 / 6)


def test_it_gives_a_unit_that_never_changes_no_exemplars(tmp_path):
    dead = index_of(tmp_path).unit("patches", DEAD)
    assert dead.positions == ()
    assert (dead.quantile, dead.maximum, dead.active) == (0.0, 0.0, 0.0)
    same = index_of(tmp_path / "same", "red 0", "red 1", "red 2").unit("patches", RED)
    assert same.positions == ()


def test_it_reads_the_quantile_of_all_spatial_activations_within_the_stated_error(tmp_path):
    # 24 patches: one of -2, 21 of 0, two of 2; the 0.9 quantile is the 22nd of them, the 0.95 quantile the 23rd.
    low = index_of(tmp_path / "low", mask_quantile=0.9).unit("patches", RED_NOT_BLUE)
    assert low.quantile <= 0 < low.quantile + low.quantile_error <= low.quantile + 2**-8
    high = index_of(tmp_path / "high", mask_quantile=0.95).unit("patches", RED_NOT_BLUE)
    assert 2 - high.quantile_error <= high.quantile <= 2


def test_it_indexes_several_layers_in_one_pass(tmp_path):
    index = index_of(tmp_path)
    index.prepare(["patches", "logits"])
    assert sorted(index._model.batches) == [2, 4]
    assert index.unit("logits", RED).positions == (2, 4, 1)
    assert index.unit("logits", RED).activations == pytest.approx((0.25, 0.25, 0.05))
    assert sorted(path.name for path in index.folder.glob("*.npz")) == ["logits.npz", "patches.npz"]
    assert str(index.folder.relative_to(tmp_path)) == "index/tiny-1/squares-1"


class Classes(TinyModel):
    """The same, its logits being those of classes."""

    scale = "sigmoid"

    def layers(self):
        patches, logits = super().layers()
        return [patches, replace(logits, scale=self.scale)]


def test_it_holds_probabilities_of_classes_apart_from_what_was_measured_on_another_scale(tmp_path):
    index_of(tmp_path).layer("logits")
    record = index_of(tmp_path, model=Classes()).unit("logits", RED)
    assert record.activations == pytest.approx([1 / (1 + np.exp(-logit)) for logit in (0.25, 0.25, 0.05)], abs=1e-4)
    assert record.maximum <= 1
    other = index_of(tmp_path, model=type("Shared", (Classes,), {"scale": "softmax"})())
    assert other.unit("logits", RED).activations[0] < record.activations[0]


def test_a_pass_that_was_cut_short_on_another_scale_is_not_gone_on_with(tmp_path):
    for model in (TinyModel(), Classes()):
        with pytest.raises(Cancelled):
            index_of(tmp_path, model=model).prepare(["logits"], stop_after(4))
    again = index_of(tmp_path, model=Classes())
    again.prepare(["logits"])
    assert sorted(again._model.batches) == [2]
    fresh = index_of(tmp_path / "fresh", model=Classes())
    assert_same(again.layer("logits"), fresh.layer("logits"))


def test_it_loads_what_was_saved_and_computes_nothing_again(tmp_path):
    before = index_of(tmp_path).layer("patches")
    again = index_of(tmp_path)
    found = again.layer("patches")
    assert again._model.batches == []
    assert all(np.array_equal(vars(before)[name], vars(found)[name]) for name in vars(before))


@pytest.mark.parametrize("change", [{"exemplars": 2}, {"mask_quantile": 0.5}, {"model": TinyModel("2")}])
def test_it_computes_again_under_other_settings_or_other_weights(tmp_path, change):
    index_of(tmp_path).layer("patches")
    again = index_of(tmp_path, **change)
    again.layer("patches")
    assert sum(again._model.batches) == len(NAMES)


@pytest.mark.parametrize("damage", [b"", b"not a zip file", None])
def test_it_computes_again_what_is_damaged(tmp_path, damage):
    index = index_of(tmp_path)
    index.layer("patches")
    path = index.folder / "patches.npz"
    path.write_bytes(path.read_bytes()[:-100] if damage is None else damage)
    again = index_of(tmp_path)
    assert again.unit("patches", RED).positions == (2, 4, 1)
    assert sum(again._model.batches) == len(NAMES)


def test_it_is_computed_once_however_many_threads_want_it(tmp_path):
    model = TinyModel()
    indexes = [index_of(tmp_path, model=model) for _ in range(3)]
    started = threading.Barrier(6)

    def read(index):
        started.wait()
        assert index.unit("patches", RED).positions == (2, 4, 1)

    threads = [threading.Thread(target=read, args=(index,)) for index in indexes * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(model.batches) == [2, 4]


def test_it_tells_how_far_it_is(tmp_path):
    said = []
    index_of(tmp_path).layer("patches", lambda *each: said.append(each))
    assert said == [("Indexing tiny patches", done, 6) for done in (0, 4, 6)]


def test_it_stops_when_cancelled_and_leaves_nothing_behind_that_is_wrong(tmp_path):
    def stop(what, done, total):
        if done:
            raise Cancelled("A person stopped the run.")

    index = index_of(tmp_path)
    with pytest.raises(Cancelled):
        index.layer("patches", stop)
    assert {path.name for path in index.folder.iterdir()} == {"lock", "checkpoint.npz"}
    assert index.unit("patches", RED).positions == (2, 4, 1)


def test_it_can_be_cancelled_while_it_waits_for_another_worker(tmp_path):
    busy, go_on = threading.Event(), threading.Event()

    def hold(what, done, total):
        busy.set()
        go_on.wait()

    def stop(what, done, total):
        raise Cancelled(what)

    worker = threading.Thread(target=index_of(tmp_path).layer, args=("patches", hold))
    worker.start()
    busy.wait()
    with pytest.raises(Cancelled, match="Waiting for the index of tiny patches"):
        index_of(tmp_path).layer("patches", stop)
    go_on.set()
    worker.join()


def test_it_lets_the_dataset_prepare_itself_first(tmp_path):
    index = index_of(tmp_path)
    said = []
    index._dataset.prepare = lambda progress: progress("drawing", 0, 6)
    index.layer("patches", lambda *each: said.append(each[0]))
    assert said[0] == "drawing"


class OddModel(TinyModel):
    """Gives one value that makes no sense, for red squares."""

    def __init__(self, value):
        super().__init__()
        self.value = value

    def maps(self, images, layers):
        found = super().maps(images, layers)
        for at, image in enumerate(images):
            if image.getpixel((0, 0)) == (255, 0, 0):
                found["patches"][at, GREEN, 0, 0] = self.value
        return found


def test_it_leaves_out_what_cannot_be_read_and_says_what_and_why(tmp_path):
    said = []
    index = index_over(tmp_path, Unreliable("black 0", "broken", "red 3", "green 2", "red 0", "broken", "blue 1"))
    red = index.prepare(["patches"], lambda *each: said.append(each)) or index.unit("patches", RED)
    assert red.positions == (2, 4)
    assert red.images == 5
    skipped = index_over(tmp_path, index._dataset).skipped()
    assert skipped.count == 2
    assert skipped.first == [
        SkippedImage(position, f"square-{position}", f"square-{position}: it is torn.") for position in (1, 5)
    ]
    assert said[1] == ("Indexing tiny patches (1 skipped)", 4, 7)


def test_it_notes_no_more_problems_than_it_has_room_for(tmp_path, monkeypatch):
    monkeypatch.setattr(index_files, "NOTED", 3)
    index = index_over(tmp_path, Unreliable("red 0", *["broken"] * 9))
    index.prepare(["patches"])
    assert (index.skipped().count, len(index.skipped().first)) == (9, 3)


@pytest.mark.parametrize("names", [(), ("broken",) * 5])
def test_a_dataset_without_a_single_image_is_refused_by_name(tmp_path, names):
    with pytest.raises(MissingPart, match=r"The dataset squares has [05] files, and none is an image that can be read"):
        index_over(tmp_path, Unreliable(*names)).prepare(["patches"])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_make_no_sense_end_the_pass_and_name_layer_image_and_remedy(tmp_path, value):
    index = index_over(tmp_path, Unreliable("black 0", "broken", "red 0"), OddModel(float(value)))
    with pytest.raises(MachineryError, match=r"in patches, for image 2 .*\(square-2\).*MAIA_PRECISION=float32"):
        index.prepare(["patches"])


def test_a_layer_that_does_not_exist_is_named_with_those_that_do(tmp_path):
    with pytest.raises(UnknownName, match=r"no layer 'patch'\. Choose one of: patches, logits"):
        index_of(tmp_path).prepare(["patches", "patch"])


def test_it_counts_images_by_their_activation(tmp_path):
    red = index_of(tmp_path).unit("patches", RED)
    at = {value: red.counts[int((value - red.start) / red.width)] for value in (0.0, 0.2, 1.0)}
    assert at == {0.0: 3, 0.2: 1, 1.0: 2}
    assert sum(red.counts) == red.images == 6
    assert len(red.counts) == int((1.0 - red.start) / red.width) + 1


def stop_after(images):
    def progress(what, done, total):
        if done >= images:
            raise Cancelled("A person stopped it.")

    return progress


def test_it_goes_on_where_it_was_stopped_with_the_same_result(tmp_path):
    names = [*NAMES, "broken", "red 1", "grey 3", *NAMES, "broken"]
    whole = index_over(tmp_path / "whole", Unreliable(*names))
    index = index_over(tmp_path, Unreliable(*names))
    with pytest.raises(Cancelled):
        index.prepare(["patches", "logits"], stop_after(8))
    again, said = index_over(tmp_path, Unreliable(*names)), []
    again.prepare(["patches"], lambda *each: said.append(each[1]))
    assert said == [8, 12, 16, 17, 17][: len(said)]
    assert sum(again._model.batches) == 7
    for layer in ("patches", "logits"):
        assert_same(again.layer(layer), whole.layer(layer))
    assert again.skipped() == whole.skipped()
    assert sum(again._model.batches) == 7
    assert {path.name for path in again.folder.iterdir()} == {"lock", "skipped.json", "patches.npz", "logits.npz"}


def assert_same(one, other):
    assert all(np.array_equal(vars(one)[name], vars(other)[name], equal_nan=True) for name in vars(one))


def test_a_checkpoint_of_other_layers_or_settings_or_a_damaged_one_is_not_used(tmp_path):
    def stopped(layers, **settings):
        index = index_of(tmp_path, **settings)
        with pytest.raises(Cancelled):
            index.prepare(layers, stop_after(4))
        return index.folder / "checkpoint.npz"

    stopped(["patches"])
    stopped(["patches", "logits"], exemplars=2)
    path = stopped(["logits"])
    for again in (index_of(tmp_path, exemplars=3), index_of(tmp_path)):
        again.prepare(["logits"])
        path.write_bytes(b"not a checkpoint")
    assert sorted(again._model.batches) == [2, 4]
    assert again.unit("logits", RED).positions == (2, 4, 1)


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.support.exemplar_index import NAMES, Unreliable, index_over
from workers.lab import indexing

indexing.SAVE_EVERY = 0

def progress(what, done, total):
    if done >= 40:
        os.kill(os.getpid(), signal.SIGKILL)

index_over(Path(sys.argv[1]), Unreliable(*NAMES * 15, "broken")).prepare(["patches", "logits"], progress)
"""


def test_it_goes_on_after_a_kill_with_the_same_result(tmp_path):
    child = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False, cwd=ROOT)
    assert child.returncode == -signal.SIGKILL
    index = index_over(tmp_path, Unreliable(*NAMES * 15, "broken"))
    (index.folder / "patches.99.part").write_bytes(b"half")
    index.prepare(["patches", "logits"])
    assert sum(index._model.batches) == 50
    whole = index_over(tmp_path / "whole", Unreliable(*NAMES * 15, "broken"))
    for layer in ("patches", "logits"):
        assert_same(index.layer(layer), whole.layer(layer))
    assert not list(index.folder.glob("*.part"))


@pytest.mark.parametrize("full", ["checkpoint", "patches"])
def test_a_full_disk_ends_the_pass_with_the_folder_and_the_remedy_and_loses_nothing(tmp_path, monkeypatch, full):
    monkeypatch.setattr(indexing, "SAVE_EVERY", 0)
    index = index_of(tmp_path)
    index.folder.mkdir(parents=True)
    part = index.folder / f"{full}.{os.getpid()}.{threading.get_ident()}.part"

    def fill(what, done, total):
        if done == 4:
            part.symlink_to("/dev/full")  # every write there fails as on a full disk

    with pytest.raises(
        MachineryError, match=rf"{index.folder} cannot be written to \(No space left on device\).*MAIA_"
    ):
        index.prepare(["patches"], fill)
    assert not part.is_symlink()
    again = index_of(tmp_path)
    again.prepare(["patches"])
    assert sum(again._model.batches) < len(NAMES)
    assert_same(again.layer("patches"), index_of(tmp_path / "whole").layer("patches"))


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "index").write_text("in the way")
    with pytest.raises(MachineryError, match=r"index/tiny-1/squares-1 cannot be written to \(.*MAIA_STATE"):
        index_of(tmp_path).prepare(["patches"])


def test_names_of_any_length_make_a_folder(tmp_path):
    index = index_of(tmp_path)
    index._model.name, index._dataset.name = "hf:/" + "deep/" * 100, "squares/../.."
    index.prepare(["patches"])
    assert len(index.folder.relative_to(tmp_path).parts) == 3


@pytest.mark.parametrize(
    ("done", "seconds", "said"),
    [
        (0, 10, ""),
        (10, 0.5, ""),
        (100, 10, "10 images a second, 40 s left"),
        (1, 10, "6 images a minute, 67 min left"),
        (4, 200, "1 images a minute, 5 h 33 min left"),
    ],
)
def test_it_says_how_fast_it_is_and_how_long_it_takes(done, seconds, said):
    assert indexing._format_pace(done, 400, seconds) == said


def test_many_layers_are_named_by_their_number():
    assert indexing.describe_layers(["a", "b"]) == "a, b"
    assert indexing.describe_layers([str(number) for number in range(12)]) == "12 layers"
