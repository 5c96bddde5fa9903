"""Ask a plug-in judge what images of a dataset show. Used by tests of labels and by their checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from workers.errors import RequestError
from workers.lab.imaging import placeholder
from workers.protocols import Dataset, Json, Picture, PresenceJudge, Progress, no_progress

AT_ONCE = 64
"""Pictures held in memory at a time for a judge that looks."""


def judge_images(
    judge: PresenceJudge, label: str, images: Dataset, positions: Sequence[int], progress: Progress = no_progress
) -> NDArray[np.float64]:
    """Return how likely each image shows what the label says, in [0, 1], (n,); NaN where the judge cannot say.

    Raises RequestError if the label has no content that can be tested, and Cancelled.
    """
    if judge.kind == "exact":  # it reads only the scene, so nothing is drawn
        said = judge.judge(label, [Picture(placeholder(), _find_scene(images, at)) for at in positions], progress)
    else:
        parts = (positions[start : start + AT_ONCE] for start in range(0, len(positions), AT_ONCE))
        said = [each for part in parts for each in judge.judge(label, [images[at] for at in part], progress)]
    # None becomes NaN, which arrays can hold.
    return np.array([np.nan if each is None else each for each in said], dtype=np.float64)


def judge_labels(
    judge: PresenceJudge,
    labels: Sequence[str],
    most: int,
    images: Dataset,
    positions: Sequence[int],
    progress: Progress = no_progress,
) -> dict[str, NDArray[np.float64]]:
    """Judge the first labels, up to `most`, that the judge can test; each image is read, or drawn, once.

    Raises Cancelled.
    """
    is_exact = judge.kind == "exact"
    # An exact judge reads scenes alone, which take no memory.
    size = max(1, len(positions)) if is_exact else AT_ONCE
    said: dict[str, list[float | None]] = {}
    for start in range(0, len(positions), size):
        part = positions[start : start + size]
        pictures = [Picture(placeholder(), _find_scene(images, at)) if is_exact else images[at] for at in part]
        # The first part of the images tells which labels can be tested at all.
        for label in labels if not start else list(said):
            if len(said) == most and label not in said:
                break
            try:
                answers = judge.judge(label, pictures, progress)
            except RequestError:
                continue
            said.setdefault(label, []).extend(answers)
    return {
        label: np.array([np.nan if each is None else each for each in answers], dtype=np.float64)
        for label, answers in said.items()
        # A label that failed on a later part is left out: its answers would not match the positions.
        if len(answers) == len(positions)
    }


def _find_scene(images: Dataset, position: int) -> Json:
    """Return the scene behind an image, without drawing it if the dataset knows its scenes; None for mere pixels."""
    ask: Callable[[int], Json] | None = getattr(images, "scene", None)
    return ask(position) if ask else images[position].scene
