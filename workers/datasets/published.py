"""Exemplars that others have published, as MAIA's authors did. One folder for each layer holds:

    images.npy       uint8 (units, k, 3, height, width) or (units, k, height, width, 3)
    activations.csv  a row for each unit, k numbers
    masks.npy        (units, k, height, width), an axis of length 1 anywhere after k; optional
    thresholds.csv   the activation above which a unit's map is bright, a number for each unit; optional

"published:PATH" is such a folder, named after its layer, or any folder above that holds each layer once, as
exemplars/resnet152/imagenet/layer4 of MAIA's archive lies below exemplars/resnet152. The exemplar index takes from
`published` which units the images belong to. Loaded through the registry.
"""

# ruff: noqa: PTH111 - Path.expanduser raises for a user who does not exist
from __future__ import annotations

import hashlib
import os
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from workers.errors import MissingPart
from workers.lab import imaging
from workers.protocols import LabSettings, Picture, PublishedLayer

DEPTH = 3
"""Folders between the one that was named and those of the layers: model, dataset, layer."""


def missing(settings: LabSettings, path: str) -> str:  # noqa: ARG001 - the registry's contract
    """Say so if there are no published exemplars in the folder."""
    if _layers(Path(os.path.expanduser(path))):
        return ""
    return (
        f"{path!r} holds no published exemplars: no images.npy in it or within {DEPTH} folders below. "
        "Name the folder of a model, with a folder for each layer in it."
    )


def load(settings: LabSettings, path: str) -> PublishedExemplarDataset:
    """Load the dataset. Raises MissingPart, with the file and the reason, if it is missing or invalid."""
    if message := missing(settings, path):
        raise MissingPart(message)
    return PublishedExemplarDataset(Path(os.path.expanduser(path)).resolve())


class PublishedExemplarDataset:
    """The dataset "published:PATH". See `protocols.PublishedDataset`. Safe for threads."""

    def __init__(self, root: Path) -> None:
        self.name = f"published {root.name}"
        self._layers: list[_LayerFolder] = []
        for folder in _layers(root):
            # Layers are found by name, so two of one name cannot be told apart.
            if any(each.name == folder.name for each in self._layers):
                raise MissingPart(f"{root} holds the layer {folder.name} twice. Name the folder of one model.")
            self._layers.append(_LayerFolder(folder))
        self._ends = list(accumulate(each.images.shape[0] * each.images.shape[1] for each in self._layers))
        digest = hashlib.sha256("\n".join(each.stamp for each in self._layers).encode())
        # The files are too large to hash, so size and time stand for them.
        self.revision = digest.hexdigest()[:12]

    def __len__(self) -> int:
        return self._ends[-1]

    def __getitem__(self, index: int) -> Picture:
        """Return the image at a position: layer by layer, unit by unit, as published. Raises IndexError."""
        if not 0 <= index < len(self):
            raise IndexError(f"There is no image {index}: they are numbered 0 to {len(self) - 1}.")
        layer, unit, rank = self._place(index)
        return Picture(Image.fromarray(np.ascontiguousarray(layer.images[unit, rank])))

    def source(self, index: int) -> str:
        """Return what to call the image."""
        layer, unit, rank = self._place(index)
        return f"{layer.name}, unit {unit}, exemplar {rank}"

    @property
    def layer_names(self) -> list[str]:
        """List the layers that it covers."""
        return [each.name for each in self._layers]

    def layer_of(self, index: int) -> str:
        """Return the layer whose exemplar is at a position."""
        return self._place(index)[0].name

    def mask(self, index: int) -> NDArray[np.bool_] | None:
        """Return the published mask of the image at a position, of any (height, width); None if there is none."""
        layer, unit, rank = self._place(index)
        if layer.masks is None:
            return None
        found = np.asarray(layer.masks[unit, rank])
        # Releases have an axis of length 1 in different places.
        lit: NDArray[np.bool_] = found.reshape([side for side in found.shape if side > 1] or [1]) > 0
        return lit if lit.ndim == 2 else None

    def published(self, layer: str) -> PublishedLayer:
        """Return what was published of a layer's units. Raises MissingPart if the layer is not there."""
        names = self.layer_names
        if layer not in names:
            raise MissingPart(f"{self.name} has no exemplars of {layer!r}, only of: {', '.join(names)}.")
        at = names.index(layer)
        found = self._layers[at]
        units, size = found.activations.shape
        # Positions run on from the layers before.
        positions = np.arange(units * size).reshape(units, size) + (self._ends[at - 1] if at else 0)
        # Stable: of equal activations the published order stays.
        order = np.argsort(-found.activations, axis=1, kind="stable")
        best, where = (np.take_along_axis(each, order, 1).T for each in (found.activations, positions))
        return PublishedLayer(best, where, found.thresholds)

    def _place(self, index: int) -> tuple[_LayerFolder, int, int]:
        at = bisect_right(self._ends, index)
        layer = self._layers[at]
        unit, rank = divmod(index - (self._ends[at - 1] if at else 0), layer.images.shape[1])
        return layer, unit, rank


