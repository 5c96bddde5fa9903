"""Read tensors of untrusted files. Raises RequestError with the reason and the remedy."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from workers.errors import RequestError

MAX_BYTES = 8 << 30
"""Maximum size of a file with weights, and of its tensors as float32."""
_CLASS = re.compile(r"GLOBAL ([\w.]+)")
"""Found in PyTorch's refusal of a file that needs more than tensors."""


class PublishedTensors:
    """The tensors of a file, by the names that their format gives them. Each is taken once."""

    def __init__(self, path: Path, found: Mapping[str, Any]) -> None:
        self.path = path
        self._found = dict(found)
        # Four bytes each as float32, whatever they take in the file.
        size = sum(4 * each.numel() for each in found.values() if isinstance(each, Tensor))
        # Before any tensor is copied to float32.
        if size > MAX_BYTES:
            raise RequestError(
                f"The tensors of {path} would take {size / (1 << 30):,.1f} GiB; at most {MAX_BYTES >> 30} GiB can be "
                "read. Choose a smaller auto-encoder."
            )

    def __contains__(self, name: str) -> bool:
        return name in self._found

    def take(self, name: str, *shape: int | None) -> Tensor:
        """Return the tensor of this name as float32; None stands for any length of that axis."""
        found = self.take_value(name)
        if not isinstance(found, Tensor) or not _is_plain(found):
            raise RequestError(f"{name} in {self.path} is no plain tensor. Save the weights again, as plain tensors.")
        fits = len(found.shape) == len(shape) and all(
            wanted in (None, length) for length, wanted in zip(found.shape, shape, strict=True)
        )
        if not fits or not found.numel():
            wanted = " x ".join("any" if each is None else f"{each:,}" for each in shape) or "one number"
            raise RequestError(
                f"{name} in {self.path} has the shape {_format_shape(found)}, and not {wanted}: it does not fit the "
                "rest of the file. Download the files again, or choose another auto-encoder."
            )
        # After the checks: converting copies.
        numbers = found.detach().float()
        if not numbers.isfinite().all():
            raise RequestError(
                f"{name} in {self.path} holds values that are infinite or no numbers. Choose another auto-encoder."
            )
        return numbers

    def take_number(self, name: str) -> float:
        """Return a tensor with one value, or a number."""
        found = self._found.get(name)
        if isinstance(found, int | float):
            self._found[name] = torch.tensor(float(found))
        # Some formats store numbers as vectors of length 1.
        if isinstance(found, Tensor) and found.numel() == 1:
            self._found[name] = found.reshape(())
        return float(self.take(name))

    def take_count(self, name: str) -> int:
        """Return a whole number, stored as a tensor with one value or as a number."""
        found = self.take_number(name)
        if not found.is_integer():
            raise RequestError(f"{name} in {self.path} is {found:g}, and no whole number. Choose another auto-encoder.")
        return int(found)

    def take_value(self, name: str) -> Any:
        """Return the value of this name, whatever its type."""
        if name not in self._found:
            there = ", ".join(sorted(self._found)[:20]) or "nothing else"
            raise RequestError(
                f"{self.path} lacks {name[:80]!r}, which its format has; it holds {there[:400]}. Download the file "
                "again, or choose another auto-encoder."
            )
        # Removed, so that `finish` sees what was not used.
        return self._found.pop(name)

    def finish(self, *ignored: str) -> None:
        """Refuse a file with values that were not taken."""
        # What such a value does in the formula would be lost.
        rest = sorted(self._found.keys() - set(ignored))
        if rest:
            raise RequestError(
                f"{self.path} also holds {', '.join(rest)[:400]}, whose use is not known for this format. Choose an "
                "auto-encoder without that."
            )


def _is_plain(found: Tensor) -> bool:
    """False for tensors that are sparse, quantised, complex or without values."""
    return (
        found.layout == torch.strided
        and found.device.type == "cpu"
        and not found.is_quantized
        and not found.is_complex()
    )


def _format_shape(found: Tensor) -> str:
    return " x ".join(f"{each:,}" for each in found.shape) or "one number"


def read_tensors(path: Path) -> PublishedTensors:
    """Read a file with weights: `.safetensors`, or what PyTorch saved."""
    return read_safetensors(path) if path.suffix == ".safetensors" else read_torch(path)


def read_safetensors(path: Path) -> PublishedTensors:
    """Read the tensors of a safetensors file, on the CPU."""
    check_size(path, MAX_BYTES)
    try:
        with safe_open(path, "pt") as file:
            return PublishedTensors(path, {name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118
    except (OSError, SafetensorError, ValueError, RuntimeError) as error:
        raise RequestError(f"{path} cannot be read ({error}). Download the file again.") from error


def read_torch(path: Path, start: int = 0) -> PublishedTensors:
    """Read what PyTorch saved from this byte of a file on; tensors, numbers and text alone."""
    check_size(path, MAX_BYTES)
    found = _load_torch(path, io.BytesIO(read_bytes(path, start)))
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        raise RequestError(f"{path} holds no tensors with names. Save a state_dict, with torch.save.")
    return PublishedTensors(path, found)


def _load_torch(path: Path, file: io.BytesIO) -> Any:
    # Older files are bare pickles, whose size cannot be checked before they are read.
    if not zipfile.is_zipfile(file):
        raise RequestError(
            f"{path} was not saved by PyTorch 1.6 or later, or is damaged. Load it where you trust it, and save its "
            "tensors alone again: torch.save(state_dict, FILE)"
        )
    try:
        with zipfile.ZipFile(file) as archive:
            # A small archive may unpack to any size.
            unpacked = sum(each.file_size for each in archive.infolist())
        if unpacked > MAX_BYTES:
            raise ValueError(f"it unpacks to over {MAX_BYTES >> 30} GiB")
        file.seek(0)
        # Runs no code of the file: `weights_only` unpickles tensors, numbers and text alone.
        return torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # damaged and hostile files raise nearly anything
        needed = _CLASS.search(str(error))
        reason = f"it needs {needed[1]}" if needed else str(error).partition("\n")[0][:150]
        raise RequestError(
            f"{path} cannot be read as tensors alone ({reason}). Load it where you trust it, and save its tensors "
            "alone: torch.save(state_dict, FILE)"
        ) from error


def check_size(path: Path, limit: int) -> None:
    """Raise RequestError for a file with more bytes than this."""
    size = path.stat().st_size if path.is_file() else 0
    if size > limit:
        raise RequestError(f"{path} has {size:,} bytes; at most {limit:,} can be read. Choose a smaller file.")


def read_bytes(path: Path, start: int = 0) -> bytes:
    """Read a file from this byte on; its size must have been checked."""
    try:
        with path.open("rb") as file:
            file.seek(start)
            return file.read()
    except OSError as error:
        raise RequestError(f"{path} cannot be read: {error.strerror}.") from error
