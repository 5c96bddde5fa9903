"""The size at which an editor works: the area its network was trained at, in the shape of the original."""

from __future__ import annotations

import math
from typing import Any


def working_size(pipeline: Any, size: tuple[int, int], wanted: int = 0) -> tuple[int, int]:
    """Width and height in pixels, near the original's shape; multiples of what the pipeline can lay out.

    Their area is that of a square with the side `wanted`, or, if that is 0, of those that the network was trained at.
    """
    factor = int(getattr(pipeline, "vae_scale_factor", 8))
    unit = 2 * factor  # latents are often taken in patches of 2 x 2
    side = wanted or trained_side(pipeline, factor) or math.sqrt(size[0] * size[1])
    scale = side / math.sqrt(size[0] * size[1])
    width, height = (min(max(each * scale, side / 4), side * 2) for each in size)
    return max(1, round(width / unit)) * unit, max(1, round(height / unit)) * unit


def trained_side(pipeline: Any, factor: int) -> int:
    """Side in pixels of the square images that the network was trained on; 0 if the pipeline does not say."""
    network = getattr(pipeline, "unet", None)
    latent = network.config.get("sample_size") if network else getattr(pipeline, "default_sample_size", 0)
    sides = latent if isinstance(latent, list | tuple) else [latent or 0]
    return max(sides) * factor
