"""Run a network whose modules return maps, with some of these maps replaced.

For models whose layers are modules. `huggingface.reading` does the same for transformers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack

import torch
from PIL.Image import Image
from torch import Tensor, nn

from workers.model_cache import map_in_batches
from workers.protocols import Rewrite


def replace_outputs(rewrites: Iterable[tuple[nn.Module, Rewrite | None]]) -> ExitStack:
    """Within the `with` block, replace each module's output by its rewrite; None changes nothing.

    A rewrite takes and returns float32, whatever the network's precision. The caller holds the network's lock.
    """
    hooked = ExitStack()
    for module, rewrite in rewrites:
        if rewrite is not None:
            hooked.enter_context(module.register_forward_hook(_replace_by(rewrite)))
    return hooked


def _replace_by(rewrite: Rewrite) -> Callable[[nn.Module, object, Tensor], Tensor]:
    def replace(_: nn.Module, __: object, output: Tensor) -> Tensor:
        # A copy into the output's own kind of tensor: the next module expects its precision and its place.
        return torch.empty_like(output).copy_(rewrite(output.float()))

    return replace


def join_outputs(images: Sequence[Image], size: int, run: Callable[[Sequence[Image]], Tensor]) -> Tensor:
    """Return the output of `run`, (batch, outputs), for `size` images at a time; (0, 0) for no images."""
    parts = map_in_batches(images, size, lambda batch: [run(batch)])
    return torch.cat(parts) if parts else torch.empty(0, 0)
