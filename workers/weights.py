"""Choose the device of weights, measure their memory, recognise lack of memory; load a part of a checkpoint."""

from __future__ import annotations

import gc
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workers.errors import MissingPart, NotFinite

if TYPE_CHECKING:
    from torch import Tensor

loading = threading.Lock()
"""Held while loading with transformers or diffusers: meanwhile they change state that all threads share."""

_SIGNS = ("out of memory", "can't allocate memory", "alloc_failed")
_DEPTH = 4
"""Maximum depth of modules in a loaded object."""

AUTO = "auto"
"""CUDA if PyTorch has it, else the processor."""


def find_device(wanted: str) -> str:
    """Return the PyTorch device of this name. Raises MissingPart if it is not available. Imports torch."""
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if wanted == AUTO:
        return "cuda" if count else "cpu"
    if not wanted.startswith("cuda"):
        return wanted
    number = int(wanted.partition(":")[2] or 0)
    if number < count:
        return wanted
    build = "" if torch.version.cuda else ", for it is the build for processors"
    there = f"only {count} of them" if count else f"none{build}"
    raise MissingPart(
        f"MAIA_DEVICE={wanted!r} asks for an NVIDIA GPU, and PyTorch finds {there}. Unset it to take what is there, or "
        "look whether nvidia-smi lists the GPU and `make setup` was run since."
    )


def compute_in_float32() -> None:
    """Make convolutions on CUDA use float32 instead of PyTorch's default, TF32. Imports torch."""
    import torch

    # With TF32, maps of a ResNet were off by 2e-3 of a layer's largest value on an H200, without it by 2e-6
    torch.backends.cudnn.allow_tf32 = False


def is_out_of_memory(error: BaseException | None) -> bool:
    """True if an error says that memory ran out, on the device or on the processor."""
    if isinstance(error, MemoryError):
        return True
    # Backends have no common class for it
    return isinstance(error, RuntimeError) and any(sign in str(error).lower() for sign in _SIGNS)


def count_bytes(held: object) -> int:
    """Return the bytes of the parameters, buffers and tensors in the result of a `load`, each counted once."""
    # Nothing of torch is loaded, so there are no tensors
    if "torch" not in sys.modules:
        return 0
    import torch

    tensors: dict[int, torch.Tensor] = {}
    level = [held]
    for _ in range(_DEPTH + 1):
        # The tensors of modules, pipelines' components, the items of containers, the attributes of objects
        deeper: list[Any] = []
        for each in level:
            if isinstance(each, torch.Tensor):
                # By identity: shared weights count once
                tensors[id(each)] = each
            elif isinstance(each, torch.nn.Module):
                deeper += [*each.parameters(), *each.buffers()]
            elif isinstance(each, list | tuple):
                deeper += each
            else:
                # Pipelines of diffusers keep their networks there
                inside = each if isinstance(each, dict) else getattr(each, "components", None)
                deeper += (inside if isinstance(inside, dict) else getattr(each, "__dict__", {})).values()
        level = deeper
    return sum(each.numel() * each.element_size() for each in tensors.values())


def check_finite(values: Tensor, layer: str, model: str) -> None:
    """Raise NotFinite if a layer gives NaN or infinities."""
    # One sum instead of a look at each value: NaN and infinities carry through
    if not values.sum().isfinite():
        raise NotFinite(
            f"{layer} of {model} gives values that are no finite numbers. Its weights are damaged, or too large for "
            "half precision: fetch them again, or set MAIA_PRECISION=float32."
        )


def release_memory() -> None:
    """Return unreferenced memory to the device."""
    # First the references in circles, then the memory that PyTorch keeps
    gc.collect()
    # Not imported for this: without torch there is nothing to return
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def gigabytes(count: float) -> str:
    """Format bytes for people: 0.25 GB, 12.3 GB; a GB is 2**30 bytes, as in MAIA_MEMORY_GB."""
    size = count / (1 << 30)
    return f"{size:.2f} GB" if size < 10 else f"{size:.1f} GB"


def get_first_line(error: BaseException) -> str:
    """Return the first line of an error's message."""
    return str(error).partition("\n")[0][:200] or type(error).__name__


def load_part(kind: Any, folder: Path, **options: Any) -> Any:
    """Load a network, processor or tokenizer of transformers from its folder. Raises MissingPart."""
    from transformers.utils import logging

    # Workers write logs, where a bar is noise
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        with loading:
            return kind.from_pretrained(folder, local_files_only=True, **options)
    except Exception as error:  # a damaged file can make transformers raise anything
        raise MissingPart(
            f"{folder} holds no {kind.__name__} that can be loaded ({get_first_line(error)}). Fetch or save it again."
        ) from error


def load_network(kind: Any, folder: Path, **options: Any) -> Any:
    """Load a network of transformers with all its weights. Raises MissingPart."""
    # transformers fills missing weights with random ones, and only reports it
    network, report = load_part(kind, folder, output_loading_info=True, **options)
    if lost := sorted(report["missing_keys"]):
        raise MissingPart(
            f"{folder} is no whole {kind.__name__}: {len(lost)} of its weights are missing, such as {lost[0]}. "
            "Fetch or save the checkpoint again, or name another."
        )
    return network
