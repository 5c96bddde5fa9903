"""The result of a program: what it logged, which tools it called, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from workers.record.functions import Sample
from workers.record.origins import Origin

ExperimentStatus = Literal["ok", "program_error", "tool_error", "timeout", "memory", "killed"]


@dataclass(frozen=True)
class ToolCall:
    """One tool call of a program. `arguments` is a short, readable summary."""

    name: str
    arguments: str
    seconds: float
    failed: bool = False
    """True if the tool raised an error in the program. False in old records."""


@dataclass(frozen=True)
class ActivationMap:
    """Where an image activates the system: a small grey image that covers it, black for `low`, white for `high`."""

    image: str
    """Key of the stored grey image."""
    low: float
    high: float
    threshold: float
    """Values above it are bright in the masked image."""


@dataclass(frozen=True)
class Observation:
    """One image that an experiment logged. `image` and `masked` are keys; `image` is always the unmasked one."""

    title: str
    activation: float
    """What the system returned for exactly this image. If not `measured`, it is what the program claimed."""
    image: str
    masked: str | None = None
    origin: Origin = Origin.EXTERNAL
    prompt: str = ""
    seed: int | None = None
    original: str | None = None
    """Key of the image this one was edited from."""
    claimed: float | None = None
    """What the program logged as its activation; None if it named none."""
    measured: bool = False
    """True if `activation` is what the system returned. False in imported transcripts and in old records."""
    differs: bool = False
    """True if `claimed` differs from `activation` by more than rounding; see `figures.differs`."""
    plain: bool = False
    """True if pages show the unmasked image, because the program logged that one."""
    map: ActivationMap | None = None
    """Where the image activates the system; None in old records, or if the system has no maps."""
    parameters: Mapping[str, float] = field(default_factory=dict)
    """Parameters of the game engine, named as in `record.engine_parameters`; empty for other images."""


@dataclass(frozen=True)
class LogEntry:
    """The result of one call of `tools.log_experiment` or `tools.display`: observations or samples, then text."""

    observations: tuple[Observation, ...]
    text: str = ""
    samples: tuple[Sample, ...] = ()
