"""The networks of toybox.

toybox-net is studied. Synthetic neurons see with toybox-eyes. toybox-describer has the shape of the eyes and tells
agents and baselines what images show. This module has shapes, names and weight files; `train` trains, `examples`
draws images. Used by toybox's plug-ins and by `train`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from PIL import Image
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor, nn

from workers.errors import MachineryError
from workers.files import atomic_write
from workers.lab.imaging import map_in_parallel

INPUT = 96
"""Side in pixels of the networks' square input."""
EYES_OUTPUT = 48
"""Side of the maps of toybox-eyes."""
WEIGHTS = Path(__file__).parents[1] / "weights"
NET_FILE = WEIGHTS / "toybox-net.safetensors"
EYES_FILE = WEIGHTS / "toybox-eyes.safetensors"
DESCRIBER_FILE = WEIGHTS / "toybox-describer.safetensors"


@dataclass(frozen=True)
class Vocabulary:
    """The words a network was trained on, in the order of its outputs. Stored with its weights."""

    nouns: tuple[str, ...]
    colours: tuple[str, ...]
    sizes: tuple[str, ...]
    grounds: tuple[str, ...]
    lights: tuple[str, ...]

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the units of toybox-net's logits: nouns, then colours of toys, then grounds, then lights."""
        # The order is that of the logits, so a change makes stored weights useless
        return self.nouns + self.colours + self.grounds + self.lights

    @classmethod
    def from_json(cls, text: str) -> Vocabulary:
        return cls(**{name: tuple(words) for name, words in json.loads(text).items()})

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def preprocess(images: Sequence[Image.Image]) -> Tensor:
    """Convert RGB images of any size to the networks' input (batch, 3, 96, 96), values of about -2 to 2."""
    # Filled by several threads, each its own row
    pixels = np.empty((len(images), INPUT, INPUT, 3), dtype=np.uint8)

    def fill(at: int) -> None:
        pixels[at] = np.asarray(images[at].convert("RGB").resize((INPUT, INPUT), Image.Resampling.BILINEAR))

    map_in_parallel(fill, range(len(images)))
    return normalise(torch.from_numpy(pixels))


def normalise(pixels: Tensor) -> Tensor:
    """Convert bytes (batch, 96, 96, 3) to centred floats (batch, 3, 96, 96)."""
    # Bytes become about -2 to 2, centred at 0
    return (pixels.permute(0, 3, 1, 2).float() / 255 - 0.5) / 0.25


def _convolution(inputs: int, outputs: int, stride: int = 1) -> nn.Sequential:
    """Build a 3 x 3 convolution with batch norm and ReLU."""
    # No bias: the batch norm has one
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)
    )


class Residual(nn.Module):
    """Two convolutions and a shortcut, ReLU last, so that its units are never negative."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.first = _convolution(inputs, outputs, stride)
        self.second = nn.Sequential(nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs))
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.second(self.first(x)) + self.shortcut(x))


class ToyboxNet(nn.Module):
    """Predicts which toys, colours, grounds and lights an image shows: one logit for each of `vocabulary.classes`.

    The logits are non-negative mixtures of the spatial maxima of layer4, plus a bias. So a unit of layer4 can only
    support a class, never oppose one, and its maximum is what it adds.
    """

    WIDTHS: Mapping[str, int] = {"conv1": 24, "layer1": 24, "layer2": 48, "layer3": 72, "layer4": 96}

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        widths = list(self.WIDTHS.values())
        self.conv1 = _convolution(3, widths[0], stride=2)  # (24, 48, 48)
        self.layer1 = Residual(widths[0], widths[1])  # (24, 48, 48)
        self.layer2 = Residual(widths[1], widths[2], stride=2)  # (48, 24, 24)
        self.layer3 = Residual(widths[2], widths[3], stride=2)  # (72, 12, 12)
        self.layer4 = Residual(widths[3], widths[4])  # (96, 12, 12)
        self.logits = nn.Linear(widths[4], len(vocabulary.classes))

    def maps(self, x: Tensor) -> dict[str, Tensor]:
        """Return every layer's output (batch, units, height, width) by name. Logits have height and width 1."""
        found: dict[str, Tensor] = {}
        for name in self.WIDTHS:
            x = found[name] = getattr(self, name)(x)
        # Height and width 1, so that a logit is read like any other unit
        found["logits"] = self.logits(x.amax(dim=(2, 3)))[:, :, None, None]
        return found

    def forward(self, x: Tensor) -> Tensor:
        """Return logits (batch, classes)."""
        return self.maps(x)["logits"].flatten(1)


