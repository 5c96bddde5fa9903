"""CLIP's ResNet-50 image encoder as a model under study: "clip-rn50:timm/resnet50_clip.openai", or a file.

The file is OpenAI's RN50.pt, a state dict, or open_clip's safetensors. `network` and `weights` implement the network
and read the files. Loaded through the registry.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from PIL import Image

from workers import hub
from workers.protocols import LabSettings, LayerInfo
from workers.vision_models.centre_crop import CentreCrop
from workers.vision_models.clip_rn50 import weights
from workers.vision_models.clip_rn50.network import ClipImageEncoder
from workers.vision_models.single_file import SingleFileModel, file_of

FILES: hub.Groups = (("open_clip_model.safetensors", "open_clip_pytorch_model.bin"),)
MEAN = (0.48145466, 0.4578275, 0.40821073)
DEVIATION = (0.26862954, 0.26130258, 0.27577711)
"""Mean and deviation of CLIP's training images by channel."""


def load(settings: LabSettings, name: str) -> ClipResNet:
    """Return the model by hub id, folder or file. Nothing is read yet, so no error is raised yet."""
    return ClipResNet(settings, "clip-rn50", name, FILES)


def missing(settings: LabSettings, name: str) -> str:  # noqa: ARG001 - the registry's contract
    """Say what keeps the model from loading offline, and the command that downloads it; "" if nothing does."""
    return "" if file_of(name) else hub.missing(name, FILES)


class ClipResNet(SingleFileModel[ClipImageEncoder]):
    """See `single_file.SingleFileModel`. Layers: the stem as conv1, and layer1 to layer4, after their ReLU."""

    def _network(self, path: Path) -> ClipImageEncoder:
        return weights.load(path)

    def _layers(self, network: ClipImageEncoder) -> list[LayerInfo]:
        return [LayerInfo(name, name, "conv", units) for name, units in network.widths.items()]

    def _find_module(self, network: ClipImageEncoder, layer: str) -> torch.nn.Module:
        """The stem ends in a ReLU; its first convolution has the name conv1."""
        return network.relu3 if layer == "conv1" else network.get_submodule(layer)

    def _crop(self, network: ClipImageEncoder) -> CentreCrop:
        # The shorter side is scaled to the crop's own length, so nothing of a square image is lost.
        return CentreCrop(network.input, network.input, Image.Resampling.BICUBIC, MEAN, DEVIATION)

    def _maps(self, network: ClipImageEncoder, pixels: torch.Tensor) -> Mapping[str, torch.Tensor]:
        return network.maps(pixels)
