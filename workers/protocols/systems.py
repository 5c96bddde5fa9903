"""The system under study, and its records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from workers.protocols.images import Picture, Progress, no_progress
from workers.record.circuits import CircuitMember
from workers.record.systems import OrdinaryActivations, SystemSpec

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True)
class MapImage:
    """Where an image drives a system, as a small grey image over all of it: black is `low`, white is `high`.

    What is above `threshold` is bright in the masked image.
    """

    grey: Image
    low: float
    high: float
    threshold: float


@dataclass(frozen=True)
class Response:
    """What a system answers to one image. `activation` is the network's own value: rounding is for display only."""

    activation: float
    masked: Image
    map: MapImage | None = None
    """None if the system does not tell where."""


@dataclass(frozen=True)
class Exemplar:
    """A dataset image that maximally activates a system."""

    activation: float
    picture: Picture
    masked: Image
    index: int
    """Position in the dataset."""
    map: MapImage | None = None


class UnitRecord(Protocol):
    """The record of one unit in an index."""

    @property
    def quantile(self) -> float:
        """Above this, the unit's map counts as bright."""

    @property
    def positions(self) -> Sequence[int]:
        """Dataset images that activate it most, best first; empty if none does."""

    @property
    def ordinary(self) -> OrdinaryActivations | None:
        """Activations of ordinary images; None if they were not counted."""


class UnitIndex(Protocol):
    """What the dataset says of a model's units; made by `lab.exemplars`, read by systems."""

    def unit(self, layer: str, unit: int, progress: Progress = no_progress) -> UnitRecord: ...

    def picture(self, position: int) -> Picture: ...


class Subject(Protocol):
    """The thing under study behind `system`: one unit, a logit, a synthetic neuron."""

    spec: SystemSpec

    def respond(self, images: Sequence[Image]) -> list[Response]:
        """Return activation and masked image for each image; depends on the image alone."""

    def exemplars(self, progress: Progress = no_progress) -> Sequence[Exemplar]:
        """Return the dataset images that activate it most, best first; empty if none activates it at all."""

    def ordinary(self, progress: Progress = no_progress) -> OrdinaryActivations | None:
        """Return activations of ordinary images, in the unit of `respond`; None if unknown."""


@dataclass(frozen=True)
class CircuitResponse:
    """What a circuit answers to one image."""

    response: Response
    members: tuple[float, ...]
    """Activation of each member, as its network gave it."""
    combined: list[list[float]]
    """Where the members respond together: rows of the combined map, from the top."""


class CircuitSubject(Subject, Protocol):
    """A circuit behind `system`."""

    @property
    def members(self) -> Sequence[CircuitMember]: ...

    def find_thresholds(self) -> list[float]:
        """Return the divisors of the members' activations."""

    def respond_members(self, images: Sequence[Image]) -> list[CircuitResponse]:
        """As `respond`, with every member."""