@dataclass(frozen=True)
class _LayerFolder:
    """One published layer. The images' file is checked when it is made, the others when they are first read."""

    folder: Path

    def __post_init__(self) -> None:
        units, size, *_ = self.images.shape
        if self.activations.shape != (units, size):
            rows, numbers = self.activations.shape
            raise MissingPart(
                f"{self.folder / 'activations.csv'} has {rows} rows of {numbers} numbers, but images.npy shows "
                f"{units} units with {size} images each. Take both from the same release."
            )
        if self.thresholds is not None and self.thresholds.shape != (units,):
            raise MissingPart(
                f"{self.folder / 'thresholds.csv'} has {self.thresholds.size} numbers, but images.npy shows {units} "
                "units. Take both from the same release."
            )
        if self.masks is not None:
            shape = self.masks.shape
            # A mask may be smaller or larger than its image: that is a matter of the release.
            is_plane = len(shape) == 4 or (len(shape) == 5 and 1 in shape[2:])
            if shape[:2] != (units, size) or not is_plane:
                raise MissingPart(
                    f"{self.folder / 'masks.npy'} has shape {shape}, which does not go with {(units, size)} units and "
                    "images. Take both from the same release."
                )

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def stamp(self) -> str:
        """A text that changes whenever a file does."""
        states = [(each.name, each.stat()) for each in sorted(self.folder.glob("*.[nc][ps][yv]"))]
        return f"{self.name}: " + ", ".join(f"{name} {at.st_size} {at.st_mtime_ns}" for name, at in states)

    @cached_property
    def images(self) -> NDArray[np.uint8]:
        """(units, k, height, width, 3), read from the disk as they are needed."""
        path = self.folder / "images.npy"
        found = _array(path)
        # MAIA's authors put the colours first, others last.
        if found.ndim == 5 and found.shape[2] == 3 and found.shape[4] != 3:
            found = found.transpose(0, 1, 3, 4, 2)
        fits = found.ndim == 5 and found.shape[4] == 3 and found.size and found.dtype == np.uint8
        if not fits or not imaging.has_valid_size(found.shape[3], found.shape[2]):
            raise MissingPart(
                f"{path} is {found.dtype} of shape {found.shape}. Wanted: uint8 of shape (units, k, 3, height, width) "
                f"or (units, k, height, width, 3), at most {imaging.MAX_PIXELS} pixels "
                f"and {imaging.MAX_ASPECT_RATIO} to 1."
            )
        return found

    @cached_property
    def activations(self) -> NDArray[np.float64]:
        """(units, k)."""
        return _numbers(self.folder / "activations.csv")

    @cached_property
    def thresholds(self) -> NDArray[np.float64] | None:
        """(units,); None if they were not published."""
        path = self.folder / "thresholds.csv"
        return _numbers(path).ravel() if path.exists() else None

    @cached_property
    def masks(self) -> NDArray[Any] | None:
        """(units, k, …), read from the disk as they are needed; None if they were not published."""
        path = self.folder / "masks.npy"
        return _array(path) if path.exists() else None


def _layers(root: Path) -> list[Path]:
    """Return folders with images, by name: the folder itself, or those below it."""
    places = [found for depth in range(DEPTH + 1) for found in root.glob("*/" * depth + "images.npy")]
    # Sorted, so that positions stay the same on every disk.
    return sorted({found.parent for found in places}, key=lambda folder: (folder.name, str(folder)))


def _array(path: Path) -> NDArray[Any]:
    """Return an array in a file, left on the disk. Raises MissingPart if it is damaged or holds objects."""
    try:
        # Left on the disk: the images of a layer may take gigabytes. Pickled objects are refused.
        return np.lib.format.open_memmap(path, mode="r")
    except (OSError, ValueError, EOFError) as error:
        raise MissingPart(f"{path} is no array that can be read ({error}). Fetch it again.") from error


def _numbers(path: Path) -> NDArray[np.float64]:
    """Return the table in a CSV file, (rows, numbers). Raises MissingPart if it holds anything but finite numbers."""
    try:
        lines = [line for line in path.read_text("utf-8").splitlines() if line.strip()]
        found = np.array([[float(cell) for cell in line.split(",")] for line in lines], dtype=np.float64)
    except (OSError, ValueError) as error:
        raise MissingPart(f"{path} cannot be read ({error}). It must hold rows of as many numbers each.") from error
    if not found.size or not np.isfinite(found).all():
        raise MissingPart(f"{path} is empty or has a number that is not finite. Fetch it again.")
    return found
