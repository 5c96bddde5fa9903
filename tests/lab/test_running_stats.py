"""The running statistics of the index: how exact the quantile is, what little is counted for it, how much is kept."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from workers.lab import running_stats
from workers.lab.running_stats import BINS, FINEST, RunningHistogram, RunningStats

ROWS = 7


def values(length: int) -> np.ndarray:
    """Many kinds of units, (7, length)."""
    random = np.random.default_rng(0)
    rows = [
        random.normal(size=length),
        np.sort(random.exponential(size=length)) * 1e6,
        -np.sort(random.exponential(size=length)) - 1e3,
        np.maximum(random.normal(size=length), 0),
        np.concatenate([np.full(length // 2, -1e-3), np.full(length - length // 2, 1e6)]),
        np.full(length, 0.7),
        np.where(np.arange(length) % 500, 0, 1e30),
    ]
    return np.array(rows, dtype=np.float32)


def counted(array: np.ndarray, batch: int, share: float, expected: int) -> RunningHistogram:
    """A histogram of (units, length) values, taken as maps of 5 places."""
    histogram = RunningHistogram(len(array), share=share, expected=expected)
    maps = torch.from_numpy(array).view(len(array), -1, 5).transpose(0, 1)  # (images, units, 5)
    for start in range(0, len(maps), batch):
        part = maps[start : start + batch]
        histogram.add(part, part.amax((0, 2)).numpy())
    return histogram


def is_as_exact_as_it_says(histogram: RunningHistogram, array: np.ndarray, share: float) -> None:
    low, error = histogram.quantile()
    true = np.quantile(array, share, axis=1, method="inverted_cdf")
    assert (low <= true).all()
    assert (true < low + error).all()
    spread = array.max(1).astype(float) - array.min(1)
    finest = np.maximum(FINEST, abs(array).max(1).astype(float) * 2.0**-51)
    assert (error <= np.maximum(spread / (BINS / 2 - 1), finest)).all()


@pytest.mark.parametrize("batch", [1, 7, 100])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.9, 0.99, 1.0])
def test_a_histogram_is_as_exact_as_it_says_whatever_comes_in_whatever_order(batch: int, share: float) -> None:
    array = values(500)
    histogram = counted(array, batch, share, expected=0)
    assert (histogram.counts.sum(1) == 500).all()
    is_as_exact_as_it_says(histogram, array, share)


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("more", [0, 3000])
@pytest.mark.parametrize(("batch", "share"), [(1, 0.9), (7, 0.99), (300, 0.99), (7, 0.5), (7, 1.0), (7, 0.0)])
def test_it_is_as_exact_where_it_counts_only_what_may_matter(batch: int, share: float, more: int, order: int) -> None:
    array = np.ascontiguousarray(values(3000)[:, ::order])
    is_as_exact_as_it_says(counted(array, batch, share, expected=3000 + more), array, share)


def test_few_values_are_counted_one_by_one_when_it_is_known_how_many_come() -> None:
    array = np.random.default_rng(1).normal(size=(3, 100_000)).astype(np.float32)
    histogram = counted(array, 100, 0.99, expected=100_000)
    assert (histogram.counts.sum(1) < 8_000).all()
    is_as_exact_as_it_says(histogram, array, 0.99)


def test_zeros_that_outnumber_the_rest_are_passed_over() -> None:
    array = np.where(np.random.default_rng(1).random((3, 100_000)) < 0.005, 1.0, 0.0).astype(np.float32)
    histogram = counted(array, 100, 0.99, expected=100_000)
    assert (histogram.counts.sum(1) < 3_000).all()
    low, error = histogram.quantile()
    assert (low == 0).all()
    assert (error <= 2.0**-9).all()


def test_the_size_of_what_is_counted_in_one_go_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    array = values(3000)
    whole = counted(array, 600, 0.99, expected=3000)
    monkeypatch.setattr(running_stats, "AT_ONCE", ROWS * 5)
    assert np.array_equal(counted(array, 600, 0.99, expected=3000).quantile()[0], whole.quantile()[0])


def new_stats(**known: int) -> RunningStats:
    return RunningStats(**{"units": 4, "best": 3, "share": 0.9, "expected": 400} | known)


def test_a_tally_needs_no_more_memory_for_more_images() -> None:
    found, sizes = new_stats(), []
    for start in range(0, 150, 50):
        found.add(torch.rand(50, 4, 3, 3), np.arange(start, start + 50))
        sizes.append({name: value.size for name, value in found.state().items()})
    assert found.images == 150
    assert sizes[0] == sizes[1] == sizes[2]


def test_the_best_keep_their_positions_and_of_equals_the_earlier_stays() -> None:
    found = new_stats(units=1)
    for start, activations in ((0, [1, 5, 3]), (10, [5, 2, 9]), (20, [5, 9, 0])):
        found.add(torch.tensor(activations, dtype=torch.float32)[:, None, None, None], np.arange(start, start + 3))
    assert found.best.activations[:, 0].tolist() == [9, 9, 5]
    assert found.best.positions[:, 0].tolist() == [12, 21, 1]


def test_it_goes_on_from_a_state_as_if_nothing_had_happened() -> None:
    maps = torch.randn(90, 4, 3, 3).relu()
    whole, first, second = new_stats(), new_stats(), new_stats()
    for start in range(0, 90, 10):
        positions = np.arange(start, start + 10)
        whole.add(maps[start : start + 10], positions)
        (first if start < 40 else second).add(maps[start : start + 10], positions)
        if start == 30:
            second.restore(first.state())
    assert all(np.array_equal(value, second.state()[name]) for name, value in whole.state().items())


def test_it_takes_no_state_of_another_layer() -> None:
    with pytest.raises((ValueError, RuntimeError)):
        new_stats().restore(new_stats(units=5).state())
    with pytest.raises(KeyError):
        new_stats().restore({})


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_it_refuses_what_is_not_finite(value: float) -> None:
    maps = torch.zeros(2, 4, 3, 3)
    maps[1, 2, 0, 0] = value
    with pytest.raises(FloatingPointError):
        new_stats().add(maps, np.arange(2))


def test_it_refuses_maps_of_another_size_or_of_other_units() -> None:
    found = new_stats()
    found.add(torch.rand(2, 4, 3, 3), np.arange(2))
    with pytest.raises(ValueError, match="maps of 4 places came after maps of 9"):
        found.add(torch.rand(2, 4, 2, 2), np.arange(2, 4))
    with pytest.raises(ValueError, match="maps of 5 units, not 4, came"):
        found.add(torch.rand(2, 5, 3, 3), np.arange(2, 4))


def test_images_are_counted_by_their_activation() -> None:
    found = new_stats(units=1, expected=6)
    found.add(torch.tensor([0.0, 0.0, 1.0, 2.0, 8.0, 8.0])[:, None, None, None], np.arange(6))
    counts, width = found.of_images.counts[0], found.of_images.width[0]
    assert len(counts) == running_stats.IMAGE_BINS
    assert [int(counts[int(value / width)]) for value in (0, 1, 2, 8)] == [2, 1, 1, 2]


def test_the_way_of_the_gpu_gives_the_same_bins() -> None:
    array = values(500)[:6].reshape(6, 50, 10).swapaxes(0, 1).copy()  # (images, units, places)
    edges = np.quantile(array, 0.7, axis=(0, 2)).astype(np.float32)
    scale, offset = np.float32(2.0) ** -np.arange(6), np.arange(6) * 100
    ways = [
        way(torch.from_numpy(array), edges, scale, offset)
        for way in (running_stats._bins_on_cpu, running_stats._bins_on_gpu)
    ]
    assert len(ways[0])
    assert torch.equal(*ways)
