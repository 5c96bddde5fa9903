"""The image encoder of CLIP's ResNets (Radford et al., ICML 2021, section 2.4), with the names of the published
weights.

It differs from the usual ResNet in three ways: a stem of three convolutions and average pooling; average pooling
before every strided convolution, against aliasing; and attention instead of pooling at the end. Its sizes come from
the weights. This module reads no file.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from math import isqrt

import torch
from torch import Tensor, nn

STAGES = ("layer1", "layer2", "layer3", "layer4")
EXPANSION = 4
"""Ratio of a block's outputs to the width of its inner convolutions."""
HEAD = 64
"""Size of an attention head."""
REDUCTION = 32
"""Ratio of the image's side to the side of layer4's maps."""


class ClipBottleneck(nn.Module):
    """Three convolutions and a shortcut, ReLU last. A strided block averages first."""

    def __init__(self, inputs: int, inner: int, stride: int) -> None:
        super().__init__()
        outputs = inner * EXPANSION
        self.conv1 = nn.Conv2d(inputs, inner, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(inner)
        self.conv2 = nn.Conv2d(inner, inner, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(inner)
        self.shrink: nn.Module = nn.AvgPool2d(stride) if stride > 1 else nn.Identity()
        self.conv3 = nn.Conv2d(inner, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.downsample: nn.Module | None = None
        if stride > 1 or inputs != outputs:
            # Names of the published weights: the pooling, which has none, is -1.
            parts = {"-1": nn.AvgPool2d(stride), "0": nn.Conv2d(inputs, outputs, 1, bias=False)}
            self.downsample = nn.Sequential(OrderedDict(parts, **{"1": nn.BatchNorm2d(outputs)}))

    def forward(self, x: Tensor) -> Tensor:
        inner = self.bn1(self.conv1(x)).relu()
        inner = self.shrink(self.bn2(self.conv2(inner)).relu())
        return (self.bn3(self.conv3(inner)) + (x if self.downsample is None else self.downsample(x))).relu()


class AttentionPool(nn.Module):
    """Attention of the mean over all positions to itself and the positions."""

    def __init__(self, side: int, width: int, outputs: int) -> None:
        super().__init__()
        # One more than the positions: the mean has an embedding too.
        self.positional_embedding = nn.Parameter(torch.zeros(side * side + 1, width))
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(width, width) for _ in range(3))
        self.c_proj = nn.Linear(width, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, width, side, side) to (batch, outputs)."""
        places = x.flatten(2).transpose(1, 2)
        # The mean comes first and is the only query, so the result is one token.
        tokens = torch.cat([places.mean(1, keepdim=True), places], dim=1) + self.positional_embedding
        query, key, value = (
            project(part).unflatten(2, (-1, HEAD)).transpose(1, 2)  # (batch, heads, tokens, HEAD)
            for project, part in ((self.q_proj, tokens[:, :1]), (self.k_proj, tokens), (self.v_proj, tokens))
        )
        pooled = nn.functional.scaled_dot_product_attention(query, key, value)
        return self.c_proj(pooled.transpose(1, 2).flatten(1))


class ClipImageEncoder(nn.Module):
    """The network. `widths` are the outputs of conv1 and of each stage."""

    def __init__(self, width: int, blocks: Mapping[str, int], side: int, outputs: int) -> None:
        super().__init__()
        self.input = side * REDUCTION
        """Side of the square images it takes, in pixels."""
        self.widths = {"conv1": width, **{name: width * EXPANSION * 2**at for at, name in enumerate(STAGES)}}
        self.conv1 = nn.Conv2d(3, width // 2, 3, stride=2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width // 2)
        self.conv2 = nn.Conv2d(width // 2, width // 2, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width // 2)
        self.conv3 = nn.Conv2d(width // 2, width, 3, padding=1, bias=False)
        self.bn3 = nn.BatchNorm2d(width)
        self.relu3 = nn.ReLU()
        inputs = width
        for at, name in enumerate(STAGES):
            # The first stage keeps its size: the stem has reduced it by four.
            inner, stride = width * 2**at, 1 if at == 0 else 2
            first = ClipBottleneck(inputs, inner, stride)
            inputs = inner * EXPANSION
            rest = [ClipBottleneck(inputs, inner, 1) for _ in range(blocks[name] - 1)]
            self.add_module(name, nn.Sequential(first, *rest))
        self.attnpool = AttentionPool(side, inputs, outputs)

    @classmethod
    def like(cls, weights: Mapping[str, Tensor]) -> ClipImageEncoder:
        """Build a network with the sizes of these weights. Raises KeyError for weights of another network."""
        width = weights["conv3.weight"].shape[0]
        # Block numbers are the second part of each name: "layer1.0.conv1.weight".
        blocks = {name: len({key.split(".")[1] for key in weights if key.startswith(f"{name}.")}) for name in STAGES}
        # One embedding is the mean's.
        side = isqrt(weights["attnpool.positional_embedding"].shape[0] - 1)
        return cls(width, blocks, side, weights["attnpool.c_proj.weight"].shape[0])

    def maps(self, x: Tensor) -> dict[str, Tensor]:
        """Return the outputs of the stem and every stage, (batch, units, height, width), after their ReLU."""
        x = self.bn1(self.conv1(x)).relu()
        x = self.bn2(self.conv2(x)).relu()
        x = self.relu3(self.bn3(self.conv3(x)))
        found = {"conv1": x}
        # After conv1 was taken: its maps are those of the ReLU, twice as fine.
        x = nn.functional.avg_pool2d(x, 2)
        for name in STAGES:
            x = found[name] = self.get_submodule(name)(x)
        return found

    def forward(self, x: Tensor) -> Tensor:
        """Return CLIP's unnormalized embedding of images (batch, outputs)."""
        return self.attnpool(self.maps(x)["layer4"])
