"""Test with known truth whether an auto-encoder finds superposed concepts: more concepts than neurons.

Each concept is a direction, a random unit vector over the neurons; a position's activations are the sum of the
directions of the concepts that are present, and noise (after Elhage et al., Toy Models of Superposition, 2022). Which
are present is drawn for each concept by itself, or as in the scenes of a world.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

import torch
from torch import Tensor

from workers.protocols import Progress, no_progress
from workers.record.sparse import BATCHTOPK
from workers.sparse.autoencoder import SparseAutoencoder
from workers.sparse.learner import Learner
from workers.sparse.losses import total_variance
from workers.sparse.quality import measure_reconstruction
from workers.sparse.recipe import TrainingPlan

RECOVERED = 0.9
"""Correlation of a latent with a concept's presence from which the concept counts as recovered."""
HELD_OUT = 20_000
"""Positions that everything is measured on."""
_SAMPLE = 16_384
RATE = 0.0125
"""Probability of a concept where each is drawn by itself: 2.5 of them at a position, as in scenes."""


@dataclass(frozen=True)
class Superposition:
    """Parameters of the data and the training."""

    seed: int = 0
    concepts: int = 200
    neurons: int = 64
    latents: int = 256
    k: int = 3
    """Active latents at a position, on average."""
    kind: str = BATCHTOPK
    noise: float = 0.02
    """Standard deviation of what is added to each neuron."""
    steps: int = 16_000
    """Many short steps: latents settle by the number of steps, rather than by what each of them sees."""
    batch: int = 512
    """Positions of a step."""


@dataclass(frozen=True)
class Recovery:
    """How the concepts were found, each of them by the unit that follows it best."""

    correlations: tuple[float, ...]
    """Of each concept's presence and the latent that follows it best, on positions that training never saw."""
    neurons: tuple[float, ...]
    """The same of the neurons, either sign: what looking at them one by one would find."""
    cosines: tuple[float, ...]
    """Of each concept's direction and the decoder's row that is nearest to it."""
    untrained: tuple[float, ...]
    """The same of the rows before training: what as many random directions come to."""
    unexplained: float
    """Fraction of variance unexplained."""
    active: float
    """Latents active at a position."""
    present: float
    """Concepts present at a position."""


def _make_source(seed: int, purpose: str) -> torch.Generator:
    """Return a generator for one purpose: a decoder that began with the directions would have nothing to find."""
    return torch.Generator().manual_seed(random.Random(f"superposition {seed} {purpose}").getrandbits(62))


Draw = Callable[[int], Tensor]
"""Presence (positions, concepts), 0 or 1, of so many fresh positions."""


def _draw_directions(concepts: int, neurons: int, seed: int) -> Tensor:
    """Return (concepts, neurons), rows of norm 1."""
    start = _make_source(seed, "directions")
    return torch.nn.functional.normalize(torch.randn(concepts, neurons, generator=start))


def draw_independently(concepts: int, seed: int) -> Draw:
    """Draw each concept at a position with the same probability, `RATE`, whatever else is present."""
    # The draws differ from those of directions and noise, or the three would be correlated
    source = _make_source(seed, "presence")
    return lambda count: (torch.rand(count, concepts, generator=source) < RATE).float()


def draw_rows(table: Tensor, seed: int) -> Draw:
    """Return rows of a table of presence, in a random order."""
    source = _make_source(seed, "presence")
    return lambda count: table[torch.randint(len(table), (count,), generator=source)]


def find_recovery(trial: Superposition, shown: Draw, held_out: Draw, progress: Progress = no_progress) -> Recovery:
    """Train an auto-encoder on activations of `shown`, and measure it on those of `held_out`.

    Raises MachineryError for a training that breaks, and what `progress` raises.
    """
    directions, noise = _draw_directions(trial.concepts, trial.neurons, trial.seed), _make_source(trial.seed, "noise")

    def activate(presence: Tensor) -> Tensor:
        return presence @ directions + trial.noise * torch.randn(len(presence), trial.neurons, generator=noise)

    network = SparseAutoencoder(trial.neurons, trial.latents, trial.k, trial.kind, trial.seed)
    # Before training: as many random rows already come near to some directions
    untrained = _find_nearest(directions, network.decoder)
    _train(network, trial, lambda count: activate(shown(count)), progress)
    presence = held_out(HELD_OUT)
    return _measure_recovery(network, directions, untrained, presence, activate(presence))


def _measure_recovery(
    network: SparseAutoencoder, directions: Tensor, untrained: tuple[float, ...], presence: Tensor, activations: Tensor
) -> Recovery:
    """Measure a trained network on positions: directions (concepts, neurons), presence (positions, concepts),
    activations
    (positions, neurons)."""
    with torch.no_grad():
        latents = network.encode(activations)
    rebuilt = measure_reconstruction(network, activations)
    return Recovery(
        correlations=_correlate(presence, latents),
        # Either sign: a neuron may respond with a fall.
        neurons=_correlate(presence, torch.cat([activations, -activations], 1)),
        cosines=_find_nearest(directions, network.decoder),
        untrained=untrained,
        unexplained=rebuilt.unexplained,
        active=float(rebuilt.at_positions.mean()),
        present=float(presence.sum(1).mean()),
    )


def summarise(found: Recovery) -> dict[str, float]:
    """Return shares of the concepts that are recovered, and means over concepts."""
    return {
        "recovered": _share(found.correlations),
        "recovered_by_neurons": _share(found.neurons),
        "correlation": fmean(found.correlations),
        "cosine": fmean(found.cosines),
        "cosine_untrained": fmean(found.untrained),
        "unexplained": found.unexplained,
        "active": found.active,
        "present": found.present,
    }


def _share(correlations: Sequence[float]) -> float:
    return fmean(each >= RECOVERED for each in correlations)


def _train(network: SparseAutoencoder, trial: Superposition, draw: Draw, progress: Progress) -> None:
    sample = draw(_SAMPLE)
    scale = total_variance(sample) ** 0.5
    with torch.no_grad():
        # The bias starts in the middle of the activations.
        network.decoder_bias.copy_(sample.mean(0) / scale)
    learner = Learner(network, TrainingPlan(trial.steps, trial.batch, trial.latents))
    for step in range(trial.steps):
        progress(f"Training seed {trial.seed}", step, trial.steps)
        learner.learn(draw(trial.batch) / scale)
    progress(f"Training seed {trial.seed}", trial.steps, trial.steps)
    network.fold_scale(scale)
    network.eval()


@torch.no_grad()
def _find_nearest(directions: Tensor, rows: Tensor) -> tuple[float, ...]:
    """Return the largest cosine of each direction with a row."""
    return tuple((directions @ torch.nn.functional.normalize(rows).T).amax(1).tolist())


def _correlate(presence: Tensor, values: Tensor) -> tuple[float, ...]:
    """Return the largest Pearson correlation of each concept with a column; 0 of a concept that is never or always
    there."""
    found = _standardise(presence).T @ _standardise(values) / len(presence)
    # Never below 0: a concept that is followed by nothing has 0.
    return tuple(found.amax(1).clamp_min(0.0).tolist())


def _standardise(values: Tensor) -> Tensor:
    """Return columns of mean 0 and variance 1; of 0 alone where they do not vary."""
    centred = values - values.mean(0)
    spread = centred.square().mean(0).sqrt()
    return torch.where(spread > 0, centred / spread.clamp_min(1e-12), torch.zeros_like(centred))
