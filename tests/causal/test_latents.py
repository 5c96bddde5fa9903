"""Latents of a sparse auto-encoder changed in the model below: only what they write changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.support.sparse_layers import save_random
from workers.causal.measuring import check_question, measure_causal_effect
from workers.causal.rewrites import scale_units
from workers.errors import MissingPart
from workers.lab.laboratory import Laboratory
from workers.protocols import LabSettings, find_classes, no_progress
from workers.record.causal import CausalQuestion
from workers.sparse.autoencoder import CONSTANT_NORM, LAYER_NORM, UNCHANGED, SparseAutoencoder
from workers.vision_models.sparse.model import SparseModel

pytestmark = pytest.mark.usefixtures("one_thread")
LATENTS, K, IMAGES = 64, 8, 40


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Laboratory:
    state = tmp_path_factory.mktemp("latents")
    save_random(state, latents=LATENTS, k=K)
    return Laboratory(LabSettings(state, batch_size=16, dataset_images=IMAGES))


def pictures(lab: Laboratory) -> list[Any]:
    return [lab.dataset("toybox")[at].image for at in range(IMAGES)]


@pytest.mark.parametrize("normalisation", [UNCHANGED, LAYER_NORM, CONSTANT_NORM])
@pytest.mark.parametrize("kind", ["topk", "batchtopk"])
def test_all_latents_ablated_leave_the_bias_and_what_is_not_explained(kind: str, normalisation: str) -> None:
    network = SparseAutoencoder(12, 30, 4, kind, seed=3, normalisation=normalisation)
    with torch.no_grad():
        network.decoder_bias.copy_(torch.linspace(-1, 1, 12))
    maps = torch.rand(2, 12, 3, 5, generator=torch.Generator().manual_seed(1)) * 4
    positions = maps.permute(0, 2, 3, 1).reshape(-1, 12)
    with torch.no_grad():
        rebuilt = network.reconstruct(positions)[1]
        _, scale, shift = network._normalise(positions)
        bias = network.decoder_bias * scale + shift
    left = network.rewrite_maps(maps, scale_units(range(30), 0.0, [0.0] * 30))
    found = left.permute(0, 2, 3, 1).reshape(-1, 12)
    torch.testing.assert_close(found, bias + (positions - rebuilt), rtol=1e-4, atol=1e-4)


def test_factor_1_is_the_models_own_output_to_the_bit(lab: Laboratory) -> None:
    model: Any = lab.model("sae:random")
    own = lab.model("toybox").outputs(pictures(lab), "layer4")  # type: ignore[attr-defined]
    assert torch.equal(model.outputs(pictures(lab), "layer4"), own)
    same = scale_units(range(LATENTS), 1.0, [0.3] * LATENTS)
    assert torch.equal(model.outputs(pictures(lab), "layer4", same), own)


def test_a_latent_writes_its_row_of_the_decoder(lab: Laboratory) -> None:
    network, _ = save_random(lab.settings.state, "same", latents=LATENTS, k=K)
    maps = lab.model("toybox").maps(pictures(lab), ["layer4"])["layer4"]
    z = lab.model("sae:random").maps(pictures(lab), ["layer4"])["layer4"]
    changed = network.rewrite_maps(maps, scale_units([5, 9], 3.0, [0.25, 0.0]))
    rows = network.decoder.detach()
    wanted = maps + 2 * torch.einsum("bhw,u->buhw", z[:, 5] - 0.25, rows[5])
    wanted = wanted + 2 * torch.einsum("bhw,u->buhw", z[:, 9], rows[9])
    torch.testing.assert_close(changed, wanted, rtol=1e-4, atol=1e-4)


def test_a_latent_is_checked_as_any_unit(lab: Laboratory) -> None:
    model: Any = lab.model("sae:random")
    classes = find_classes(model)
    assert classes is not None
    assert "cone" in classes.names
    activations = model.maps(pictures(lab), ["layer4"])["layer4"].amax((2, 3)).numpy()
    latent = int(np.argmax(activations.mean(0)))
    question = CausalQuestion((latent,))
    dataset = lab.dataset("toybox")
    found = measure_causal_effect(model, "layer4", question, dataset, range(IMAGES), activations, 16, no_progress)
    assert (found.measure, found.everywhere.images, found.most_active.images) == ("binary_kl", IMAGES, 4)
    assert found.everywhere.divergence.value is not None
    assert found.everywhere.divergence.value > 0
    assert found.everywhere.classes
    assert {each.name for each in found.everywhere.classes} <= set(classes.names)


def test_a_latent_of_a_model_without_output_says_why(lab: Laboratory, tmp_path: Path) -> None:
    class Below:
        name, revision = "sums", "1"

        def layers(self) -> Any:
            return lab.layers("toybox")

    _, card = save_random(tmp_path, latents=LATENTS, k=K)
    model = SparseModel(LabSettings(tmp_path), card, Below())  # type: ignore[arg-type]
    with pytest.raises(MissingPart, match="toybox, the model below sae:random, has no output"):
        model.outputs([], "layer4")
    with pytest.raises(MissingPart, match="the model below sae:random, has no output"):
        check_question(model, "layer4", CausalQuestion((1,)))
