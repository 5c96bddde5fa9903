"""What comes of a program: what it logged, which calls it made, how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from workers.record.functions import Sample
from workers.record.origins import Origin

ExperimentStatus = Literal["ok", "program_error", "tool_error", "timeout", "memory", "killed"]


@dataclass(frozen=True)
class ToolCall:
    """One call that a program made; `arguments` is a short, readable summary."""

    name: str
    arguments: str
    seconds: float
    failed: bool = False
    """Whether the tool raised an error in the program. False in old records."""


@dataclass(frozen=True)
class ActivationMap:
    """Where an image drives the system: a small grey image over all of it, whose black stands for `low` and whose
    white for `high`."""

    image: str
    """Key of the stored grey image."""
    low: float
    high: float
    threshold: float
    """What is above it is bright in the masked image."""


@dataclass(frozen=True)
class Observation:
    """One image an experiment logged. `image` and `masked` are keys; `image` is always the raw one."""

    title: str
    activation: float
    """What the system returned for exactly this image; what the program claimed where nobody `measured` it."""
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
    """Whether `activation` is what the system returned. False in imported transcripts and in old records."""
    differs: bool = False
    """Whether `claimed` is another number than `activation`, beyond rounding; see `figures.differs`."""
    plain: bool = False
    """Whether the image itself is to be seen: the program logged it and not its masked one."""
    map: ActivationMap | None = None
    """Where the image drives the system; None in old records, and where the system says nothing of where."""
    parameters: Mapping[str, float] = field(default_factory=dict)
    """What the game engine drew it with, by names of `record.engine_parameters`; empty for other images."""


@dataclass(frozen=True)
class LogEntry:
    """What one call of `tools.log_experiment` (or `tools.display`) left: observations or samples, then words."""

    observations: tuple[Observation, ...]
    text: str = ""
    samples: tuple[Sample, ...] = ()
