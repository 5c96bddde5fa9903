"""The thing under study, and what is logged of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from workers.protocols.images import Json, Origin, Picture, Progress, silent

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
    """What a system answers to one image."""

    activation: float
    masked: Image


@dataclass(frozen=True)
class Exemplar:
    """A data set image that maximally activates a system."""

    activation: float
    picture: Picture
    masked: Image
    index: int
    """Position in the data set."""


class UnitRecord(Protocol):
    """What an index knows of one unit."""

    @property
    def quantile(self) -> float:
        """Above this, the unit's map counts as bright."""
        ...

    @property
    def positions(self) -> Sequence[int]:
        """Data set images that activate it most, best first; empty if none does."""
        ...


class UnitIndex(Protocol):
    """What the data set says of the units of a model; made by `lab.exemplars`, read by systems."""

    def unit(self, layer: str, unit: int, progress: Progress = silent) -> UnitRecord: ...

    def picture(self, position: int) -> Picture: ...


class Subject(Protocol):
    """The thing under study behind `system`: one unit, a logit, a synthetic neuron."""

    spec: SystemSpec

    def respond(self, images: Sequence[Image]) -> list[Response]:
        """Activation and masked image for each image; depends on the image alone."""
        ...

    def exemplars(self, progress: Progress = silent) -> Sequence[Exemplar]:
        """The data set images that activate it most, best first; empty if none activates it at all."""
        ...


@dataclass(frozen=True)
class Observation:
    """One image an experiment logged. `image` and `masked` are keys; `image` is always the raw one."""

    title: str
    activation: float
    image: str
    masked: str | None = None
    origin: Origin = "uploaded"
    prompt: str = ""
    seed: int | None = None
    original: str | None = None
    """Key of the image this one was edited from."""


@dataclass(frozen=True)
class LogEntry:
    """What one call of `tools.log_experiment` (or `tools.display`) left: observations, then words."""

    observations: tuple[Observation, ...]
    text: str = ""
