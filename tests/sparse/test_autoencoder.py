"""The network and its losses: what is kept of latents, and the traps of training that published code fell into."""

from __future__ import annotations

import pytest
import torch

from workers.record.sparse import KINDS
from workers.sparse.autoencoder import (
    SparseAutoencoder,
    geometric_median,
    keep_per_batch,
    keep_per_row,
)
from workers.sparse.losses import auxiliary_loss, reconstruction_loss
from workers.sparse.quality import measure_quality
from workers.sparse.recipe import SparseRecipe, TrainingPlan

FOUND = torch.tensor([[5.0, 4.0, 3.0, 0.0], [2.0, 1.0, 0.0, 0.0]])


def test_topk_keeps_the_largest_of_each_position() -> None:
    assert keep_per_row(FOUND, 2).tolist() == [[5, 4, 0, 0], [2, 1, 0, 0]]


def test_batchtopk_keeps_k_for_each_position_of_the_batch() -> None:
    """k x positions, not k of the whole batch; one position may have more than another."""
    assert keep_per_batch(FOUND, 2).tolist() == [[5, 4, 3, 0], [2, 0, 0, 0]]
    assert (keep_per_batch(torch.rand(50, 40) + 1, 3) > 0).sum() == 150


def test_encoder_and_decoder_share_no_memory() -> None:
    network = SparseAutoencoder(3, 5, 1, "topk")
    with torch.no_grad():
        network.encoder += 1
    assert torch.allclose(network.decoder.norm(dim=1), torch.ones(5))
    assert not torch.equal(network.encoder, network.decoder)


@pytest.mark.parametrize("kind", KINDS)
def test_latents_of_a_position_do_not_depend_on_its_batch(kind: str) -> None:
    network = SparseAutoencoder(6, 20, 3, kind)
    network.threshold.fill_(0.5)
    points = torch.randn(9, 6, generator=torch.Generator().manual_seed(1))
    together = network.encode(points)
    assert torch.allclose(together, torch.cat([network.encode(each[None]) for each in points]), atol=1e-6)
    assert (together > 0).any()


def test_the_threshold_is_saved_with_the_weights() -> None:
    network = SparseAutoencoder(3, 5, 1, "batchtopk")
    network.measure_threshold(torch.tensor([[0.0, 0.7], [0.2, 0.0]]), 0.9)
    other = SparseAutoencoder(3, 5, 1, "batchtopk")
    other.load_state_dict(network.state_dict())
    assert other.threshold.item() == pytest.approx(0.2)


def test_the_threshold_follows_batches_and_an_empty_one_changes_nothing() -> None:
    network = SparseAutoencoder(3, 5, 1, "batchtopk")
    network.measure_threshold(torch.zeros(2, 5), 0.9)
    assert network.threshold.item() == 0
    network.measure_threshold(torch.full((2, 5), 1.0), 0.9)
    network.measure_threshold(torch.full((2, 5), 2.0), 0.9)
    network.measure_threshold(torch.zeros(2, 5), 0.9)
    assert network.threshold.item() == pytest.approx(1.1)


def test_matryoshka_groups_end_at_fractions_and_sum_to_the_whole() -> None:
    network = SparseAutoencoder(6, 64, 3, "matryoshka")
    latents = torch.rand(5, 64)
    rebuilt = list(network.decode_nested(latents))
    assert len(rebuilt) == 5
    assert torch.allclose(rebuilt[0], latents[:, :4] @ network.decoder[:4] + network.decoder_bias)
    assert torch.allclose(rebuilt[-1], network.decode(latents), atol=1e-5)


def test_a_folded_scale_gives_the_latents_and_sums_of_the_layer() -> None:
    network = SparseAutoencoder(6, 20, 3, "batchtopk")
    with torch.no_grad():
        network.encoder_bias.normal_()
        network.decoder_bias.normal_()
    network.threshold.fill_(0.3)
    points = torch.randn(9, 6)
    latents = network.encode(points)
    rebuilt = network.decode(latents)
    network.fold_scale(4.0)
    assert torch.allclose(network.encode(4 * points), 4 * latents, atol=1e-5)
    assert torch.allclose(network.decode(4 * latents), 4 * rebuilt, atol=1e-5)


def test_the_gradient_along_a_decoder_row_is_dropped() -> None:
    network = SparseAutoencoder(3, 5, 1, "topk")
    network.decoder.grad = torch.randn(5, 3)
    network.drop_parallel_gradient()
    assert torch.allclose((network.decoder.grad * network.decoder).sum(1), torch.zeros(5), atol=1e-6)


