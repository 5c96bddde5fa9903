"""Find the layout of modules' outputs, and convert them to maps (batch, units, height, width).

Sizes are (height, width).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn

Size = tuple[int, int]

_IN_FRONT = ("cls_token", "class_token", "class_embedding", "distillation_token", "register_tokens")
_BEHIND = ("detection_tokens",)
"""Parameters that are tokens without a position, by the ends of their names in transformers."""
_MERGING = "PatchMerging"
"""End of the name of a class that merges two by two tokens into one, such as Swin's."""


@dataclass(frozen=True)
class TensorLayout:
    """Units in the second dimension (b, c, h, w), in the last one (b, h, w, c), or tokens row by row (b, front + h *
    w + behind, c)."""

    form: Literal["first", "last", "tokens"]
    grid: Size = (0, 0)
    """Of tokens: rows and columns."""
    front: int = 0
    behind: int = 0

    @property
    def extra(self) -> int:
        """Number of tokens without a position."""
        return self.front + self.behind


@dataclass(frozen=True)
class TokenLayouts:
    """The possible layouts of a network's tokens."""

    grids: Sequence[Size]
    extra: Sequence[tuple[int, int]]
    """Maximum number in front and behind, together."""
    queries: int = 0
    """Number of object queries, which are tokens without a position."""

    @classmethod
    def of(cls, network: nn.Module, outputs: Mapping[str, Any], size: Size, queries: int = 0) -> TokenLayouts:
        """Find the layouts from the outputs of its modules for images of `size`, and from its parameters."""
        modules = dict(network.named_modules())
        mergings = sum(type(each).__name__.endswith(_MERGING) for each in modules.values())
        grids: dict[Size, None] = {}
        for path, output in outputs.items():
            tensor = tensor_in(output)
            # Only convolutions lay an image out; other outputs of four dimensions may be attention.
            if not isinstance(modules[path], nn.Conv2d) or tensor is None or tensor.ndim != 4:
                continue
            if _fits((tensor.shape[2], tensor.shape[3]), size):
                rows, columns = tensor.shape[2:]
                # Each merging halves the grid, so the same network has several.
                for _ in range(1 + mergings):
                    grids[rows, columns] = None
                    # Rounded up: an odd side is padded before it is merged.
                    rows, columns = (rows + 1) // 2, (columns + 1) // 2
        counts: dict[str, list[int]] = {}
        for path, weight in network.named_parameters():
            owner, _, name = path.rpartition(".")
            for at, known in enumerate((_IN_FRONT, _BEHIND)):
                if name in known:
                    counts.setdefault(owner, [0, 0])[at] += weight.numel() // weight.shape[-1]
        return cls(tuple(grids), tuple((front, behind) for front, behind in counts.values()), queries)

    def find(self, tokens: int) -> TensorLayout | None:
        """Return the layout of this many tokens; None if unknown."""
        # Never guessed from the number of tokens alone: rows and columns come from a convolution, tokens without a
        # position from the parameters.
        # The plain grid comes first: patches alone, without other tokens.
        for front, behind in ((0, 0), *self.extra):
            for rows, columns in self.grids:
                # Tokens of queries have no place in the image, even if their number fits a grid.
                if tokens == front + rows * columns + behind and 1 < tokens != self.queries:
                    return TensorLayout("tokens", (rows, columns), front, behind)
        return None


def tensor_in(output: Any) -> torch.Tensor | None:
    """Return the tensor of a module's output: alone, or first in a tuple."""
    first = output[0] if isinstance(output, tuple) and output else output
    return first if isinstance(first, torch.Tensor) else None


def find_layout(
    module: nn.Module, output: torch.Tensor, batch: int, size: Size, tokens: TokenLayouts
) -> TensorLayout | None:
    """Return the layout of the output for images of `size`; None if it is not a map, or its layout is unknown."""
    if output.shape[0] != batch:  # windows of an image, parameters
        return None
    if output.ndim == 3:
        # With one number a token there is no unit to tell from another.
        return tokens.find(output.shape[1]) if output.shape[2] > 1 else None
    if output.ndim != 4:
        return None
    _, a, b, c = output.shape
    # A linear layer has its units in the last dimension, even if the others look like a map.
    if not isinstance(module, nn.Linear) and _fits((b, c), size):
        return TensorLayout("first")
    return TensorLayout("last") if _fits((a, b), size) else None


def count_units(output: torch.Tensor, layout: TensorLayout) -> int:
    return output.shape[1] if layout.form == "first" else output.shape[-1]


def convert_to_maps(output: torch.Tensor, layout: TensorLayout) -> torch.Tensor:
    """Return a view of the output as maps (batch, units, height, width), without tokens that have no place."""
    if layout.form == "first":
        return output
    if layout.form == "last":
        return output.permute(0, 3, 1, 2)
    places = output[:, layout.front : output.shape[1] - layout.behind]
    return places.transpose(1, 2).unflatten(2, layout.grid)


def _fits(area: Size, size: Size) -> bool:
    """True if a map of `area` covers an image of `size`: not finer, and of the same proportions up to rounding."""
    height, width = size
    rows, columns = area
    # Of the same proportions, up to rounding on either side.
    return rows <= height and columns <= width and abs(rows * width - columns * height) <= max(height, width)