@dataclass(frozen=True)
class EyesOutput:
    """The output of toybox-eyes for a batch. All are logits."""

    noun: Tensor
    """(batch, 1 + nouns, 48, 48); 0 is no toy."""
    colour: Tensor
    """(batch, colours, 48, 48). It is only valid on toys."""
    size: Tensor
    """(batch, sizes, 48, 48). It is only valid on toys."""
    ground: Tensor
    """(batch, grounds)."""
    light: Tensor
    """(batch, lights)."""


class ToyboxEyes(nn.Module):
    """Finds toys pixel by pixel with their colours and sizes, and predicts ground and light.

    A U-Net: each step down halves the map, each step up joins it with the map of the same size.
    """

    WIDTHS = (24, 48, 72, 96)

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        stem, fine, coarse, deep = self.WIDTHS
        self.stem = nn.Sequential(_convolution(3, stem, stride=2), _convolution(stem, stem))  # 48 x 48
        self.down1 = Residual(stem, fine, stride=2)  # 24 x 24
        self.down2 = Residual(fine, coarse, stride=2)  # 12 x 12
        self.down3 = Residual(coarse, deep, stride=2)  # 6 x 6
        self.up2 = _convolution(deep + coarse, coarse)
        self.up1 = _convolution(coarse + fine, fine)
        self.up0 = _convolution(fine + stem, fine)
        # One convolution for all parts of a pixel; `forward` splits its output
        self.pixels = nn.Conv2d(fine, sum(self._pixel_parts()), 1)
        # Mean and maximum of the deepest map, hence twice its width
        self.whole = nn.Linear(2 * deep, len(vocabulary.grounds) + len(vocabulary.lights))

    def _pixel_parts(self) -> list[int]:
        words = self.vocabulary
        return [1 + len(words.nouns), len(words.colours), len(words.sizes)]

    def forward(self, x: Tensor) -> EyesOutput:
        stem = self.stem(x)
        fine = self.down1(stem)
        coarse = self.down2(fine)
        deep = self.down3(coarse)
        whole = self.whole(torch.cat([deep.mean((2, 3)), deep.amax((2, 3))], dim=1))
        # Each step up joins the map of the same size, which has the details that the smaller one lost
        up = self.up2(_join_scales(deep, coarse))
        up = self.up1(_join_scales(up, fine))
        noun, colour, size = self.pixels(self.up0(_join_scales(up, stem))).split(self._pixel_parts(), dim=1)
        ground, light = whole.split([len(self.vocabulary.grounds), len(self.vocabulary.lights)], dim=1)
        return EyesOutput(noun, colour, size, ground, light)


def _join_scales(small: Tensor, large: Tensor) -> Tensor:
    return torch.cat([nn.functional.interpolate(small, size=large.shape[2:], mode="nearest"), large], dim=1)


def save_weights(network: ToyboxNet | ToyboxEyes, path: Path) -> None:
    """Write a network and its vocabulary in one step: a reader sees the old file or the new one."""
    # `save` refuses tensors with another memory layout, such as channels last
    tensors = {name: value.contiguous() for name, value in network.state_dict().items()}
    data = save(tensors, metadata={"vocabulary": network.vocabulary.to_json()})
    with atomic_write(path) as file:
        file.write(data)


def load_net(path: Path = NET_FILE) -> ToyboxNet:
    """Return toybox-net in evaluation mode. Raises MachineryError if its weights are missing."""
    return _with_weights(ToyboxNet, path)


def load_eyes(path: Path = EYES_FILE) -> ToyboxEyes:
    """Return toybox-eyes in evaluation mode. Raises MachineryError if its weights are missing."""
    return _with_weights(ToyboxEyes, path)


def fingerprint(path: Path) -> str:
    """Return a name for the content of a weights file, which changes with it."""
    return sha256(path.read_bytes()).hexdigest()[:12]


Network = TypeVar("Network", ToyboxNet, ToyboxEyes)


def _with_weights(kind: type[Network], path: Path) -> Network:
    if not path.exists():
        raise MachineryError(f"The weights {path} are missing. Restore the file, or run `manage.py train_toybox`.")
    with safe_open(path, framework="pt") as file:
        # The vocabulary is stored with the weights, so the network is built before they are loaded
        network = kind(Vocabulary.from_json(file.metadata()["vocabulary"]))
        # The linter's form fails: an opened file cannot be iterated
        network.load_state_dict({name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118
    # Pixels come channels last; weights laid out alike halve the time of a forward pass on a processor
    for weights in network.parameters():
        if weights.ndim == 4:
            weights.data = weights.data.contiguous(memory_format=torch.channels_last)
    return network.eval().requires_grad_(False)