def test_dead_latents_get_a_gradient_and_others_do_not() -> None:
    network = SparseAutoencoder(4, 6, 1, "topk")
    points = torch.randn(30, 4, generator=torch.Generator().manual_seed(2))
    dead = torch.tensor([True, False, True, False, False, False])
    with torch.no_grad():
        network.encoder_bias[0] = -100  # negative everywhere: a ReLU would let no gradient through
    projected = network.project(points)
    _, residual = reconstruction_loss(network, points, network.keep_largest(projected.relu()))
    auxiliary_loss(network, residual, projected, dead).backward()
    assert network.encoder.grad is not None
    assert (network.encoder.grad.abs().sum(1) > 0).tolist() == dead.tolist()


@pytest.mark.parametrize("residual", [torch.zeros(4, 3), torch.ones(4, 3)])
def test_where_nothing_is_left_over_dead_latents_cost_nothing(residual: torch.Tensor) -> None:
    """A share of no variance would be NaN, and so would every weight after the step."""
    network = SparseAutoencoder(3, 5, 1, "topk")
    loss = auxiliary_loss(network, residual, torch.rand(4, 5), torch.ones(5, dtype=torch.bool))
    assert loss.item() == 0


def test_the_geometric_median_is_not_moved_by_an_outlier() -> None:
    points = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1000.0, 1000.0]])
    assert (geometric_median(points) - points[:4].mean(0)).norm() < 1


def test_the_unexplained_fraction_is_taken_around_one_mean() -> None:
    """The mean of all positions has 1, what is rebuilt exactly 0, whatever is added to all activations."""
    points = torch.randn(50, 3, generator=torch.Generator().manual_seed(3)) + 100
    network = SparseAutoencoder(3, 6, 6, "topk")
    with torch.no_grad():
        network.encoder.zero_()
        network.decoder_bias.copy_(points.mean(0))
    assert measure_quality(network, points, 0.0).unexplained == pytest.approx(1, rel=1e-3)
    with torch.no_grad():
        network.decoder.copy_(torch.cat([torch.eye(3), -torch.eye(3)]))
        network.encoder.copy_(network.decoder)
    found = measure_quality(network, points, 0.0)
    assert found.unexplained == pytest.approx(0, abs=1e-6)
    assert found.active == pytest.approx(3)


def test_windows_shrink_with_the_run() -> None:
    """A dead window of ten million positions would never end in a run of one million."""
    short, long = TrainingPlan(250, 4096, 512), TrainingPlan(500_000, 4096, 512)
    assert short.dead_after == 250 * 4096 // 20
    assert long.dead_after == 10_000_000
    assert (short.warm_up, long.warm_up) == (25, 1_000)
    assert (short.threshold_decay, long.threshold_decay) == (0.96, 0.999)


def test_the_rate_rises_and_falls() -> None:
    plan = TrainingPlan(100, 10, 1 << 14)
    assert [plan.rate(step) / 2e-4 for step in (0, 9, 50, 90, 99)] == pytest.approx([0.1, 1, 1, 0.5, 0.05])


def test_steps_follow_from_images() -> None:
    assert SparseRecipe(512, 8, images=1_000).count_steps(49) == 12
    assert SparseRecipe(512, 8, steps=7).count_steps(49) == 7
    assert SparseRecipe(512, 8).count_steps(49) == 5_000


def test_the_latent_that_adds_most_counts_where_the_unit_is_strongest() -> None:
    network = SparseAutoencoder(3, 4, 4, "topk")
    with torch.no_grad():
        network.encoder.copy_(torch.eye(4, 3))
        network.decoder.copy_(torch.tensor([[1.0, 0, 0], [0.5, 0, 0], [0, 0, 1.0], [9.0, 0, 0]]))
    maps = torch.zeros(2, 3, 2, 2)
    maps[:, 0, 0, 0] = 1.0  # where unit 0 is strongest, latents 0 and 1 are active
    maps[:, 1, 0, 0] = 1.5
    maps[:, 1, 1, 1] = 50.0  # elsewhere latent 1 is far more so
    assert network.find_strongest(maps, 0) == 0
    assert network.find_strongest(maps, 1) is None, "no latent writes to it"
    assert network.find_strongest(maps[:0], 0) is None
