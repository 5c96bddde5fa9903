"""What a judge said of images: plain data between those who ask and those who score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class JudgeAnswers:
    """What a judge said of images, in their order."""

    judge: str
    answers: Floats
    """In [0, 1]; NaN where it gave none."""
    exact: bool = False
    free: bool = True
    """Whether asking again costs nothing."""
    weights: Floats | None = None
    """How many images each stands for, on any scale, where only a sample was asked of."""
    unread: int = 0
    problem: str = ""
