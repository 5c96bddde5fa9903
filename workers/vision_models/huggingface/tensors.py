"""How the outputs of modules are laid out, and how to lay them out as maps (batch, units, height, width).

Knows tensors alone. Sizes are (height, width).
"""

from __future__ import annotations

from math import isqrt
from typing import Any, Literal

import torch
from torch import nn

TensorLayout = Literal["first", "last", "tokens"]
"""Units in the second dimension (b, c, h, w), in the last one (b, h, w, c), or tokens (b, others + h * w, c)."""
Size = tuple[int, int]

MOST_OTHERS = 16
"""Most tokens in front that stand for no place: the class, the distillation token, registers."""


def tensor_in(output: Any) -> torch.Tensor | None:
    """The tensor that a module gives: alone, or first in a tuple."""
    first = output[0] if isinstance(output, tuple) and output else output
    return first if isinstance(first, torch.Tensor) else None


def find_layout(module: nn.Module, output: torch.Tensor, batch: int, size: Size, patch: int) -> TensorLayout | None:
    """How the output for images of `size` is laid out; None if it is no map. `patch` is 0 if the network has none."""
    if output.shape[0] != batch:  # windows of an image, parameters
        return None
    if output.ndim == 3:
        return "tokens" if output.shape[2] > 1 and _find_grid(output.shape[1], size, patch) else None
    if output.ndim != 4:
        return None
    _, a, b, c = output.shape
    if not isinstance(module, nn.Linear) and _fits((b, c), size):
        return "first"
    return "last" if _fits((a, b), size) else None


def _find_grid(tokens: int, size: Size, patch: int) -> Size | None:
    """Rows and columns of that many tokens over an image of `size`, those in front left out; None if they fit none."""
    height, width = size
    rows, columns = (height // patch, width // patch) if patch else (0, 0)
    if rows and 0 <= tokens - rows * columns <= MOST_OTHERS:
        return rows, columns
    for places in (tokens, tokens - 1):
        rows = isqrt(max(0, places) * height // width)
        if rows and places % rows == 0 and rows * width == places // rows * height:
            return rows, places // rows
    return None


def count_extra_tokens(tokens: int, size: Size, patch: int) -> int:
    """Tokens in front that stand for no place."""
    rows, columns = _find_grid(tokens, size, patch) or (0, 0)
    return tokens - rows * columns


def count_units(output: torch.Tensor, form: TensorLayout) -> int:
    return output.shape[1] if form == "first" else output.shape[-1]


def to_maps(output: torch.Tensor, form: TensorLayout, size: Size, patch: int) -> torch.Tensor:
    """A view of the output as maps (batch, units, height, width), tokens that stand for no place left out."""
    if form == "first":
        return output
    if form == "last":
        return output.permute(0, 3, 1, 2)
    rows, columns = _find_grid(output.shape[1], size, patch) or (1, output.shape[1])
    return output[:, output.shape[1] - rows * columns :].transpose(1, 2).unflatten(2, (rows, columns))


def _fits(area: Size, size: Size) -> bool:
    """Whether a map of `area` covers an image of `size`: not finer, and of the same proportions, but for rounding."""
    height, width = size
    rows, columns = area
    return rows <= height and columns <= width and abs(rows * width - columns * height) <= max(height, width)
