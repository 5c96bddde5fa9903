"""What the test of a stated bias came to, as the end of its run keeps it. `workers/bias` makes it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BiasTest:
    """A bias that a conclusion states, and what the run's images say of it. A case is a prompt: of its images, the
    mean activation, as the system gave it."""

    text: str
    """The line of the conclusion."""
    context: str
    after: int | None = None
    """As of `StatedBias`."""
    fresh: bool = False
    """Whether the images were drawn after it was stated, of prompts that were new then. Others made somebody state it,
    so that their p-value is corrected for all contexts among which it may have been chosen."""
    inside: int = 0
    """Prompts with the context."""
    outside: int = 0
    inside_mean: float | None = None
    outside_mean: float | None = None
    effect: float | None = None
    """Standardised difference, inside less outside (Hedges' g); None with fewer than two prompts on a side."""
    low: float | None = None
    high: float | None = None
    """Its 95 % interval (Hedges and Olkin 1985)."""
    p: float | None = None
    """Of a permutation test of the difference of means, two-sided."""
    adjusted_p: float | None = None
    """Corrected: on fresh images for all that the run stated and tested (Holm 1979), else for the contexts tried."""
    holds: bool = False
    """Whether the difference goes the stated way and the corrected p is below 0.05."""
    why: str = ""
    """Why it could not be tested."""
