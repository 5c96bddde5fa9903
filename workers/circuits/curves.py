"""Measure how well the first units of an order explain a class alone, and how much is left without them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workers.circuits.ablation import AblatedLogit
from workers.protocols import Progress

_NEAR = 1e-6
"""A smaller difference of logits counts as none: then there is nothing to explain."""


def is_near(whole: float, nothing: float) -> bool:
    """True if two logits are the same up to rounding."""
    return abs(whole - nothing) <= _NEAR * max(1.0, abs(whole))


@dataclass(frozen=True)
class CircuitPoint:
    """The measurements of a circuit of one size, on some images."""

    faithfulness: float
    """(m(C) - m(0)) / (m(M) - m(0)): 1 if the circuit alone gives the logit, 0 if it gives nothing of it."""
    completeness: float
    """The same of all others without the circuit: 0 if it holds all that matters."""


def measure_curve(
    logit: AblatedLogit,
    order: Sequence[int],
    sizes: Sequence[int],
    what: str,
    progress: Progress,
    whole: float,
) -> list[CircuitPoint] | None:
    """Measure circuits of the first units of an order of all units (Marks et al., arXiv 2403.19647, section 4).

    m is the mean logit, of the model (M), with all units held at their means (0), or all but the circuit (C). None
    where holding all units changes nothing. `whole` is m(M), of a fuller model where `logit` leaves something out.
    """
    # All units held: the logit that needs no circuit
    nothing = logit.measure(order)
    if is_near(whole, nothing):
        return None
    found = []
    for at, size in enumerate(sizes):
        progress(what, at, len(sizes))
        # The circuit is inside; faithfulness holds what is outside
        inside, outside = order[:size], order[size:]
        found.append(
            CircuitPoint(
                (logit.measure(outside) - nothing) / (whole - nothing),
                (logit.measure(inside) - nothing) / (whole - nothing),
            )
        )
    return found
