"""Concepts laid over fewer neurons: what is drawn, what an auto-encoder finds again, and what the command tells."""

from __future__ import annotations

import json
from io import StringIO
from statistics import fmean

import pytest
import torch
from django.core.management import CommandError, call_command

from workers.errors import Cancelled
from workers.sparse import superposition
from workers.sparse.superposition import RATE, Recovery, Superposition


@pytest.fixture(autouse=True)
def _few_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(superposition, "HELD_OUT", 4_000)


def find(trial: Superposition) -> Recovery:
    shown, fresh = (superposition.draw_independently(200, seed) for seed in (0, 1))
    return superposition.find_recovery(trial, shown, fresh)


def test_training_finds_concepts_that_no_neuron_and_no_random_row_follows() -> None:
    found = find(Superposition(steps=200, batch=1_024))
    assert len(found.correlations) == len(found.cosines) == 200
    assert fmean(found.untrained) < 0.45, "the decoder must not begin with the directions"
    assert fmean(found.cosines) > fmean(found.untrained) + 0.2
    assert max(found.neurons) < superposition.RECOVERED
    assert 0 < found.unexplained < 0.6
    assert found.present == pytest.approx(200 * RATE, abs=0.1)


def test_an_auto_encoder_that_knows_the_directions_recovers_all() -> None:
    directions = torch.eye(200, 400)
    network = superposition.SparseAutoencoder(400, 200, 3, "batchtopk")
    with torch.no_grad():
        network.decoder.copy_(directions)
        network.encoder.copy_(directions)
        network.threshold.fill_(0.5)
    presence = superposition.draw_independently(200, 0)(2_000)
    found = superposition._measure_recovery(network, directions, (0.0,), presence, presence @ directions)
    assert min(found.correlations) > 0.99
    assert min(found.neurons) > 0.99, "each concept has a neuron of its own"
    assert min(found.cosines) == pytest.approx(1)
    assert found.unexplained < 0.01
    assert superposition.summarise(found)["recovered"] == 1


def test_the_same_seed_gives_the_same_and_another_one_other_directions() -> None:
    one, same, other = (superposition._draw_directions(200, 64, seed) for seed in (0, 0, 1))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert torch.allclose(one.norm(dim=1), torch.ones(200))
    first, again = (superposition.draw_independently(200, 5)(100) for _ in range(2))
    assert torch.equal(first, again)


def test_a_concept_that_is_never_there_is_not_recovered() -> None:
    found = superposition.find_recovery(
        Superposition(steps=2, batch=64),
        superposition.draw_independently(200, 0),
        lambda count: torch.zeros(count, 200),
    )
    assert set(found.correlations) == {0.0}


@pytest.mark.django_db
def test_the_command_tells_both_sources_beside_the_goals(monkeypatch: pytest.MonkeyPatch) -> None:
    from workers.jobs import sparse

    monkeypatch.setattr(sparse, "SCENES", 300)
    monkeypatch.setattr(sparse, "HELD_OUT_SCENES", 200)
    out = StringIO()
    call_command("sae", "truth", "--seeds", "2", "--steps", "3", stdout=out, stderr=StringIO())
    for said in ("drawn one by one", "as they stand in scenes", "goal 0.9", "goal 0.95", "200 concepts"):
        assert said in out.getvalue()
    out = StringIO()
    call_command("sae", "truth", "--seeds", "1", "--steps", "3", "--kind", "topk", "--json", stdout=out)
    told = json.loads(out.getvalue())
    assert told["trial"]["kind"] == "topk"
    for source in ("independent", "scenes"):
        (only,) = told["sources"][source]
        assert 0 <= only["recovered"] <= 1
        assert 1 <= only["present"] <= 4
    with pytest.raises(CommandError, match="give a smaller k"):
        call_command("sae", "truth", "--k", "9", "--latents", "4", stdout=StringIO())


def test_it_can_be_stopped() -> None:
    def stop(what: str, done: int, total: int) -> None:
        if done == 2:
            raise Cancelled("stopped")

    shown, fresh = (superposition.draw_independently(200, seed) for seed in (0, 1))
    with pytest.raises(Cancelled):
        superposition.find_recovery(Superposition(steps=5), shown, fresh, stop)
