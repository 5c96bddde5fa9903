"""Read torchvision's ResNets from safetensors or a PyTorch checkpoint, with or without a head, and names published
files.

Code in a file is never run, and no file or archive larger than any ResNet is opened.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from workers.errors import MissingPart
from workers.vision_models.state_dicts import read_state_dict
from workers.vision_models.torchvision_resnet.network import ResNet

MAX_BYTES = 1 << 30
"""Four times ResNet-152 in float32."""
ANCHOR = "layer1.0.conv1.weight"
HEAD = "fc"
_OF_THE_TRUNK = re.compile(r"(conv|bn|layer)\d+\.")
"""Start of names of weights that are not in the head."""
_REMEDY = "Name a file such as resnet152-394f9c45.pth."
PAPER = "IMAGENET1K_V1"
PUBLISHED: Mapping[str, str] = {
    "f37072fd": PAPER,
    "b627a593": PAPER,
    "0676ba61": PAPER,
    "63fe2227": PAPER,
    "394f9c45": PAPER,
    "11ad3fa6": "IMAGENET1K_V2",
    "cd907fc2": "IMAGENET1K_V2",
    "f82ba261": "IMAGENET1K_V2",
}
"""First digits of the SHA-256 of torchvision's files, as in their names -> torchvision's name of the weights."""


def load(path: Path) -> ResNet:
    """Return the network with the weights of a file. Raises MissingPart if it cannot be read or holds other weights."""
    # Before anything is unpacked: a small archive may unpack to fill the memory.
    if _bytes(path) > MAX_BYTES:
        raise MissingPart(f"{path} holds over {MAX_BYTES:,} bytes, more than any ResNet. Name the file of one.")
    weights = read_state_dict(path, ANCHOR, "ResNet of torchvision", _REMEDY)
    # Half precision is widened; integers are counters of batch norm.
    floats = {
        name: value.float() if value.is_floating_point() else value for name, value in _find_parts(weights).items()
    }
    try:
        with torch.device("meta"):  # without values: they come from the weights
            network = ResNet.like(floats)
    except (KeyError, IndexError) as error:
        raise MissingPart(f"{path} holds no ResNet of torchvision: it has no {error}. {_REMEDY}") from error
    except ValueError as error:
        raise MissingPart(f"{path} holds no ResNet of torchvision: {error}. {_REMEDY}") from error
    # Old files lack these counters, and evaluation does not use them.
    counters = {key: torch.tensor(0) for key in network.state_dict() if key.endswith("num_batches_tracked")}
    try:
        # Assigned, not copied: a network on "meta" has no memory to copy to.
        network.load_state_dict(counters | floats, strict=True, assign=True)
    except RuntimeError as error:
        wrong = str(error).strip().splitlines()[1].strip()
        raise MissingPart(
            f"{path} does not fit a ResNet of torchvision: {wrong} If that is what it should hold, fetch the whole "
            "file again; other networks are not read here."
        ) from error
    return network


def _find_parts(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the trunk and, as "fc", its head: the only linear layer after it, whatever its name.

    If it is not clear which layer is the head, it is left out.
    """
    trunk = {name: value for name, value in weights.items() if _OF_THE_TRUNK.match(name)}
    # What is not in the trunk belongs to some head, under any name.
    behind = {name.rpartition(".")[0] for name in weights if name not in trunk}
    usual = {layer for layer in behind if layer.partition(".")[0] == HEAD}
    # Two heads, such as that of a pretext task: which one is meant is a guess.
    if len(candidates := usual or behind) != 1:
        return trunk
    (layer,) = candidates
    weight, bias = weights.get(f"{layer}.weight"), weights.get(f"{layer}.bias")
    # A head of several layers, or one without a bias, is not `fc`.
    if weight is None or bias is None or weight.ndim != 2 or bias.shape != weight.shape[:1]:
        return trunk
    return trunk | {f"{HEAD}.weight": weight, f"{HEAD}.bias": bias}


def _bytes(path: Path) -> int:
    """Return the size of the file, or of its unpacked content."""
    size = path.stat().st_size
    if not zipfile.is_zipfile(path):
        return size
    with zipfile.ZipFile(path) as archive:
        # The unpacked size: compressed zeros need next to no space in the file.
        return max(size, sum(each.file_size for each in archive.infolist()))
