"""CLIP's ResNet-50, its image side, as a model under study: "clip-rn50:timm/resnet50_clip.openai", or by a file.

The file is OpenAI's RN50.pt, a state dict, or open_clip's safetensors. Its network and files are the business of
`clip_rn50_parts`. Loaded through the registry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock

import numpy as np
import torch
from PIL import Image

from workers import hub
from workers.errors import MachineryError, UnknownName
from workers.lab.imaging import in_parallel
from workers.protocols import Box, LabSettings, LayerInfo
from workers.shelf import Place, in_batches
from workers.vision_models.clip_rn50_parts import weights
from workers.vision_models.clip_rn50_parts.network import ImageSide

FILES: hub.Groups = (("open_clip_model.safetensors", "open_clip_pytorch_model.bin"),)
MEAN = (0.48145466, 0.4578275, 0.40821073)
DEVIATION = (0.26862954, 0.26130258, 0.27577711)
"""Of the images that CLIP was trained on, by channel."""


def load(settings: LabSettings, name: str) -> ClipResNet:
    """The model by hub id, folder or file. Nothing is read yet, so nothing is refused yet."""
    return ClipResNet(settings, name)


def missing(settings: LabSettings, name: str) -> str:  # noqa: ARG001 - the registry's contract
    """What keeps the model from being used offline, and the command that gets it; "" if nothing does."""
    return "" if _file(name) else hub.missing(name, FILES)


class ClipResNet:
    """A `protocols.VisionModel` that crops. Safe for threads.

    What first needs its file raises UnknownName or MissingPart if it is not there, and fetches it from the hub unless
    HF_HUB_OFFLINE is set.
    """

    def __init__(self, settings: LabSettings, name: str) -> None:
        self.name = f"clip-rn50:{name}"
        self._settings = settings
        self._file = _file(name)
        self._id = name
        self._precision: torch.dtype = getattr(torch, settings.precision)
        self._lock = Lock()
        self._opened: tuple[Place[ImageSide], Sequence[LayerInfo], int] | None = None

    @property
    def revision(self) -> str:
        """Of its file; half precision makes other weights of it."""
        short = "" if self._settings.precision == "float32" else f"-{self._settings.precision}"
        return f"{hub.file_fingerprint(self._path())[:12]}{short}"

    def layers(self) -> Sequence[LayerInfo]:
        """The stem, as conv1, and layer1 to layer4, all read after their ReLU."""
        return self._open()[1]

    def seen(self, size: tuple[int, int]) -> Box:
        """The part of an image of `size` (width, height) that is left after cropping."""
        wide, side = _wide(size, self._open()[2]), self._open()[2]
        left, top = _corner(wide, side)
        return left / wide[0], top / wide[1], (left + side) / wide[0], (top + side) / wide[1]

    def maps(self, images: Sequence[Image.Image], layers: Sequence[str]) -> Mapping[str, torch.Tensor]:
        """What the layers make of the images; see `protocols.VisionModel.maps`.

        Raises MachineryError if a layer gives NaN or infinities.
        """
        known = {info.name: info.units for info in self.layers()}
        for layer in layers:
            if layer not in known:
                raise UnknownName(f"{self.name} has no layer {layer!r}. Choose one of: {', '.join(known)}.")
        parts = in_batches(images, self._settings.batch_size, lambda batch: [self._batch(batch, layers)])
        parts = parts or [{layer: torch.empty(0, known[layer], 1, 1) for layer in layers}]
        return {layer: torch.cat([part[layer] for part in parts]) for layer in layers} if parts[1:] else parts[0]

    def _batch(self, images: Sequence[Image.Image], layers: Sequence[str]) -> dict[str, torch.Tensor]:
        place, _, side = self._open()
        pixels = torch.stack(in_parallel(lambda image: _prepared(image, side), images))
        with place as network, torch.no_grad():
            found = network.maps(_normalised(pixels.to(self._settings.device)).to(self._precision))
            maps = {layer: found[layer].float() for layer in layers}
        for layer, each in maps.items():
            if not torch.isfinite(each.sum()):
                raise MachineryError(
                    f"{layer} of {self.name} gives values that are no finite numbers. Its weights are damaged, or too "
                    "large for half precision: fetch them again, or set MAIA_PRECISION=float32."
                )
        return maps

    def _path(self) -> Path:
        if self._file is None:
            self._file = hub.files(hub.folder(self._id, FILES), FILES)[0]
        return self._file

    def _open(self) -> tuple[Place[ImageSide], Sequence[LayerInfo], int]:
        """Its weights' place, its layers and the side of its input in pixels; found by the first call."""
        with self._lock:
            if self._opened is None:
                place = self._settings.shelf.place(f"{self.name} {self.revision}", self._load)
                with place as network:
                    layers = [LayerInfo(name, name, "conv", units) for name, units in network.widths.items()]
                    self._opened = (place, layers, network.input)
            return self._opened

    def _load(self) -> ImageSide:
        network = weights.load(self._path())
        return network.to(self._settings.device, self._precision).eval().requires_grad_(False)


def _file(name: str) -> Path | None:
    path = Path(name).expanduser()
    return path.resolve() if path.is_file() else None


def _prepared(image: Image.Image, side: int) -> torch.Tensor:
    """Bytes (3, side, side): the shorter side brought to `side`, bicubic, then the centre cut out."""
    wide = _wide(image.size, side)
    left, top = _corner(wide, side)
    small = image.convert("RGB").resize(wide, Image.Resampling.BICUBIC).crop((left, top, left + side, top + side))
    return torch.from_numpy(np.array(small)).permute(2, 0, 1)


def _normalised(pixels: torch.Tensor) -> torch.Tensor:
    mean, deviation = (torch.tensor(each, device=pixels.device).view(3, 1, 1) for each in (MEAN, DEVIATION))
    return (pixels.float() / 255 - mean) / deviation


def _wide(size: tuple[int, int], side: int) -> tuple[int, int]:
    """Width and height once the shorter of them is `side`."""
    shorter = min(size)
    width, height = (side * each // shorter for each in size)
    return width, height


def _corner(wide: tuple[int, int], side: int) -> tuple[int, int]:
    """Left and top of the centre."""
    width, height = wide
    return round((width - side) / 2), round((height - side) / 2)
