"""Turn images into tensors as torchvision and CLIP do: scale the shorter side, then cut out the centre.

Pixels match torchvision's `Resize` and `CenterCrop` exactly; transformers' processors round a centre differently. Used
by models whose networks are our own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image

from workers.lab.imaging import map_in_parallel
from workers.protocols import Box

Channels = tuple[float, float, float]


@dataclass(frozen=True)
class CentreCrop:
    """The input of a network, and how an image is converted to it."""

    side: int
    """Side of the remaining square, in pixels."""
    shorter: int
    """Length in pixels to which the shorter side is scaled first."""
    filter: Image.Resampling
    mean: Channels
    deviation: Channels
    """Mean of the training images, by channel, in [0, 1]."""

    def find_visible(self, size: tuple[int, int]) -> Box:
        """Return the part of an image of `size` (width, height) that is kept; see `protocols.CroppingModel`."""
        (width, height), left, top = self._place(size)
        return left / width, top / height, (left + self.side) / width, (top + self.side) / height

    def pixels(self, images: Sequence[Image.Image]) -> torch.Tensor:
        """Return bytes (batch, 3, side, side)."""
        return torch.stack(map_in_parallel(self._one, images))

    def normalised(self, pixels: torch.Tensor) -> torch.Tensor:
        """Return the result of `pixels`, on any device, as float32 with mean 0 and deviation 1 over the training
        images.
        """
        # Not NumPy: the division runs on the device of the pixels.
        mean = torch.tensor(self.mean, device=pixels.device).view(3, 1, 1)
        deviation = torch.tensor(self.deviation, device=pixels.device).view(3, 1, 1)
        return (pixels.float() / 255 - mean) / deviation

    def _one(self, image: Image.Image) -> torch.Tensor:
        scaled, left, top = self._place(image.size)
        # Resized by Pillow, as torchvision does with PIL images; its resizing of tensors gives other pixels.
        small = image.convert("RGB").resize(scaled, self.filter).crop((left, top, left + self.side, top + self.side))
        return torch.from_numpy(np.array(small)).permute(2, 0, 1)

    def _place(self, size: tuple[int, int]) -> tuple[tuple[int, int], int, int]:
        """Return width and height after scaling the shorter side, and left and top of the centre crop."""
        # Integer division and `round` are torchvision's: the crop must not move by a pixel.
        width, height = (self.shorter * each // min(size) for each in size)
        return (width, height), round((width - self.side) / 2), round((height - self.side) / 2)
