"""From images to tensors as torchvision and CLIP do it: the shorter side scaled, then the centre cut out.

Pixels lie where torchvision's `Resize` and `CenterCrop` put them, to the last one; transformers' processors round a
centre otherwise. Used by models whose networks are our own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image

from workers.lab.imaging import in_parallel
from workers.protocols import Box

Channels = tuple[float, float, float]


@dataclass(frozen=True)
class CentreCrop:
    """What a network takes, and how an image is brought to it."""

    side: int
    """Of the square that is left, in pixels."""
    shorter: int
    """What the shorter side of an image is scaled to first."""
    filter: Image.Resampling
    mean: Channels
    deviation: Channels
    """Of the images that it was trained on, by channel, in [0, 1]."""

    def find_visible(self, size: tuple[int, int]) -> Box:
        """The part of an image of `size` (width, height) that is left; see `protocols.CroppingModel`."""
        wide = self._wide(size)
        left, top = self._corner(wide)
        return left / wide[0], top / wide[1], (left + self.side) / wide[0], (top + self.side) / wide[1]

    def pixels(self, images: Sequence[Image.Image]) -> torch.Tensor:
        """Bytes (batch, 3, side, side)."""
        return torch.stack(in_parallel(self._one, images))

    def normalised(self, pixels: torch.Tensor) -> torch.Tensor:
        """What `pixels` gave, on any device, as float32 with mean 0 and deviation 1 over the training images."""
        mean, deviation = (
            torch.tensor(each, device=pixels.device).view(3, 1, 1) for each in (self.mean, self.deviation)
        )
        return (pixels.float() / 255 - mean) / deviation

    def _one(self, image: Image.Image) -> torch.Tensor:
        wide = self._wide(image.size)
        left, top = self._corner(wide)
        small = image.convert("RGB").resize(wide, self.filter).crop((left, top, left + self.side, top + self.side))
        return torch.from_numpy(np.array(small)).permute(2, 0, 1)

    def _wide(self, size: tuple[int, int]) -> tuple[int, int]:
        """Width and height once the shorter of them is scaled."""
        least = min(size)
        width, height = (self.shorter * each // least for each in size)
        return width, height

    def _corner(self, wide: tuple[int, int]) -> tuple[int, int]:
        """Left and top of the centre."""
        width, height = wide
        return round((width - self.side) / 2), round((height - self.side) / 2)
