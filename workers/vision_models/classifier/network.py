"""Classifiers trained here: a body that gives the maps of the features, a pool, and one linear layer.

Two shapes: "small" for toybox's pictures, whose first layers have names and sizes of toybox-net's, so that they can
start from its weights; "resnet18", torchvision's, for photographs. This module uses no dataset and trains nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save
from torch import Tensor, nn

from workers.errors import MissingPart
from workers.files import atomic_write
from workers.lab.imaging import map_in_parallel
from workers.vision_models.torchvision_resnet.network import STAGES, BasicBlock, ResNet

DROPOUT = 0.1
"""Dropout before the last layer, in training only (MAIA, appendix F)."""


@dataclass(frozen=True)
class ClassifierCard:
    """Metadata in the file of weights."""

    shape: str
    """A key of `SHAPES`."""
    classes: tuple[str, ...]
    dataset: str
    seed: int


@dataclass(frozen=True)
class InputShape:
    """How pictures are converted to the input of a network."""

    side: int
    """Side of the square input in pixels."""
    mean: tuple[float, float, float]
    deviation: tuple[float, float, float]


SHAPES = {
    "small": InputShape(96, (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)),
    # ImageNet's mean and deviation: these weights can start from torchvision's.
    "resnet18": InputShape(224, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
}


class GroupClassifier(nn.Module):
    """Logits are linear in the features. A unit's feature is the maximum of its map in the small shape, as MAIA
    defines activation; in a ResNet it is the mean, as in its training."""

    def __init__(self, shape: str, classes: int) -> None:
        super().__init__()
        self.shape = shape
        self.body: _SmallBody | _ResNetBody = _SmallBody() if shape == "small" else _ResNetBody()
        self.drop = nn.Dropout(DROPOUT)
        self.head = nn.Linear(self.units, classes)

    @property
    def units(self) -> int:
        return self.body.units

    def maps(self, pixels: Tensor) -> Tensor:
        """Return non-negative maps (batch, units, height, width) of `normalise`d pixels."""
        return self.body(pixels)

    def pool(self, maps: Tensor) -> Tensor:
        """Return features (batch, units)."""
        return maps.amax((2, 3)) if self.shape == "small" else maps.mean((2, 3))

    def forward(self, pixels: Tensor) -> Tensor:
        """Return logits (batch, classes)."""
        return self.head(self.drop(self.pool(self.maps(pixels))))

    def start_from(self, path: Path) -> list[str]:
        """Load the first layers, or all of a ResNet's, from a file of weights. Returns the loaded names.

        Raises MissingPart if the file cannot be read or nothing in it fits.
        """
        try:
            given = load_file(path)
        except (OSError, SafetensorError) as error:
            raise MissingPart(f"{path} cannot be read as weights ({error}). Name a whole safetensors file.") from error
        own = self.body.state_dict()
        # A weight of the same name but another shape is of another network, and stays as it was.
        fits = {name: given[name] for name in own if name in given and given[name].shape == own[name].shape}
        # Later layers are learned afresh: they are particular to what the file was trained on.
        taken = {name: value for name, value in fits.items() if name.split(".")[0] in self.body.from_start}
        if not taken:
            raise MissingPart(
                f"Nothing in {path} fits a network of the shape {self.shape}. Name weights of that shape."
            )
        self.body.load_state_dict(own | taken)
        return sorted(taken)


class _SmallBody(nn.Module):
    """Residual blocks; 128 maps of 12 x 12."""

    units = 128
    from_start = ("conv1", "layer1", "layer2")
    """General layers that are loaded from a trained network. The layers after them start untrained."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = _convolution(3, 24, 2)
        self.layer1 = _Residual(24, 24)
        self.layer2 = _Residual(24, 48, 2)
        self.layer3 = _Residual(48, 72, 2)
        self.layer4 = _Residual(72, self.units)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer4(self.layer3(self.layer2(self.layer1(self.conv1(x)))))


class _ResNetBody(ResNet):
    """ResNet-18 without its head; 512 maps of 7 x 7."""

    units = 512
    from_start = ("conv1", "bn1", *STAGES)

    def __init__(self) -> None:
        super().__init__(BasicBlock, 64, dict.fromkeys(STAGES, 2), 1)
        # `GroupClassifier` has a head of its own.
        del self.fc

    def forward(self, x: Tensor) -> Tensor:
        x = nn.functional.max_pool2d(self.bn1(self.conv1(x)).relu(), 3, 2, 1)
        for name in STAGES:
            x = self.get_submodule(name)(x)
        return x


def _convolution(inputs: int, outputs: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)
    )


class _Residual(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.first = _convolution(inputs, outputs, stride)
        self.second = nn.Sequential(nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs))
        # No ReLU here: it comes after the shortcut is added.
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.second(self.first(x)) + self.shortcut(x))


def resize(images: Sequence[Image.Image], shape: str) -> NDArray[np.uint8]:
    """Return bytes (batch, side, side, 3) of RGB images of any size."""
    side = SHAPES[shape].side
    pixels = np.empty((len(images), side, side, 3), dtype=np.uint8)

    def fill(at: int) -> None:
        # Each thread writes a row of its own, so no lock is needed.
        pixels[at] = np.asarray(images[at].convert("RGB").resize((side, side), Image.Resampling.BILINEAR))

    map_in_parallel(fill, range(len(images)))
    return pixels


def normalise(pixels: NDArray[np.uint8], shape: str) -> Tensor:
    """Convert bytes (batch, side, side, 3) to normalized floats (batch, 3, side, side)."""
    known = SHAPES[shape]
    mean, deviation = (torch.tensor(each)[:, None, None] for each in (known.mean, known.deviation))
    return (torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 255 - mean) / deviation


def save_classifier(network: GroupClassifier, card: ClassifierCard, path: Path) -> None:
    """Write weights and card in one step."""
    # safetensors refuses tensors that are not contiguous.
    tensors = {name: value.contiguous() for name, value in network.state_dict().items()}
    with atomic_write(path) as file:
        file.write(save(tensors, metadata={"card": json.dumps(asdict(card))}))


def read_card(path: Path) -> ClassifierCard:
    """Read the card of a classifier. Raises MissingPart if the file is not one of ours."""
    try:
        with safe_open(path, framework="pt") as file:
            found = json.loads(file.metadata()["card"])
        return ClassifierCard(found["shape"], tuple(found["classes"]), found["dataset"], found["seed"])
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise MissingPart(f"{path} holds no classifier that was trained here ({error}). Train it again.") from error


def load_classifier(path: Path) -> tuple[GroupClassifier, ClassifierCard]:
    """Load the network, in evaluation mode, and its card. Raises MissingPart."""
    card = read_card(path)
    network = GroupClassifier(card.shape, len(card.classes))
    network.load_state_dict(load_file(path))
    # In evaluation mode: dropout and the statistics of batch norm are for training alone.
    return network.eval().requires_grad_(False), card
