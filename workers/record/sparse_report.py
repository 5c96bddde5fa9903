"""The report of a sparse auto-encoder, measured on images that its training never saw. Converts to plain JSON and
back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from workers.record.estimates import NONE, Estimate


@dataclass(frozen=True)
class BinCounts:
    """Number of values between neighbouring edges."""

    edges: tuple[float, ...]
    """Ascending, one more than counts. A value on an edge counts to its right, on the last edge to its left."""
    counts: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.counts or len(self.edges) != len(self.counts) + 1:
            raise ValueError(f"{len(self.edges)} edges do not bound {len(self.counts)} bins")


@dataclass(frozen=True)
class ActiveCounts:
    """Number of latents that are active at a position: L0."""

    mean: float
    low: float
    """The 5 % quantile over positions."""
    median: float
    high: float
    """The 95 % quantile."""


@dataclass(frozen=True)
class DecoderSimilarity:
    """For each latent, the largest cosine between its decoder row and that of another latent."""

    histogram: BinCounts
    """Over [-1, 1]."""
    mean: float | None
    """None with a single latent."""
    near: float | None
    """Share of latents with a cosine above .9, that is, with a near duplicate."""


@dataclass(frozen=True)
class OutputEffect:
    """The change of the model's output when the layer's activations are replaced.

    "rebuilt" uses the auto-encoder's reconstruction, "ablated" the mean activation of each unit at all positions.
    """

    measure: Literal["kl", "binary_kl", "change", ""] = ""
    """How outputs are compared; "" if nothing was measured.

    "kl": divergence of the class probabilities from the model's own, in nats. "binary_kl": the same for each class
    separately, summed. "change", for models without classes: squared change of the output over its variance among
    images.
    """
    rebuilt: Estimate = NONE
    """Mean over images; 0 is best."""
    ablated: Estimate = NONE
    recovered: Estimate = NONE
    """1 - rebuilt / ablated: 1 is best, 0 is no better than the mean. None if the mean changes nothing."""
    same_rebuilt: Estimate = NONE
    """Share of images with an unchanged answer: the top class, or all classes above .5. None without classes."""
    same_ablated: Estimate = NONE
    why: str = ""
    """Why nothing was measured; "" if it was."""


@dataclass(frozen=True)
class SparseReport:
    """A report. `images` and `positions` count what it was measured on."""

    name: str
    fingerprint: str
    """Fingerprint of the auto-encoder, as on its card."""
    images: int
    positions: int
    latents: int
    unexplained: float
    """Squared errors over squared distances from the mean of all positions: 0 is best, the mean gets 1."""
    active: ActiveCounts
    dead: int
    """Latents that are active at no position."""
    density: BinCounts
    """For the other latents: log10 of the share of positions at which they are active, -6 to 0."""
    similarity: DecoderSimilarity
    encoder_cosine: float
    """Mean over latents of the cosine between encoder row and decoder row."""
    output: OutputEffect

    @property
    def dead_share(self) -> float:
        return self.dead / self.latents


def read_report(facts: Any) -> SparseReport:
    """Parse a stored report. Raises ValueError if it is invalid."""
    try:
        return msgspec.convert(facts, SparseReport)
    except msgspec.ValidationError as error:
        raise ValueError(f"This is no report of a sparse auto-encoder: {error}. Make it again.") from None
