"""A whole training on sums of known directions: how good it gets, that it continues, and what it refuses."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.support.sparse_layers import ACTIVE, DIRECTIONS, SIDE, UNITS, NumberedImages, SumsOfDirections
from workers.errors import Cancelled, MachineryError, MissingPart, RequestError, UnknownName
from workers.lab.map_stream import MapStream
from workers.protocols import LabSettings, no_progress
from workers.record.sparse import KINDS
from workers.sparse import storage, training
from workers.sparse.activations import ActivationBuffer, StreamPlace
from workers.sparse.recipe import SparseRecipe
from workers.sparse.training import find_source, train_sparse

pytestmark = pytest.mark.usefixtures("one_thread")
QUICK = SparseRecipe(latents=48, k=ACTIVE, steps=60, batch=256)
SMALL = 40 * SIDE * SIDE * UNITS * 4
"""Bytes of the activations of 40 images."""


def source(model: Any = None, images: Any = None) -> training.SparseSource:
    return find_source("sums", model or SumsOfDirections(), "sums", "numbers", images or NumberedImages(300))


def lab(folder: Path) -> LabSettings:
    return LabSettings(folder, batch_size=16)


class StopAt:
    """A `Progress` that raises at a step of the training."""

    def __init__(self, step: int, error: type[BaseException]) -> None:
        self.step, self.error = step, error

    def __call__(self, what: str, done: int, total: int) -> None:
        if what.startswith("Training") and done == self.step:
            raise self.error


# --- what comes of it -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_few_latents_explain_most_of_the_layer(tmp_path: Path, kind: str) -> None:
    recipe = SparseRecipe(latents=DIRECTIONS, k=ACTIVE, kind=kind, steps=600, batch=256)
    card = train_sparse(lab(tmp_path), source(), recipe, "sums")
    assert card.quality.unexplained < 0.4  # the mean has 1
    assert card.quality.active == pytest.approx(ACTIVE, abs=0.5)
    network, read = storage.load_autoencoder(tmp_path, "sums")
    assert read == card
    assert storage.list_cards(tmp_path) == [card]
    assert (network.threshold.item() > 0) == (kind != "topk")
    assert torch.allclose(network.decoder.norm(dim=1), torch.ones(DIRECTIONS), atol=1e-5)


def test_latents_are_the_directions_that_the_layer_was_made_of(tmp_path: Path) -> None:
    model = SumsOfDirections()
    recipe = SparseRecipe(latents=48, k=ACTIVE, steps=600, batch=256)
    train_sparse(lab(tmp_path), source(model), recipe, "sums")
    network, _ = storage.load_autoencoder(tmp_path, "sums")
    nearest = (network.decoder.detach().numpy() @ model.directions.T).max(0)
    assert np.mean(nearest > 0.9) > 0.8
    assert len(nearest) == DIRECTIONS


def test_the_same_wish_is_trained_once(tmp_path: Path) -> None:
    first = train_sparse(lab(tmp_path), source(), QUICK)
    model = SumsOfDirections()
    assert train_sparse(lab(tmp_path), source(model), QUICK) == first
    assert model.seen == []
    assert first.name == "sums-sums-topk-48-k2-seed0"


# --- stopped and killed -----------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [Cancelled, KeyboardInterrupt])
def test_a_training_that_ended_early_continues_to_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    """Cancelled is saved at once; anything else, as a kill, falls back to the last checkpoint."""
    monkeypatch.setattr(training, "SAVE_EVERY", 1e9 if error is Cancelled else 0)
    monkeypatch.setattr("workers.sparse.activations.ActivationBuffer.__init__.__defaults__", (SMALL,))
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    train_sparse(lab(whole), source(), QUICK, "sums")
    for step in (7, 33, 59):
        with pytest.raises(error):
            train_sparse(lab(broken), source(), QUICK, "sums", StopAt(step, error))
    card = train_sparse(lab(broken), source(), QUICK, "sums")
    one, other = (storage.load_autoencoder(folder, "sums")[0].state_dict() for folder in (whole, broken))
    assert all(torch.allclose(one[name], other[name], atol=1e-5) for name in one)
    assert card == storage.load_autoencoder(whole, "sums")[1]
    assert sorted(each.suffix for each in (broken / "sparse").iterdir()) == [".lock", ".safetensors"]


def test_what_was_trained_is_kept_where_measuring_is_stopped(tmp_path: Path) -> None:
    said: list[str] = []

    def stop(what: str, done: int, total: int) -> None:
        if what.startswith("Reading") and any(each.startswith("Training") for each in said):
            raise Cancelled
        said.append(what)

    with pytest.raises(Cancelled):
        train_sparse(lab(tmp_path), source(), QUICK, "sums", stop)
    left = tmp_path / "sparse" / "sums.1.2.part"
    left.write_bytes(b"half")
    told: list[tuple[str, int]] = []
    train_sparse(lab(tmp_path), source(), QUICK, "sums", lambda what, done, _: told.append((what, done)))
    assert {done for what, done in told if what.startswith("Training")} == {QUICK.steps}
    assert not left.exists()


def test_a_damaged_checkpoint_is_begun_anew(tmp_path: Path) -> None:
    with pytest.raises(Cancelled):
        train_sparse(lab(tmp_path), source(), QUICK, "sums", StopAt(5, Cancelled))
    checkpoint = tmp_path / "sparse" / "sums.checkpoint"
    checkpoint.write_bytes(checkpoint.read_bytes()[:-200])
    assert train_sparse(lab(tmp_path), source(), QUICK, "sums").steps == QUICK.steps


# --- the buffer -------------------------------------------------------------------------------------------


def buffer(images: int, max_bytes: int = SMALL, broken: tuple[int, ...] = ()) -> ActivationBuffer:
    stream = MapStream(LabSettings(Path("/nowhere"), batch_size=16), SumsOfDirections(), NumberedImages(images, broken))
    return ActivationBuffer(stream, "sums", np.arange(images), 0, max_bytes)


@pytest.mark.parametrize("images", [100, 1_000, 5_000])
def test_the_buffer_does_not_grow_with_the_dataset(images: int) -> None:
    stream = buffer(images)
    place = StreamPlace()
    for _ in range(8):
        batch, place = stream.take(place, 64, no_progress)
        assert batch.shape == (64, UNITS)
    assert stream._values.nbytes <= SMALL
    assert stream.per_image * UNITS * 4 * min(images, 512) <= SMALL


def test_a_pass_shows_every_position_once_in_another_order_each_time() -> None:
    stream = buffer(40)
    rows, places, place = [], [], StreamPlace()
    for _ in range(10):
        batch, place = stream.take(place, 128, no_progress)
        rows.append(batch)
        places.append(place)
    assert (places[4], places[9]) == (StreamPlace(1), StreamPlace(2))
    first, second = torch.cat(rows[:5]), torch.cat(rows[5:])
    assert not torch.equal(first, second)
    assert torch.equal(first.unique(dim=0), second.unique(dim=0))
    assert len(first.unique(dim=0)) == 40 * SIDE * SIDE


def test_a_batch_is_found_again_from_its_place() -> None:
    """Of a dataset that does not fit, whose positions are drawn."""
    stream, place = buffer(200), StreamPlace()
    for _ in range(7):
        at = place
        batch, place = stream.take(place, 100, no_progress)
    assert at.part > 0
    assert torch.equal(buffer(200).take(at, 100, no_progress)[0], batch)


def test_images_that_cannot_be_read_are_left_out() -> None:
    assert len(buffer(40, broken=(0, 3)).sample(10_000, no_progress)) == 38 * SIDE * SIDE
    with pytest.raises(MissingPart, match="None of 40 files of the dataset numbers is an image"):
        buffer(40, broken=tuple(range(40)))


# --- what is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"k": 49}, "k is 49 with 48 latents"),
        ({"k": 0}, "k is 0 with 48 latents"),
        ({"kind": "relu"}, "no kind 'relu'. Choose one of: topk"),
        ({"images": 5}, "steps or of images, not both"),
        ({"latents": 100_000}, "100,000 latents cannot be learnt from 4,560 positions"),
    ],
)
def test_a_recipe_that_cannot_be_followed_is_refused(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    with pytest.raises(RequestError, match=says):
        train_sparse(lab(tmp_path), source(), SparseRecipe(**vars(QUICK) | changes))


def test_ten_images_or_one_unit_or_no_such_layer_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="numbers has 10 images; at least 100"):
        train_sparse(lab(tmp_path), source(images=NumberedImages(10)), QUICK)
    with pytest.raises(RequestError, match="sums of sums has 1 unit"):
        train_sparse(lab(tmp_path), source(SumsOfDirections(units=1)), QUICK)
    with pytest.raises(UnknownName, match=r"no layer 'other'\. Choose one of: sums"):
        find_source("sums", SumsOfDirections(), "other", "numbers", NumberedImages(300))


@pytest.mark.parametrize("value", [0.0, 5.0])
def test_activations_that_never_change_are_refused(tmp_path: Path, value: float) -> None:
    with pytest.raises(RequestError, match="gives the same activations"):
        train_sparse(lab(tmp_path), source(SumsOfDirections(value)), QUICK)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_activations_that_are_not_finite_name_the_image(tmp_path: Path, value: float) -> None:
    with pytest.raises(MachineryError, match=r"not numbers or infinite in sums, for image \d+ .* MAIA_PRECISION"):
        train_sparse(lab(tmp_path), source(SumsOfDirections(value)), QUICK)


def test_a_name_belongs_to_one_recipe(tmp_path: Path) -> None:
    other = SparseRecipe(**vars(QUICK) | {"seed": 1})
    with pytest.raises(Cancelled):
        train_sparse(lab(tmp_path), source(), QUICK, "sums", StopAt(3, Cancelled))
    for _ in ("under way", "trained"):
        with pytest.raises(RequestError, match="'sums' belongs to an auto-encoder of another recipe"):
            train_sparse(lab(tmp_path), source(), other, "sums")
        train_sparse(lab(tmp_path), source(), QUICK, "sums")


@pytest.mark.parametrize("name", ["../sums", ".sums", "a b", "x" * 101])
def test_a_name_that_cannot_be_a_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(RequestError, match="cannot name an auto-encoder"):
        train_sparse(lab(tmp_path), source(), QUICK, name)


def test_a_full_disk_is_told_and_what_was_saved_stays(tmp_path: Path) -> None:
    with pytest.raises(Cancelled):
        train_sparse(lab(tmp_path), source(), QUICK, "sums", StopAt(5, Cancelled))
    folder = tmp_path / "sparse"
    before = (folder / "sums.checkpoint").read_bytes()
    stop = StopAt(9, Cancelled)

    def fill(what: str, done: int, total: int) -> None:
        if what.startswith("Training") and done == 7:  # from now on every write fails as on a full disk
            (folder / f"sums.{os.getpid()}.{threading.get_ident()}.part").symlink_to("/dev/full")
        stop(what, done, total)

    with pytest.raises(MachineryError, match=r"cannot be written to \(No space left on device\). Make room there"):
        train_sparse(lab(tmp_path), source(), QUICK, "sums", fill)
    assert (folder / "sums.checkpoint").read_bytes() == before
    assert train_sparse(lab(tmp_path), source(), QUICK, "sums").steps == QUICK.steps


def test_a_damaged_file_is_named_and_left_off_the_list(tmp_path: Path) -> None:
    train_sparse(lab(tmp_path), source(), QUICK, "sums")
    path = tmp_path / "sparse" / "sums.safetensors"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(MissingPart, match=r"sums.safetensors is no whole sparse auto-encoder"):
        storage.load_autoencoder(tmp_path, "sums")
    with pytest.raises(MissingPart, match="There is no sparse auto-encoder 'else', only: none yet"):
        storage.load_autoencoder(tmp_path, "else")
    assert storage.list_cards(tmp_path) == []
