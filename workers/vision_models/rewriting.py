"""Runs a network whose modules give maps while one of these maps is replaced.

For models whose layers are modules of their own; `huggingface.reading` does the same for transformers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from PIL.Image import Image
from torch import Tensor, nn

from workers.model_cache import in_batches
from workers.protocols import Rewrite


def replace_output(module: nn.Module, rewrite: Rewrite | None) -> AbstractContextManager[object]:
    """Within the `with` block, the module gives what `rewrite` makes of its output; None changes nothing.

    `rewrite` takes and returns float32 in whatever precision the network computes. Hold the network's lock.
    """
    if rewrite is None:
        return nullcontext()

    def replace(_: nn.Module, __: object, output: Tensor) -> Tensor:
        return torch.empty_like(output).copy_(rewrite(output.float()))

    return module.register_forward_hook(replace)


def join_outputs(images: Sequence[Image], size: int, run: Callable[[Sequence[Image]], Tensor]) -> Tensor:
    """What `run` gives, (batch, outputs), for `size` images at a time; (0, 0) for no images."""
    parts = in_batches(images, size, lambda batch: [run(batch)])
    return torch.cat(parts) if parts else torch.empty(0, 0)
