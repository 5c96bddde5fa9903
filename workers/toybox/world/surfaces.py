"""Toys that files add to the game engine, and their surfaces: triangles with colours and textures."""

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
    """Points, normals and colours are (n, 3), with colours from 0 to 1; faces (m, 3) are indices of points."""

    points: Floats
    normals: Floats
    colours: Floats
    faces: NDArray[np.int64]
    places: Floats | None = None
    """Texture coordinates of each point, (n, 2), to the right and down from 0 to 1. The texture is repeated beyond."""
    texture: Image | None = None
    """RGB with sides that are powers of two. Multiplied with the colours."""


@dataclass(frozen=True, eq=False)
class AddedToy:
    """A toy that a file adds to the game engine under a noun that toybox does not know."""

    file: str
    digest: str
    """The first digits of its SHA-256."""
    shape: Shape
    surfaces: tuple[Surface, ...]
    """On z = 0, within the measures of `shape`."""


AddedToys = Mapping[str, AddedToy]
"""By noun."""
