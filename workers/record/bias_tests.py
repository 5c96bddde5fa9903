"""The test result of a stated bias, as the end event of a run stores it. `workers/bias` computes it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BiasTest:
    """A bias that a conclusion states, and its test on the run's images.

    The unit of analysis is the prompt: a prompt counts with the mean activation of its images.
    """

    text: str
    """The line of the conclusion."""
    context: str
    after: int | None = None
    """See `StatedBias.after`."""
    fresh: bool = False
    """True if the images were drawn after the bias was stated, from prompts that were new then.

    Other images may have led the agent to state it, so their p-value is corrected for all contexts that it may have
    been chosen from.
    """
    inside: int = 0
    """Number of prompts with the context."""
    outside: int = 0
    inside_mean: float | None = None
    outside_mean: float | None = None
    effect: float | None = None
    """Standardized difference, inside minus outside (Hedges' g); None with fewer than two prompts on a side."""
    low: float | None = None
    high: float | None = None
    """Its 95 % interval (Hedges and Olkin 1985)."""
    p: float | None = None
    """Two-sided p-value of a permutation test of the difference of means."""
    adjusted_p: float | None = None
    """Corrected p-value: on fresh images for all biases that the run stated and tested (Holm 1979), else for the
    contexts tried."""
    holds: bool = False
    """True if the difference has the stated direction and the corrected p-value is below 0.05."""
    why: str = ""
    """Why it could not be tested."""
