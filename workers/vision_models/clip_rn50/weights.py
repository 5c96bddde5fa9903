"""Read published weights of CLIP's ResNets: safetensors, a state dict of PyTorch, or OpenAI's TorchScript archive.

Code in a file is never run. Only the tensors of an archive are read.
"""

from __future__ import annotations

import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from workers.errors import MissingPart
from workers.vision_models.clip_rn50.network import ClipImageEncoder
from workers.vision_models.state_dicts import load_pickle, read_state_dict

ANCHOR = "layer1.0.conv1.weight"
_REMEDY = "Get one: hf download timm/resnet50_clip.openai"


def load(path: Path) -> ClipImageEncoder:
    """Return the network with the weights of a file. Raises MissingPart if it cannot be read or holds other weights."""
    read = read_state_dict(path, ANCHOR, "ResNet of CLIP", _REMEDY, _read_archive_or_dict)
    # OpenAI's archive is in half precision; the settings decide in which one the network runs.
    weights = {name: value.float() for name, value in read.items()}
    try:
        network = ClipImageEncoder.like(weights)
    except (KeyError, IndexError) as error:
        raise MissingPart(f"{path} holds no ResNet of CLIP: it has no {error}. {_REMEDY}") from error
    # Older files lack these counters, and evaluation does not use them.
    counters = {key for key in network.state_dict() if key.endswith("num_batches_tracked")}
    try:
        # Not strict: counters may be missing. What else differs is reported below.
        report = network.load_state_dict(weights, strict=False)
    except RuntimeError as error:
        wrong = str(error).strip().splitlines()[-1].strip()
        raise MissingPart(f"{path} does not fit a ResNet of CLIP: {wrong} Fetch the file again.") from error
    lacking = sorted({*report.missing_keys} - counters)
    if lacking or report.unexpected_keys:
        what = " and ".join([*_list_names("lacks", lacking), *_list_names("has besides", report.unexpected_keys)])
        raise MissingPart(f"{path} does not fit a ResNet of CLIP: it {what}. Fetch the whole file again.")
    return network


def _list_names(verb: str, names: list[str]) -> list[str]:
    return [f"{verb} {', '.join(names[:3])}{' …' if names[3:] else ''} ({len(names)})"] if names else []


def _read_archive_or_dict(path: Path) -> Any:
    # A plain state dict of PyTorch is a zip file too, without code in it.
    is_archive = zipfile.is_zipfile(path) and any("/code/" in name for name in zipfile.ZipFile(path).namelist())
    return _read_archive(path) if is_archive else load_pickle(path)


class _Module:
    """Replaces every class that an archive defines. It keeps the attributes and has no code."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


class _Numbers(pickle.Unpickler):
    """Unpickles the tensors of an archive and refuses everything else in its pickle."""

    def __init__(self, data: bytes, record: Callable[[str], bytes]) -> None:
        super().__init__(BytesIO(data))
        self._record = record

    def find_class(self, module: str, name: str) -> Any:
        if module.startswith("__torch__"):
            return _Module
        known: dict[tuple[str, str], Any] = {
            ("torch._utils", "_rebuild_tensor_v2"): _tensor,
            ("collections", "OrderedDict"): OrderedDict,
            ("torch.jit._pickle", "build_intlist"): list,
            ("torch.jit._pickle", "build_doublelist"): list,
            ("torch.jit._pickle", "build_boollist"): list,
            ("torch.jit._pickle", "build_tensorlist"): list,
            ("torch.jit._pickle", "restore_type_tag"): lambda value, _: value,
            **{("torch", storage): dtype for storage, dtype in _DTYPES.items()},
        }
        if (module, name) not in known:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which weights do not need.")
        return known[module, name]

    def persistent_load(self, reference: Any) -> Tensor:
        """Return the data of a tensor from ("storage", type, record, device, count)."""
        # The device is left out: the archive was saved from a GPU, and tensors are read on the CPU.
        _, dtype, record, _, count = reference
        # A copy: bytes cannot be written to, and tensors on them would warn.
        return torch.frombuffer(bytearray(self._record(f"data/{record}")), dtype=dtype, count=count)


_DTYPES = {
    "FloatStorage": torch.float32,
    "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16,
    "DoubleStorage": torch.float64,
    "LongStorage": torch.int64,
    "IntStorage": torch.int32,
    "BoolStorage": torch.bool,
    "ByteStorage": torch.uint8,
}


def _tensor(numbers: Tensor, offset: int, size: tuple[int, ...], stride: tuple[int, ...], *_: Any) -> Tensor:
    return numbers.as_strided(size, stride, offset)


def _read_archive(path: Path) -> dict[str, Tensor]:
    with zipfile.ZipFile(path) as archive:
        # The archive's one folder has the name of the file at the time it was saved.
        folder = archive.namelist()[0].partition("/")[0]
        root = _Numbers(archive.read(f"{folder}/data.pkl"), lambda name: archive.read(f"{folder}/{name}")).load()
    found: dict[str, Tensor] = {}
    waiting: list[tuple[str, Any]] = [("", root)]
    while waiting:
        prefix, module = waiting.pop()
        for name, value in vars(module).items():
            if isinstance(value, Tensor):
                found[f"{prefix}{name}"] = value
            elif isinstance(value, _Module):
                waiting.append((f"{prefix}{name}.", value))
    return found
