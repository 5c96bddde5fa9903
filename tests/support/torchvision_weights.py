"""Small weights in the layout of torchvision."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from workers.vision_models.torchvision_resnet.network import PLAIN, BasicBlock, Inside, ResNet, ResNetBottleneck

STAGES = ("layer1", "layer2", "layer3", "layer4")


def random_weights(
    block: type[BasicBlock | ResNetBottleneck], depths: tuple[int, ...], inside: Inside = PLAIN
) -> dict[str, Tensor]:
    """Of a network 8 units wide with 5 classes; its batch norms shift and turn signs, as trained ones do."""
    torch.manual_seed(5)
    network = ResNet(block, 8, dict(zip(STAGES, depths, strict=True)), 5, inside)
    for name, value in network.state_dict().items():
        if name.endswith("running_var"):
            value.uniform_(0.5, 2)
        elif value.is_floating_point() and value.ndim < 4:
            value.normal_()
    return network.state_dict()


def saved(weights: dict[str, Tensor], path: Path) -> Path:
    if path.suffix == ".safetensors":
        save_file(weights, path)
    else:
        torch.save(weights, path)
    return path
