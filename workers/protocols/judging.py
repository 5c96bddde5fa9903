"""Parts that write prompts from a label, label from exemplars alone, and judge whether an image shows a label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from workers.protocols.images import Picture, Progress, no_progress
from workers.record.label_checks import LabelReading

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image


@dataclass(frozen=True)
class WrittenPrompts:
    """Prompts of images that should excite a unit if its label is right, and of images that should not."""

    positive: tuple[str, ...]
    neutral: tuple[str, ...]


class PromptWriter(Protocol):
    """Writes prompts from a label. Knows nothing of the unit or the run behind it."""

    name: str

    def write(self, label: str, count: int, seed: int) -> WrittenPrompts:
        """Write `count` prompts of either kind; the same label and seed give the same prompts.

        Raises RequestError for a label with no content that can be tested.
        """


class OneShotLabeller(Protocol):
    """Labels a unit from its masked exemplars alone, without an experiment."""

    def label(self, masked: Sequence[Image]) -> str:
        """Say what they have in common, in a few words; "" if nothing."""


class PresenceJudge(Protocol):
    """Judges whether images show what a label says. Safe for threads."""

    name: str
    revision: str
    kind: Literal["exact", "embedding"]
    """True if it knows what its images show, from the scenes behind them; False if it looks at them."""

    def read(self, label: str) -> LabelReading | None:
        """Explain how it understands a label; None if it takes labels as they are written."""

    def judge(self, label: str, pictures: Sequence[Picture], progress: Progress = no_progress) -> list[float | None]:
        """Return how likely each image shows it, in [0, 1]; None where it cannot say.

        An exact judge reads only the scenes. Raises RequestError for a label with no content that can be tested.
        """


class PartJudge(PresenceJudge, Protocol):
    """A judge that can be asked about a part of an image."""

    def judge_parts(
        self,
        label: str,
        pictures: Sequence[Picture],
        parts: Sequence[NDArray[np.bool_]],
        progress: Progress = no_progress,
    ) -> list[float | None]:
        """Return how likely the marked part of each shows what the label says, in [0, 1]; None where it cannot say.

        A part is a mask of its image, (height, width). Raises RequestError for a label that cannot be tested so.
        """
