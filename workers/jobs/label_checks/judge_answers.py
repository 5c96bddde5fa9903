"""Answers of a judge about images, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class JudgeAnswers:
    """A judge's answers about images, in their order."""

    judge: str
    answers: Floats
    """Values in [0, 1]; NaN for no answer."""
    exact: bool = False
    free: bool = True
    """True if asking again costs nothing."""
    weights: Floats | None = None
    """Relative number of images that each one represents, if only a sample was judged."""
    unread: int = 0
    problem: str = ""
