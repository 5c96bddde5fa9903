"""Measure features of a classifier on the splits of its dataset, with class and ground of each image; once."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from PIL.Image import Image

from workers.files import atomic_write
from workers.protocols import GroupedDataset, Progress, VisionModel, no_progress

_PART = 64


class ReadsFeatures(Protocol):
    """Reads features of images: units of a classifier, or latents of them."""

    name: str
    revision: str

    def read_features(self, images: list[Image]) -> NDArray[np.float32]:
        """Return (images, units)."""


class FeatureReader(ReadsFeatures, VisionModel, Protocol):
    """A vision model whose logits are linear in features that it can tell."""

    def read_head(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return weights (classes, units) and bias (classes,)."""


@dataclass(frozen=True)
class GroupedFeatures:
    """One split as a classifier sees it."""

    values: NDArray[np.float32]
    """(images, units)."""
    cells: NDArray[np.int64]
    """(images, 2): class and ground."""

    @property
    def classes(self) -> NDArray[np.int64]:
        """(images,)."""
        return self.cells[:, 0]

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: NDArray[np.int64]) -> GroupedFeatures:
        """Return some of the images."""
        return GroupedFeatures(self.values[rows], self.cells[rows])


def measure_features(
    state: Path, model: ReadsFeatures, dataset: GroupedDataset, progress: Progress = no_progress
) -> GroupedFeatures:
    """Return the features of a split, from disk or measured now. An exception of `progress` passes through."""
    facts = f"{model.name} {model.revision} {dataset.name} {dataset.revision}"
    # By all that the features depend on, so that other weights or pictures have another file
    path = state / "features" / f"{hashlib.sha256(facts.encode()).hexdigest()[:24]}.npz"
    values = _read(path)
    if values is None or len(values) != len(dataset):
        values = _measure(model.read_features, dataset, progress)
        with atomic_write(path) as file:
            np.savez_compressed(file, values=values)
    return GroupedFeatures(values, dataset.cells)


def _measure(
    read: Callable[[list[Image]], NDArray[np.float32]], dataset: GroupedDataset, progress: Progress
) -> NDArray[np.float32]:
    parts = []
    for start in range(0, len(dataset), _PART):
        progress(f"measuring features of {dataset.name}", start, len(dataset))
        parts.append(read([dataset[at].image for at in range(start, min(start + _PART, len(dataset)))]))
    return np.concatenate(parts)


def _read(path: Path) -> NDArray[np.float32] | None:
    try:
        # No pickles: a file of features must not run code
        with path.open("rb") as file, np.load(file, allow_pickle=False) as saved:
            values: NDArray[np.float32] = saved["values"]
            return values
    # A damaged file is measured anew
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
