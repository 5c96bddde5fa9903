"""The thing under study, what is logged of it, and how its activations are written.

Rounding is for showing, and only as far as no small number becomes none. Pages have the same format, with a real minus
sign (`experiments/display/number_format.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from workers.protocols.images import Json, Origin, Picture, Progress, no_progress

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True)
class SystemSpec:
    """Names a system: what a person picks on the New query page."""

    kind: str
    """Key in `registry.SYSTEMS`, for example "unit"."""
    model: str
    layer: str
    unit: int
    options: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class Response:
    """What a system answers to one image. `activation` is what the network gave: rounding is for showing."""

    activation: float
    masked: Image


@dataclass(frozen=True)
class Exemplar:
    """A dataset image that maximally activates a system."""

    activation: float
    picture: Picture
    masked: Image
    index: int
    """Position in the dataset."""


@dataclass(frozen=True)
class OrdinaryActivations:
    """What the ordinary images of the dataset get: the median and two quantiles of their activations."""

    images: int
    """How many images were looked at."""
    median: float
    q90: float
    q99: float


class UnitRecord(Protocol):
    """What an index knows of one unit."""

    @property
    def quantile(self) -> float:
        """Above this, the unit's map counts as bright."""
        ...

    @property
    def positions(self) -> Sequence[int]:
        """Dataset images that activate it most, best first; empty if none does."""
        ...

    def ordinary(self) -> OrdinaryActivations | None:
        """What ordinary images get; None where nobody counted them."""
        ...


class UnitIndex(Protocol):
    """What the dataset says of the units of a model; made by `lab.exemplars`, read by systems."""

    def unit(self, layer: str, unit: int, progress: Progress = no_progress) -> UnitRecord: ...

    def picture(self, position: int) -> Picture: ...


class Subject(Protocol):
    """The thing under study behind `system`: one unit, a logit, a synthetic neuron."""

    spec: SystemSpec

    def respond(self, images: Sequence[Image]) -> list[Response]:
        """Activation and masked image for each image; depends on the image alone."""
        ...

    def exemplars(self, progress: Progress = no_progress) -> Sequence[Exemplar]:
        """The dataset images that activate it most, best first; empty if none activates it at all."""
        ...

    def ordinary(self, progress: Progress = no_progress) -> OrdinaryActivations | None:
        """What ordinary images get, in the unit of `respond`; None where that is not known."""
        ...


@dataclass(frozen=True)
class Observation:
    """One image an experiment logged. `image` and `masked` are keys; `image` is always the raw one."""

    title: str
    activation: float
    """What the system returned for exactly this image; what the program claimed where nobody `measured` it."""
    image: str
    masked: str | None = None
    origin: Origin = "uploaded"
    prompt: str = ""
    seed: int | None = None
    original: str | None = None
    """Key of the image this one was edited from."""
    claimed: float | None = None
    """What the program logged as its activation; None if it named none."""
    measured: bool = False
    """Whether `activation` is what the system returned. False in imported transcripts and in old records."""
    differs: bool = False
    """Whether `claimed` is another number than `activation`, beyond rounding; see `differs`."""
    plain: bool = False
    """Whether the image itself is to be seen: the program logged it and not its masked one."""


@dataclass(frozen=True)
class LogEntry:
    """What one call of `tools.log_experiment` (or `tools.display`) left: observations, then words."""

    observations: tuple[Observation, ...]
    text: str = ""


# --- activations as text ------------------------------------------------------------------------------

LEAST = 1e-4
"""Numbers nearer to 0 are written with a power of ten."""


def format_activation(value: float) -> str:
    """At least two decimals, and three digits that count: 9.24, 0.5 as 0.50, 0.0123, 4.1e-05.

    So the range of a unit decides how many decimals stand: probabilities of 0.0123 and 0.0101 stay apart.
    """
    size = abs(value)
    if not math.isfinite(value) or size >= 1 or size == 0:
        return f"{value + 0.0:.2f}"
    if size < LEAST:
        return f"{value:.1e}"
    text = f"{value:.{2 - math.floor(math.log10(size))}f}"
    whole, _, decimals = text.partition(".")
    return f"{whole}.{decimals.rstrip('0').ljust(2, '0')}"


def differs(claimed: float, measured: float) -> bool:
    """Whether a program cannot mean by `claimed` what was measured.

    It may have rounded, to two decimals or more, or to three digits that count.
    """
    if abs(claimed - measured) <= 0.005 * abs(measured):
        return False
    return not any(abs(round(measured, digits) - claimed) < 1e-9 for digits in range(2, 8))
