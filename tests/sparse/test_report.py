"""The report of an auto-encoder: on sums of known directions, where all is known, and on toybox after a training."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.support import checkpoints
from tests.support.sparse_layers import ACTIVE, DIRECTIONS, SIDE, NumberedImages, SumsOfDirections
from workers import registry
from workers.errors import Cancelled, MissingPart
from workers.protocols import LabSettings, Picture, Rewrite, no_progress
from workers.record.decoding import encode
from workers.record.sparse_report import OutputEffect, SparseReport, read_report
from workers.sparse import report as reporting
from workers.sparse import storage
from workers.sparse.activations import split_images
from workers.sparse.autoencoder import SparseAutoencoder
from workers.sparse.output_effect import diverge, measure_effect
from workers.sparse.quality import Quality
from workers.sparse.recipe import SparseRecipe
from workers.sparse.report import measure_report
from workers.sparse.storage import SparseCard
from workers.sparse.training import find_source, train_sparse

pytestmark = pytest.mark.usefixtures("one_thread")
WIDE = 32
"""Units in which 24 random directions are linearly independent, so that what is added up can be told exactly."""


def write_card(model: Any, dataset: Any, network: SparseAutoencoder) -> SparseCard:
    info = model.layers()[0]
    return SparseCard(
        "sums", network.kind, network.k, network.latents, model.name, model.revision, "sums", info.name, info.path,
        info.units, dataset.name, dataset.revision, "numbers", 0, 1, 1, len(dataset), 1.0, "mark", Quality(0, 0, 0, 1),
    )  # fmt: skip


def know_all(model: SumsOfDirections, unused: int = 0) -> SparseAutoencoder:
    """The auto-encoder that reads every direction exactly; so many latents more are never active."""
    network = SparseAutoencoder(model.units, DIRECTIONS + unused, ACTIVE, "topk")
    rows = torch.tensor(model.directions, dtype=torch.float32)
    with torch.no_grad():
        network.encoder.zero_()
        network.encoder[:DIRECTIONS] = torch.linalg.pinv(rows).T
        network.decoder[:DIRECTIONS] = rows
        network.decoder_bias.fill_(3)
        network.encoder_bias[DIRECTIONS:] = -1
    return network


def measure(
    model: Any = None, dataset: Any = None, network: Any = None, changed: dict[str, Any] | None = None
) -> SparseReport:
    model, dataset = model or SumsOfDirections(units=WIDE), dataset or NumberedImages(2_000)
    network = network or know_all(model)
    card = replace(write_card(model, dataset, network), **changed or {})
    return measure_report(LabSettings(Path("/nowhere"), batch_size=16), model, dataset, network, card, no_progress)


# --- what is known beforehand -----------------------------------------------------------------------------


def test_one_that_knows_the_directions_leaves_nothing_unexplained() -> None:
    found = measure()
    assert found.unexplained < 1e-9
    assert found.active.mean == pytest.approx(ACTIVE, abs=1e-3)
    assert (found.active.low, found.active.median, found.active.high) == (ACTIVE,) * 3
    assert (found.images, found.positions) == (100, 100 * SIDE * SIDE)
    assert (found.dead, found.dead_share) == (0, 0)
    # log10(2 / 24) is -1.08: a chance of 1,600 draws brings some latents over a tenth
    between = dict(zip(found.density.edges, found.density.counts, strict=False))
    assert between[-1.5] + between[-1.0] == DIRECTIONS
    assert between[-1.5] > between[-1.0]


def test_latents_that_are_never_active_are_dead_and_have_no_density() -> None:
    found = measure(network=know_all(SumsOfDirections(units=WIDE), unused=8))
    assert (found.dead, found.latents) == (8, DIRECTIONS + 8)
    assert found.dead_share == 0.25
    assert sum(found.density.counts) == DIRECTIONS


def test_the_mean_alone_explains_nothing_and_bad_rows_make_it_worse() -> None:
    model = SumsOfDirections(units=WIDE)
    network = know_all(model)
    with torch.no_grad():
        network.decoder.neg_()
    assert measure(model, network=network).unexplained > 1.5
    values = torch.cat([torch.tensor(model.map_of(int(at))).flatten(1).T for at in split_images(2_000, 0)[1]])
    with torch.no_grad():
        network.decoder.zero_()
        network.decoder_bias.copy_(values.mean(0))
    assert measure(model, network=network).unexplained == pytest.approx(1)


@pytest.mark.parametrize("at_once", [1, 100, 1 << 24])
def test_similarities_are_the_largest_cosines_of_other_rows(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(reporting, "_MAX_COSINES", at_once)
    model = SumsOfDirections(units=WIDE)
    network = know_all(model, unused=2)
    with torch.no_grad():
        network.decoder[DIRECTIONS] = network.decoder[0] * 2
        network.encoder[DIRECTIONS:] = 1
    rows = network.decoder.detach().double().numpy()
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = rows @ rows.T
    np.fill_diagonal(cosines, -1)
    found = measure(model, network=network)
    assert found.similarity.mean == pytest.approx(cosines.max(1).mean(), abs=1e-6)
    assert found.similarity.near == pytest.approx(2 / (DIRECTIONS + 2))
    assert found.similarity.histogram.counts[-1] == 2
    assert sum(found.similarity.histogram.counts) == DIRECTIONS + 2
    ups = network.encoder.detach().double().numpy()
    ups /= np.linalg.norm(ups, axis=1, keepdims=True)
    assert found.encoder_cosine == pytest.approx((ups * rows).sum(1).mean(), abs=1e-6)


def test_a_single_latent_has_no_other_one_to_be_like() -> None:
    found = measure(network=SparseAutoencoder(WIDE, 1, 1, "topk"))
    assert (found.similarity.mean, found.similarity.near) == (None, None)
    assert sum(found.similarity.histogram.counts) == 0


def test_only_images_that_training_never_saw_are_measured() -> None:
    model = SumsOfDirections(units=WIDE)
    measure(model)
    assert set(model.seen) == set(split_images(2_000, 0)[1].tolist())


def test_broken_images_are_left_out() -> None:
    held_out = split_images(2_000, 0)[1].tolist()
    assert measure(dataset=NumberedImages(2_000, held_out[:7])).images == 93
    with pytest.raises(MissingPart, match="None of 100 files of the dataset numbers"):
        measure(dataset=NumberedImages(2_000, held_out))


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"model_revision": "2"}, "other weights of sums"),
        ({"dataset_revision": "7"}, "trained on other images: numbers"),
        ({"dataset": "birds"}, "trained on other images: birds"),
    ],
)
def test_other_weights_or_images_are_refused(changed: dict[str, str], says: str) -> None:
    with pytest.raises(MissingPart, match=says):
        measure(changed=changed)


def test_a_report_goes_through_json_and_is_small() -> None:
    found = measure()
    text = json.dumps(encode(found))
    assert len(text) < 4_096
    assert read_report(json.loads(text)) == found
    with pytest.raises(ValueError, match="no report of a sparse auto-encoder"):
        read_report({"name": "sums"})


def test_a_model_without_an_output_says_so() -> None:
    assert measure().output == OutputEffect(why="sums has no output of its own that follows from sums")


# --- the model's own output -------------------------------------------------------------------------------


class Noise:
    """A `Dataset` of coarse noise."""

    name = revision = "noise"

    def __init__(self, count: int) -> None:
        self.images = checkpoints.noise(count)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> Picture:
        return Picture(self.images[index])


def compare(model: Any, layer: str, rebuild: Rewrite, ablate: Rewrite) -> OutputEffect:
    return measure_effect(model, layer, (rebuild, ablate), Noise(12), range(12), 5, no_progress)


MODELS: dict[str, tuple[Callable[[Path], Any], str, str]] = {
    "binary_kl": (lambda folder: registry.load(registry.VISION_MODELS, "toybox")(LabSettings(folder)), "layer4", ""),
    "kl": (lambda folder: checkpoints.model(checkpoints.resnet(folder)), "layer3", ""),
    "change": (lambda folder: checkpoints.model(checkpoints.dino(folder)), "blocks.0.mlp.fc1", "knows no classes"),
}


@pytest.mark.parametrize("measure_name", MODELS)
def test_all_is_recovered_by_the_layer_itself_and_nothing_by_what_is_no_better(
    tmp_path: Path, measure_name: str
) -> None:
    load, layer, lacks = MODELS[measure_name]
    model = load(tmp_path)
    best = compare(model, layer, lambda maps: maps, torch.zeros_like)
    assert best.measure == measure_name
    assert best.rebuilt.value == pytest.approx(0, abs=1e-9)
    assert best.ablated.value is not None
    assert best.ablated.value > 1e-4
    assert best.recovered.value == pytest.approx(1)
    assert (best.same_rebuilt.value, best.rebuilt.n) == (None if lacks else 1, 12)
    assert lacks in best.same_rebuilt.why
    worst = compare(model, layer, torch.zeros_like, torch.zeros_like)
    assert worst.recovered.value == pytest.approx(0)
    half = compare(model, layer, lambda maps: maps * 0.7, torch.zeros_like)
    assert half.recovered.value is not None
    assert 0 < half.recovered.value < 1


def test_logits_have_nothing_after_them(tmp_path: Path) -> None:
    model = MODELS["binary_kl"][0](tmp_path)
    assert "is the output itself" in compare(model, "logits", torch.zeros_like, torch.zeros_like).why


def test_a_layer_without_a_say_in_the_output_recovers_nothing(tmp_path: Path) -> None:
    """In the last block of a ViT only the class token is read afterwards."""
    model = checkpoints.model(checkpoints.vit(tmp_path))
    found = compare(model, "blocks.1.mlp.fc1", lambda maps: maps * 2, torch.zeros_like)
    assert (found.ablated.value, found.recovered.value) == (0, None)
    assert "changes nothing" in found.recovered.why


def test_divergence_is_that_of_its_definition() -> None:
    own, other = torch.randn(2, 6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) * 3
    p, q = own.softmax(1).numpy(), other.softmax(1).numpy()
    np.testing.assert_allclose(diverge(own, other, "softmax"), (p * np.log(p / q)).sum(1))
    p, q = own.sigmoid().numpy(), other.sigmoid().numpy()
    np.testing.assert_allclose(
        diverge(own, other, "sigmoid"), (p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))).sum(1)
    )
    assert diverge(own * 500, other * 500, "sigmoid").isfinite().all()


# --- toybox -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[LabSettings, Any, Any]:
    settings = LabSettings(tmp_path_factory.mktemp("toybox"), dataset_images=100)
    model = registry.load(registry.VISION_MODELS, "toybox")(settings)
    dataset = registry.load(registry.DATASETS, "toybox")(settings)
    source = find_source("toybox", model, "layer4", "toybox", dataset)
    train_sparse(settings, source, SparseRecipe(latents=128, k=8, steps=150, batch=1024), "toys")
    return settings, model, dataset


def test_a_trained_one_keeps_most_of_what_the_model_says(trained: tuple[LabSettings, Any, Any]) -> None:
    settings, model, dataset = trained
    network, card = storage.load_autoencoder(settings.state, "toys")
    found = measure_report(settings, model, dataset, network, card, no_progress)
    assert (found.name, found.fingerprint, found.images) == ("toys", card.fingerprint, 5)
    assert found.unexplained == pytest.approx(card.quality.unexplained, rel=1e-4)
    assert found.active.mean == pytest.approx(card.quality.active)
    assert found.positions == card.quality.positions
    assert sum(found.density.counts) + found.dead == 128
    effect = found.output
    assert effect.measure == "binary_kl"
    assert effect.recovered.value is not None
    assert 0.5 < effect.recovered.value < 1
    blank = SparseAutoencoder(96, 128, 8, "topk")
    with torch.no_grad():
        blank.decoder.zero_()
    nothing = measure_report(settings, model, dataset, blank, card, no_progress).output
    assert nothing.recovered.value is not None
    assert nothing.recovered.value < 0.2, "an auto-encoder that gives zeros recovers next to nothing"
    assert nothing.ablated == effect.ablated, "the mean is that of the layer, whatever the auto-encoder"


@pytest.mark.parametrize("stage", ["Reading", "Rebuilding", "Comparing", "Running"])
def test_it_can_be_stopped_at_every_stage(trained: tuple[LabSettings, Any, Any], stage: str) -> None:
    settings, model, dataset = trained
    network, card = storage.load_autoencoder(settings.state, "toys")

    def stop(what: str, done: int, total: int) -> None:
        if what.startswith(stage):
            raise Cancelled

    with pytest.raises(Cancelled):
        measure_report(settings, model, dataset, network, card, stop)
