"""The bounded log of an experiment: observations and texts, in order.

It also holds what earlier experiments of the run logged, for programs that read back. `Tools` writes into it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from workers.errors import ToolMisuse
from workers.lab.memory import StoredImage, encode_text, find_raw
from workers.lab.system import System
from workers.protocols import ImageMemory
from workers.record.engine_parameters import read_parameters
from workers.record.experiments import LogEntry, Observation
from workers.record.figures import differs

MAX_OBSERVATIONS = 256
"""Maximum number of images that one experiment may log."""
TEXT_CHARS = 40_000
"""Maximum characters that one experiment may log; the rest is cut."""
LATEST_RESULTS = 200
"""Results that a program can read back."""
RESULT_CHARS = 48 << 20
"""Characters of their images; more would not fit through the wire."""


@dataclass(frozen=True)
class LoggedImage:
    """An image as the program logged it. `claimed` is the activation it named, None if it named none."""

    image: StoredImage
    claimed: float | None = None
    title: str = ""


class ExperimentLog:
    """The log of one experiment."""

    def __init__(self, system: System, memory: ImageMemory, earlier: Sequence[LogEntry]) -> None:
        self.entries: list[LogEntry] = []
        self._system = system
        self._memory = memory
        self._earlier = tuple(earlier)
        self._chars_left = TEXT_CHARS

    def add(self, images: Sequence[LoggedImage], text: str = "") -> None:
        """Log one entry. Raises ToolMisuse if the experiment has logged too many images."""
        logged = sum(len(entry.observations) for entry in self.entries)
        if logged + len(images) > MAX_OBSERVATIONS:
            raise ToolMisuse(
                f"This experiment has logged {logged} images and {len(images)} more came; "
                f"one experiment logs {MAX_OBSERVATIONS} at most. Log the rest in the next experiment."
            )
        raw = [find_raw(self._memory, each.image) for each in images]
        # Every logged number is measured, so images that were not measured yet are measured now.
        self._system.measure(raw)
        seen = tuple(self._observation(*pair) for pair in zip(images, raw, strict=True))
        kept = text[: self._chars_left]
        self._chars_left -= len(kept)
        cut = "" if kept == text else f" [cut: an experiment logs {TEXT_CHARS} characters at most]"
        self.entries.append(LogEntry(seen, kept + cut))

    @property
    def experiment_log(self) -> list[dict[str, Any]]:
        """Return every entry of the run so far, as plain data."""
        return [
            {"images": [{"title": seen.title, "activation": seen.activation} for seen in entry.observations]}
            | {"text": entry.text}
            for entry in self._all()
        ]

    @property
    def results_list(self) -> list[dict[str, Any]]:
        """Return the latest results of the run, oldest first, each {title: {"activation": number, "image": Base64}}."""
        seen = [observation for entry in self._all() for observation in entry.observations]
        found: list[dict[str, Any]] = []
        left = RESULT_CHARS
        # The latest first, so that the oldest are left out if not all fit through the wire.
        for each in reversed(seen[-LATEST_RESULTS:]):
            text = encode_text(self._memory, each.masked or each.image)
            left -= len(text)
            if left < 0:
                break
            found.append({each.title: {"activation": each.activation, "image": text}})
        return found[::-1]

    def _observation(self, logged: LoggedImage, raw: StoredImage) -> Observation:
        """Return what is known of a logged image: both raw and masked image are found from either."""
        found = self._system.measured[raw.key]
        known, plain = raw.provenance, logged.image.key == raw.key
        return Observation(
            title=logged.title,
            activation=found.activation,
            image=raw.key,
            masked=found.masked if plain else logged.image.key,
            map=found.map,
            origin=known.origin,
            prompt=known.prompt,
            seed=known.seed,
            original=known.original,
            claimed=logged.claimed,
            measured=True,
            differs=logged.claimed is not None and differs(logged.claimed, found.activation),
            plain=found.masked != raw.key and plain,
            parameters=read_parameters(known.scene),
        )

    def _all(self) -> Iterable[LogEntry]:
        return (*self._earlier, *self.entries)
