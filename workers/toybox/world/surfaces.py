"""Toys that files add to the game engine, and what they consist of: triangles with colours and pictures on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL.Image import Image

    from workers.toybox.world.scenes import Shape

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Surface:
    """points, normals and colours (n, 3), colours from 0 to 1; faces (m, 3) as indices of points."""

    points: Floats
    normals: Floats
    colours: Floats
    faces: NDArray[np.int64]
    places: Floats | None = None
    """Where each point lies in the texture, (n, 2): to the right and down, from 0 to 1; it is repeated beyond."""
    texture: Image | None = None
    """RGB, sides powers of two; multiplied with the colours."""


@dataclass(frozen=True, eq=False)
class AddedToy:
    """A toy that a file adds to the game engine, under a noun that toybox does not know."""

    file: str
    digest: str
    """The first digits of its SHA-256."""
    shape: Shape
    surfaces: tuple[Surface, ...]
    """Standing on z = 0 within the measures of `shape`."""


AddedToys = Mapping[str, AddedToy]
"""By noun."""
