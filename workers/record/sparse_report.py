"""What a report says of a sparse auto-encoder: measured on images that its training never saw. Plain JSON both ways."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from workers.record.estimates import NONE, Estimate


@dataclass(frozen=True)
class BinCounts:
    """How many values lie between neighbouring edges."""

    edges: tuple[float, ...]
    """Ascending, one more than there are counts. A value on an edge counts to the right of it, the last to the left."""
    counts: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.counts or len(self.edges) != len(self.counts) + 1:
            raise ValueError(f"{len(self.edges)} edges do not bound {len(self.counts)} bins")


@dataclass(frozen=True)
class ActiveCounts:
    """Latents that are active at a position: L0."""

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
    """None where there is one latent alone."""
    near: float | None
    """Share of latents with a cosine above .9: there is another one for nearly the same direction."""


@dataclass(frozen=True)
class OutputEffect:
    """What becomes of the model's own output when something else takes the place of the layer's activations.

    "rebuilt" is the auto-encoder's reconstruction, "ablated" the mean activation of each unit at all places.
    """

    measure: Literal["kl", "binary_kl", "change", ""] = ""
    """"kl": divergence of the probabilities of the classes from the model's own, in nats. "binary_kl": the same of each
    class by itself, summed. "change": for models without classes, squared change of the output over its variance
    among images. "" if nothing was measured."""
    rebuilt: Estimate = NONE
    """Mean over images; 0 is best."""
    ablated: Estimate = NONE
    recovered: Estimate = NONE
    """1 - rebuilt / ablated: 1 is best, 0 no better than the mean. None where the mean changes nothing."""
    same_rebuilt: Estimate = NONE
    """Share of images whose answer stays: the class on top, or all classes above .5. None without classes."""
    same_ablated: Estimate = NONE
    why: str = ""
    """Why nothing was measured; "" if it was."""


@dataclass(frozen=True)
class SparseReport:
    """A report. `images` and `positions` say how many it rests on."""

    name: str
    fingerprint: str
    """Of the auto-encoder, as on its card."""
    images: int
    positions: int
    latents: int
    unexplained: float
    """Squared errors over squared distances from the mean of all positions: 0 is best, the mean has 1."""
    active: ActiveCounts
    dead: int
    """Latents that are active at none of the positions."""
    density: BinCounts
    """Of the others: log10 of the share of positions at which a latent is active, -6 to 0."""
    similarity: DecoderSimilarity
    encoder_cosine: float
    """Mean over latents of the cosine between encoder row and decoder row."""
    output: OutputEffect

    @property
    def dead_share(self) -> float:
        return self.dead / self.latents


def read_report(facts: Any) -> SparseReport:
    """A report from the plain JSON that it was stored as. Raises ValueError if it is none."""
    try:
        return msgspec.convert(facts, SparseReport)
    except msgspec.ValidationError as error:
        raise ValueError(f"This is no report of a sparse auto-encoder: {error}. Make it again.") from None
