"""Residual networks (He et al., CVPR 2016) as torchvision builds them, with its names of weights.

Includes wide ones (Zagoruyko and Komodakis, BMVC 2016) and ResNeXt (Xie et al., CVPR 2017), whose bottlenecks have
more inner channels. In a bottleneck the 3 x 3 convolution strides and not the first one: torchvision's "v1.5",
whatever its weights are called. Sizes and depth come from the weights. This module reads no file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from torch import Tensor, nn

STAGES = ("layer1", "layer2", "layer3", "layer4")


@dataclass(frozen=True)
class Inside:
    """The 3 x 3 convolution of a bottleneck: `times` as many channels as a ResNet's, in this many `groups`."""

    times: Fraction = Fraction(1)
    groups: int = 1

    @classmethod
    def like(cls, weights: Mapping[str, Tensor]) -> Inside:
        """Return that of the first bottleneck, which all share. Raises ValueError for shapes that no convolution
        has."""
        weight = weights.get("layer1.0.conv2.weight")
        # Basic blocks have no third convolution, and no variants.
        if weight is None or weight.ndim != 4 or "layer1.0.conv3.weight" not in weights:
            return PLAIN
        channels, of_group = weight.shape[:2]
        if not of_group or channels % of_group:
            raise ValueError(f"layer1.0.conv2.weight has the shape {tuple(weight.shape)}")
        return cls(Fraction(channels, weights["conv1.weight"].shape[0]), channels // of_group)


PLAIN = Inside()


class BasicBlock(nn.Module):
    """Two convolutions and a shortcut, ReLU last: a block of ResNet-18 and -34."""

    expansion = 1

    def __init__(self, inputs: int, inner: int, stride: int, inside: Inside = PLAIN) -> None:
        del inside  # only bottlenecks vary
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, inner, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(inner)
        self.conv2 = nn.Conv2d(inner, inner, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(inner)
        self.downsample = _short_cut(inputs, inner * self.expansion, stride)

    def forward(self, x: Tensor) -> Tensor:
        inner = self.bn1(self.conv1(x)).relu()
        return (self.bn2(self.conv2(inner)) + (x if self.downsample is None else self.downsample(x))).relu()


class ResNetBottleneck(nn.Module):
    """Three convolutions and a shortcut, ReLU last: a block of the deeper networks."""

    expansion = 4

    def __init__(self, inputs: int, inner: int, stride: int, inside: Inside = PLAIN) -> None:
        super().__init__()
        # A Fraction, since floats could fall below a whole number and lose a channel.
        channels = int(inner * inside.times)
        self.conv1 = nn.Conv2d(inputs, channels, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        # Here and not in conv1 as in the paper: torchvision's v1.5.
        self.conv2 = nn.Conv2d(channels, channels, 3, stride, 1, groups=inside.groups, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.conv3 = nn.Conv2d(channels, inner * self.expansion, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(inner * self.expansion)
        self.downsample = _short_cut(inputs, inner * self.expansion, stride)

    def forward(self, x: Tensor) -> Tensor:
        inner = self.bn1(self.conv1(x)).relu()
        inner = self.bn2(self.conv2(inner)).relu()
        return (self.bn3(self.conv3(inner)) + (x if self.downsample is None else self.downsample(x))).relu()


def _short_cut(inputs: int, outputs: int, stride: int) -> nn.Sequential | None:
    if stride == 1 and inputs == outputs:
        return None
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))


class ResNet(nn.Module):
    """The network, with a head if it has classes. `widths` are the units of the layers before the head."""

    def __init__(
        self,
        block: type[BasicBlock | ResNetBottleneck],
        width: int,
        depths: Mapping[str, int],
        classes: int | None,
        inside: Inside = PLAIN,
    ) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.widths = {"conv1": width}
        inputs = width
        for at, name in enumerate(STAGES):
            # The width doubles with each stage, and every stage after the first halves the side.
            inner = width * 2**at
            first = block(inputs, inner, 1 if at == 0 else 2, inside)
            inputs = self.widths[name] = inner * block.expansion
            others = (block(inputs, inner, 1, inside) for _ in range(depths[name] - 1))
            self.add_module(name, nn.Sequential(first, *others))
        self.fc = None if classes is None else nn.Linear(inputs, classes)

    @classmethod
    def like(cls, weights: Mapping[str, Tensor]) -> ResNet:
        """Build a network with the sizes of these weights. Raises KeyError or ValueError for weights of another
        network."""
        block = ResNetBottleneck if "layer1.0.conv3.weight" in weights else BasicBlock
        # Block numbers are the second part of each name: "layer1.0.conv1.weight".
        depths = {name: len({key.split(".")[1] for key in weights if key.startswith(f"{name}.")}) for name in STAGES}
        if absent := [name for name in STAGES if not depths[name]]:
            raise KeyError(f"{absent[0]}.0.conv1.weight")
        head = weights.get("fc.weight")
        classes = None if head is None else head.shape[0]
        return cls(block, weights["conv1.weight"].shape[0], depths, classes, Inside.like(weights))

    def maps(self, x: Tensor) -> dict[str, Tensor]:
        """Return conv1 before its batch norm, layer1 to layer4 after their ReLU, and the logits before any softmax, if
        it has a head.

        The published code of MAIA, MILAN and CLIP-Dissect reads conv1 there too. All are (batch, units, height,
        width); logits are 1 x 1.
        """
        raw = self.conv1(x)
        found = {"conv1": raw}
        x = nn.functional.max_pool2d(self.bn1(raw).relu(), 3, 2, 1)
        for name in STAGES:
            x = found[name] = self.get_submodule(name)(x)
        if self.fc is not None:
            found["logits"] = self.fc(x.mean((2, 3)))[:, :, None, None]
        return found

    def forward(self, x: Tensor) -> Tensor:
        """Return logits (batch, classes); without a head the means of layer4 (batch, units)."""
        found = self.maps(x)
        # Logits are maps of 1 x 1, so the mean only removes two dimensions.
        return found.get("logits", found[STAGES[-1]]).mean((2, 3))
