"""Surfaces: triangles with colours and, where there is one, a picture on them. What toys of files consist of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL.Image import Image

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
