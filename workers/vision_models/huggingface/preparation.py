"""Turn images into a network's input, with the model's own image processor, which decides size and crop."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from workers.errors import MissingPart
from workers.lab.imaging import map_in_parallel
from workers.protocols import WHOLE_IMAGE, Box
from workers.vision_models.huggingface.checkpoint import silence_transformers

RAMP = 256
"""Side in pixels of the image on which the processor is tested."""
NEAR = 0.005


class ImagePreparation:
    """The image processor in a checkpoint's folder. Safe for threads."""

    def __init__(self, folder: Path) -> None:
        self._processor = _processor(folder)
        if len(mean := getattr(self._processor, "image_mean", None) or (0, 0, 0)) != 3:
            raise MissingPart(
                f"The image processor in {folder} is for images of {len(mean)} channel{'s' * (len(mean) != 1)}, not "
                "for colour images in RGB, and others are not shown here. Choose another model."
            )
        # The processor's arithmetic on floats is slow; if it is plain, it is done on the network's device instead.
        self._plain = self._is_plain()
        shape = self._arrays(_make_ramps((RAMP, RAMP))).shape
        if len(shape) != 3:
            raise MissingPart(f"The image processor in {folder} gives no images but patches. Choose another model.")
        self.size: tuple[int, int] = (shape[1], shape[2])
        """Height and width of what the network takes."""
        # Datasets have many images of few sizes, and each answer costs a run of the processor.
        self.find_visible = lru_cache(maxsize=256)(self._find_visible)

    def pixels(self, images: Sequence[Image.Image]) -> torch.Tensor:
        """Return (batch, 3, height, width) on the CPU: bytes if `normalised` has work left, else floats."""
        return torch.stack(map_in_parallel(self._one, images))

    def normalised(self, pixels: torch.Tensor, precision: torch.dtype) -> torch.Tensor:
        """Convert the result of `pixels`, on any device, to the network's input."""
        return (self._normalise(pixels) if self._plain else pixels).to(precision)

    def _find_visible(self, size: tuple[int, int]) -> Box:
        """Return the part of an image of `size` (width, height) that the network sees; see
        `protocols.CroppingModel`."""
        # Red grows to the right and green downwards, so the prepared colours tell where each pixel came from.
        ramps = self._bytes(_make_ramps(size))
        # A processor with other arithmetic mixes colours, so they would not tell positions.
        if not self._plain or ramps.shape[1:] != self.size:
            return WHOLE_IMAGE
        red, green, blue = ramps
        known = blue > 127  # padding is black
        left, right = _find_ends(red, known.any(0), axis=0)
        top, bottom = _find_ends(green, known.any(1), axis=1)
        return left, top, right, bottom

    def _one(self, image: Image.Image) -> torch.Tensor:
        """Prepare one image. If the processor keeps its shape, the image is first resized to that of all others."""
        found = self._arrays(image)
        # Tensors of a batch must have one shape.
        if tuple(found.shape[1:]) != self.size:
            height, width = self.size
            found = self._arrays(image.resize((width, height), Image.Resampling.BICUBIC))
        return torch.from_numpy(found)

    def _arrays(self, image: Image.Image) -> np.ndarray[Any, Any]:
        return self._bytes(image) if self._plain else self._call(image)

    def _bytes(self, image: Image.Image) -> np.ndarray[Any, Any]:
        return self._call(image, do_rescale=False, do_normalize=False)

    def _call(self, image: Image.Image, **changes: bool) -> np.ndarray[Any, Any]:
        """Return (3, height, width)."""
        found = self._processor(image.convert("RGB"), return_tensors="np", **changes)["pixel_values"]
        return np.ascontiguousarray(found[0])

    def _is_plain(self) -> bool:
        """True if the processor's arithmetic is (bytes * factor - mean) / deviation and nothing else."""
        image = _make_ramps((RAMP, RAMP))
        whole, raw = self._call(image), self._bytes(image)
        if raw.dtype != np.uint8 or raw.shape != whole.shape:
            return False
        # Tried on an image, since no setting says whether a processor does more than that.
        return np.allclose(self._normalise(torch.from_numpy(raw)).numpy(), whole, atol=1e-4)

    def _normalise(self, pixels: torch.Tensor) -> torch.Tensor:
        floats: dict[str, Any] = {"dtype": torch.float32, "device": pixels.device}
        mean = torch.tensor(self._processor.image_mean, **floats).view(-1, 1, 1)
        deviation = torch.tensor(self._processor.image_std, **floats).view(-1, 1, 1)
        return (pixels.float() * self._processor.rescale_factor - mean) / deviation


def _processor(folder: Path) -> Any:
    """Load the processor that uses Pillow. Raises MissingPart."""
    from transformers import AutoImageProcessor

    processors: Any = AutoImageProcessor
    try:
        with silence_transformers():
            return processors.from_pretrained(folder, backend="pil", trust_remote_code=False, local_files_only=True)
    except Exception as error:
        # Processors that need torchvision fail on import; some of them do nothing that needs it.
        if isinstance(error, ImportError) and (found := _without_torchvision(folder)):
            return found
        raise MissingPart(
            f"The image processor in {folder} cannot be used: {str(error).strip().partition(chr(10))[0].rstrip('.')}. "
            "Save one there with `save_pretrained`, or choose another model."
        ) from error


def _without_torchvision(folder: Path) -> Any:
    """Return a processor equivalent to one that needs torchvision, if that resizes images to a fixed size."""
    from transformers import ViTImageProcessorPil

    path = folder / "preprocessor_config.json"
    stated = json.loads(path.read_text()) if path.is_file() else {}
    size = stated.get("size")
    # With a crop, the result would be of another part of the image.
    if not isinstance(size, dict) or set(size) != {"height", "width"} or stated.get("do_center_crop"):
        return None
    wanted = ("size", "image_mean", "image_std", "resample", "rescale_factor", "do_normalize", "do_rescale")
    return ViTImageProcessorPil(**{key: stated[key] for key in wanted if stated.get(key) is not None})


def _make_ramps(size: tuple[int, int]) -> Image.Image:
    """Return an image with red from 0 at the left to 255 at the right, green likewise downwards, and blue 255."""
    width, height = size
    pixels = np.full((height, width, 3), 255, dtype=np.uint8)
    # Half a pixel is added: a pixel's colour is that of its middle.
    pixels[:, :, 0] = ((np.arange(width) + 0.5) / width * 255).round()
    pixels[:, :, 1] = ((np.arange(height) + 0.5) / height * 255).round()[:, None]
    return Image.fromarray(pixels)


def _find_ends(ramp: np.ndarray[Any, Any], known: np.ndarray[Any, Any], axis: int) -> tuple[float, float]:
    """Return where the first pixel of a prepared ramp starts and the last one ends, as shares of the image's side."""
    middle = ramp.shape[axis] // 2
    # The middle row or column is the least likely to be padding.
    values = ramp.take(middle, axis=axis) / 255
    at = np.flatnonzero(known)
    inner = at[len(at) // 8 : len(at) - len(at) // 8]  # away from the edges, where filters flatten the ramp
    slope, start = np.polyfit(inner, values[inner], 1) if len(inner) > 1 else (0, 0)
    if slope <= 0:  # an image too small to tell
        return 0.0, 1.0
    # From the middle of a pixel to its edges.
    first, last = start - slope / 2, start + slope * (len(values) - 0.5)
    return _exact(float(first)), _exact(float(last))


def _exact(share: float) -> float:
    """Return the edge of the image if the share is as close as a ramp of bytes can tell."""
    return next((edge for edge in (0.0, 1.0) if abs(share - edge) < NEAR), share)
