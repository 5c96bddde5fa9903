"""Read the network of an approximated function from its weights, never from its code, and write it as code of ours."""

from __future__ import annotations

import io
import math
import zipfile
from typing import Any

import torch

HIDDEN = 64
_SHAPES = {
    "layers.0.weight": (HIDDEN, 1),
    "layers.0.bias": (HIDDEN,),
    "layers.2.weight": (1, HIDDEN),
    "layers.2.bias": (1,),
}
_MAX_UNPACKED = 1 << 20
_CODE = """\
_WEIGHTS = {weights}
_BIASES = {biases}
_OUTPUTS = {outputs}


def f(x):
    return {bias} + sum(o * max(0.0, w * x + b) for w, b, o in zip(_WEIGHTS, _BIASES, _OUTPUTS))
"""


def write_network_code(data: bytes) -> str:
    """Return the code of the network 1 → 64 ReLU → 1 in a .pt file. Raises ValueError for any other file."""
    state = _load(data)
    # Exactly these weights: more would mean another architecture
    if not isinstance(state, dict) or {*state} != {*_SHAPES}:
        raise ValueError(f"it does not hold the weights {', '.join(_SHAPES)} alone")
    for name, shape in _SHAPES.items():
        if not isinstance(state[name], torch.Tensor) or tuple(state[name].shape) != shape:
            found = tuple(getattr(state[name], "shape", ()))
            raise ValueError(f"{name} has the shape {found}, and not {shape}")
    # In the order of `_SHAPES`: hidden weights, hidden biases, output weights, output bias
    weights, biases, outputs, bias = ([float(x) for x in state[name].flatten().tolist()] for name in _SHAPES)
    if not all(map(math.isfinite, (*weights, *biases, *outputs, *bias))):
        raise ValueError("it holds weights that are no finite numbers")
    return _CODE.format(weights=weights, biases=biases, outputs=outputs, bias=bias[0])


def _load(data: bytes) -> Any:
    """Return what PyTorch saved, numbers and text alone. Raises ValueError."""
    file = io.BytesIO(data)
    try:
        # A zip may unpack to far more than its size
        if zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as archive:
                if sum(each.file_size for each in archive.infolist()) > _MAX_UNPACKED:
                    raise ValueError(f"it unpacks to over {_MAX_UNPACKED >> 20} MB")
        file.seek(0)
        # `weights_only`: a pickle could run any code
        return torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # damaged and hostile files raise nearly anything
        raise ValueError(f"it cannot be read: {str(error).partition(chr(10))[0][:150]}") from error
