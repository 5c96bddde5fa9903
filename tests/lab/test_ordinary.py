"""Random ordinary images for the first round: near their quantiles, the same for a seed, and none that is held out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.exemplar_index import index_over
from tests.support.tiny_lab import SPEC, TinyModel, TinyPictures
from workers.lab.imaging import image_key
from workers.lab.memory import ImagesInMemory
from workers.lab.ordinary import IMAGES_EACH, QUANTILES, choose_positions, measure_ordinary
from workers.record.experiments import Observation
from workers.systems.unit import Unit

NAMES = [f"{('red', 'grey', 'blue', 'black')[n % 4]} {n // 4 % 4}" for n in range(200)]


class Fresh(TinyPictures):
    """Squares that have fresh ones for checks."""

    def held_out(self, split: str, count: int) -> TinyPictures:
        return self


def measure(folder: Path, dataset: TinyPictures, seed: int = 0) -> tuple[tuple[Observation, ...], ImagesInMemory]:
    index, memory = index_over(folder, dataset), ImagesInMemory()
    subject = Unit(SPEC, TinyModel(), index, batch_size=4)
    return measure_ordinary(subject, index, dataset, memory, seed), memory


def may_show_all(position: int) -> bool:
    return position >= 0


def test_images_rank_near_their_quantiles() -> None:
    activations = np.random.default_rng(3).permutation(np.arange(500, dtype=np.float32))
    chosen = choose_positions(activations, 7, may_show_all, seed=1)
    assert [quantile for quantile, _ in chosen] == [each for each in QUANTILES for _ in range(IMAGES_EACH)]
    assert all(abs(activations[position // 7] / 499 - quantile) < 0.025 for quantile, position in chosen)
    assert len({position for _, position in chosen}) == len(chosen)


def test_the_same_seed_chooses_the_same_and_another_seed_others() -> None:
    activations = np.arange(500, dtype=np.float32)
    first, again, other = (choose_positions(activations, 1, may_show_all, seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_of_equal_activations_any_image_may_come() -> None:
    positions = [
        at for seed in range(20) for _, at in choose_positions(np.zeros(500, np.float32), 1, may_show_all, seed)[:3]
    ]
    assert max(positions) > 400 and min(positions) < 100  # noqa: PT018


def test_what_is_left_out_and_what_could_not_be_read_never_come() -> None:
    activations = np.arange(500, dtype=np.float32)
    activations[::2] = -np.inf
    left_out = set(range(0, 500, 3))
    chosen = {
        at for seed in range(20) for _, at in choose_positions(activations, 1, lambda at: at not in left_out, seed)
    }
    assert chosen
    assert not chosen & {*left_out, *range(0, 500, 2)}
    assert choose_positions(activations[:150], 1, may_show_all, 1) == []


def test_they_are_measured_and_stored_with_their_masked_images(tmp_path: Path) -> None:
    found, memory = measure(tmp_path, Fresh(*NAMES))
    assert found == measure(tmp_path, Fresh(*NAMES))[0]
    assert len(found) == 9
    for each in found:
        shown = memory.load(each.image)
        red = max(colour[0] for _, colour in shown.getcolors() or [])
        assert each.activation == pytest.approx(red / 255)
        assert memory.recall(each.masked or "") is not None
        assert image_key(shown) == each.image
