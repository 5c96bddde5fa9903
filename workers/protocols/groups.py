"""Datasets whose images have a class and a ground (background setting), to tell one from the other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, get_args

from workers.protocols.models import Dataset

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

GroupSplit = Literal["train", "validation", "balanced", "test"]
"""Splits: training data for a classifier; data to choose units, with the same bias; every class on every ground equally
often; classes on other grounds than in training.
"""
GROUP_SPLITS: tuple[GroupSplit, ...] = get_args(GroupSplit)


class GroupedDataset(Dataset, Protocol):
    """One split of a dataset in which classes go with grounds. Its key ends in the split: "<dataset>:validation"."""

    classes: Sequence[str]
    grounds: Sequence[str]
    """Grounds by name. Those that belong to a class come first, in the order of the classes."""
    cells: NDArray[np.int64]
    """(images, 2): the class and the ground of each."""
    network: str
    """Key of a suitable shape of network; see `vision_models.classifier.network`."""
    start: Path | None
    """Weights that such a network may start from, in safetensors; None to start from nothing."""
    epochs: int
    """Suitable number of passes over the training split."""
