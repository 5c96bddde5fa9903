"""The exemplar index: what it finds, how exactly, and that it is computed once."""

import threading

import numpy as np
import pytest
import torch

from tests.tiny_lab import DEAD, GREEN, RED, RED_NOT_BLUE, TinyModel, TinyPictures
from workers.errors import Cancelled
from workers.lab.exemplars import ExemplarIndex
from workers.lab.tally import BINS, FINEST, Histogram, Tally
from workers.protocols import LabSettings

NAMES = ("black 0", "grey 1", "red 3", "green 2", "red 0", "blue 1")


def index_of(tmp_path, *names, model=None, **settings):
    chosen = LabSettings(tmp_path, **{"batch_size": 4} | settings)
    return ExemplarIndex(chosen, model or TinyModel(), TinyPictures(*names or NAMES))


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
    assert (low.quantile, low.quantile_error) == (0.0, pytest.approx(2**-8))
    high = index_of(tmp_path / "high", mask_quantile=0.95).unit("patches", RED_NOT_BLUE)
    assert 2 - high.quantile_error <= high.quantile <= 2


def test_it_indexes_several_layers_in_one_pass(tmp_path):
    index = index_of(tmp_path)
    index.prepare(["patches", "logits"])
    assert index._model.batches == [4, 2]
    assert index.unit("logits", RED).positions == (2, 4, 1)
    assert index.unit("logits", RED).activations == pytest.approx((0.25, 0.25, 0.05))
    assert sorted(path.name for path in index.folder.glob("*.npz")) == ["logits.npz", "patches.npz"]
    assert str(index.folder.relative_to(tmp_path)) == "index/tiny-1/squares-1"


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
    assert model.batches == [4, 2]


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
    assert list(index.folder.glob("*.npz")) == []
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


def test_it_lets_the_data_set_prepare_itself_first(tmp_path):
    index = index_of(tmp_path)
    said = []
    index._data_set.prepare = lambda progress: progress("drawing", 0, 6)
    index.layer("patches", lambda *each: said.append(each[0]))
    assert said[0] == "drawing"


@pytest.mark.parametrize("batch", [1, 7, 100])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.9, 0.99, 1.0])
def test_a_histogram_is_as_exact_as_it_says_whatever_comes_in_whatever_order(batch, share):
    random = np.random.default_rng(0)
    rows = [
        random.normal(size=500),
        np.sort(random.exponential(size=500)) * 1e6,
        -np.sort(random.exponential(size=500)) - 1e3,
        np.maximum(random.normal(size=500), 0),
        np.concatenate([np.full(250, -1e-3), np.full(250, 1e6)]),
        np.full(500, 0.7),
    ]
    values = np.array(rows, dtype=np.float32)
    histogram = Histogram(len(values))
    for start in range(0, 500, batch):
        histogram.add(torch.from_numpy(values[:, start : start + batch]))
    low, error = histogram.quantile(share)
    true = np.quantile(values, share, axis=1, method="inverted_cdf")
    assert (histogram.counts.sum(1) == 500).all()
    assert (low <= true).all()
    assert (true - low < error).all()
    spread = values.max(1).astype(float) - values.min(1)
    assert (error <= np.maximum(spread / (BINS / 2 - 1), FINEST)).all()


def test_a_tally_needs_no_more_memory_for_more_images():
    tally, sizes = Tally(4, 3), []
    for _ in range(3):
        tally.add(torch.rand(50, 4, 3, 3))
        sizes.append((tally.histogram.counts.size, tally.best.activations.size, tally.total.size))
    assert tally.images == 150
    assert len(set(sizes)) == 1
