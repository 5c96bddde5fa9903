"""Where networks run: what MAIA_DEVICE asks for, against what PyTorch has here."""

from __future__ import annotations

from workers.errors import MissingPart

AUTO = "auto"
"""CUDA where PyTorch has it, else the processor."""


def find_device(wanted: str) -> str:
    """The device of PyTorch that is meant. Raises MissingPart for one that is not here. Imports torch."""
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
