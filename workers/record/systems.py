"""The thing under study, as a run names it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class SystemSpec:
    """Names a system: what a person picks on the New run page."""

    kind: str
    """Key in `registry.SYSTEMS`, for example "unit"."""
    model: str
    layer: str
    unit: int
    options: Mapping[str, Any] = field(default_factory=dict)
    """Plain JSON."""


@dataclass(frozen=True)
class OrdinaryActivations:
    """What the ordinary images of the dataset get: the median and two quantiles of their activations."""

    images: int
    """How many images were looked at."""
    median: float
    q90: float
    q99: float
