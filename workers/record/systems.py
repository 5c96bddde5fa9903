"""The system under study, as a run names it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class SystemSpec:
    """The system that a user selects on the New run page."""

    kind: str
    """Key in `registry.SYSTEMS`, for example "unit"."""
    model: str
    layer: str
    unit: int
    options: Mapping[str, Any] = field(default_factory=dict)
    """Plain JSON."""


@dataclass(frozen=True)
class OrdinaryActivations:
    """Median and two quantiles of the activations of ordinary images of the dataset."""

    images: int
    """How many images were looked at."""
    median: float
    q90: float
    q99: float
