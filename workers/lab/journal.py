"""What an experiment logs: observations and words, in order, with a bound on both.

Holds what earlier experiments of the run logged too, for programs that look back. `Tools` writes into it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from workers.errors import ToolMisuse
from workers.lab.memory import Kept, text_of, unmasked
from workers.lab.system import System
from workers.protocols import ImageMemory, LogEntry, Observation

MOST_OBSERVATIONS = 256
"""Images one experiment may log."""
TEXT_CHARS = 40_000
"""Characters one experiment may log; what is beyond is cut."""
LATEST_RESULTS = 200
"""Results a program can look back on; more would not fit through the wire."""


class Journal:
    """The log of one experiment."""

    def __init__(self, system: System, memory: ImageMemory, earlier: Sequence[LogEntry]) -> None:
        self.entries: list[LogEntry] = []
        self._system = system
        self._memory = memory
        self._earlier = tuple(earlier)
        self._chars_left = TEXT_CHARS

    @property
    def best(self) -> float | None:
        """The highest activation logged in this experiment."""
        return max((seen.activation for entry in self.entries for seen in entry.observations), default=None)

    def add(self, observations: Sequence[Observation], text: str = "") -> None:
        """Log one entry. Raises ToolMisuse if the experiment has logged too many images."""
        logged = sum(len(entry.observations) for entry in self.entries)
        if logged + len(observations) > MOST_OBSERVATIONS:
            raise ToolMisuse(
                f"This experiment has logged {logged} images and {len(observations)} more came; "
                f"one experiment logs {MOST_OBSERVATIONS} at most. Log the rest in the next experiment."
            )
        self.entries.append(LogEntry(tuple(observations), self._cut(text)))

    def observation(self, kept: Kept, activation: float | None = None, title: str = "") -> Observation:
        """What is known of an image the program logged; without an activation it is measured.

        Raw and masked image are both found, whichever of them came.
        """
        raw = unmasked(self._memory, kept)
        if activation is None:
            activation = self._system.activation(raw)
        masked = kept.key if kept.key != raw.key else self._system.measured.get(raw.key, (0.0, None))[1]
        known = raw.provenance
        return Observation(title, activation, raw.key, masked, known.origin, known.prompt, known.seed, known.original)

    @property
    def experiment_log(self) -> list[dict[str, Any]]:
        """Every entry of the run so far, as plain data."""
        return [
            {"images": [{"title": seen.title, "activation": seen.activation} for seen in entry.observations]}
            | {"text": entry.text}
            for entry in self._all()
        ]

    @property
    def results_list(self) -> list[dict[str, Any]]:
        """The latest results of the run, oldest first, each {title: {"activation": number, "image": Base64}}."""
        seen = [observation for entry in self._all() for observation in entry.observations]
        return [{each.title: self._result(each)} for each in seen[-LATEST_RESULTS:]]

    def _result(self, seen: Observation) -> dict[str, Any]:
        return {"activation": seen.activation, "image": text_of(self._memory, seen.masked or seen.image)}

    def _all(self) -> Iterable[LogEntry]:
        return (*self._earlier, *self.entries)

    def _cut(self, text: str) -> str:
        kept = text[: self._chars_left]
        self._chars_left -= len(kept)
        return kept if kept == text else f"{kept} [cut: an experiment logs {TEXT_CHARS} characters at most]"
