"""Check a checkpoint's files without loading them: model family, completeness, damage."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

from workers import git_lfs, hub

MAX_HEADER = 100_000_000
"""Maximum size in bytes of a safetensors header, as the format allows."""


def missing(name: str) -> str:
    """Say what keeps a checkpoint, by folder or hub id, from being used offline, and the remedy; "" if nothing does."""
    lack = find_mismatch(name) or hub.missing(name, hub.CHECKPOINT)
    place = None if lack else hub.find_folder(name, "config.json")
    for path in hub.files(place, hub.CHECKPOINT) if place else ():
        if fault := _fault(path):
            return f"{path} {fault}. Fetch or save the checkpoint again, or choose another."
    return lack


def find_mismatch(name: str) -> str:
    """Say why a checkpoint is no image model of transformers, as far as its files tell; "" if it may be one."""
    local = Path(name).expanduser()
    if local.is_dir() and not (local / "config.json").is_file() and (states := sorted(local.glob("*.pth"))):
        return (
            f"The folder {local.resolve()} holds no checkpoint of transformers but {states[0].name}. If that is a "
            f"ResNet of torchvision, its name here is torchvision:{states[0].resolve()}"
        )
    place = hub.find_folder(name, "config.json")
    config = _json(place / "config.json") if place else None
    if place is None or not isinstance(config, dict):
        return ""
    if "pretrained_cfg" in config or ("architecture" in config and "model_type" not in config):
        return (
            f"{name} is a checkpoint of timm, which is not supported. Take the model as transformers has it; of timm's "
            f"copies of torchvision's ResNets (tv_in1k) say torchvision:{name}"
        )
    prepared = any((place / file).is_file() for file in hub.CHECKPOINT[1])
    kind = config.get("model_type")
    if prepared or not kind:
        return ""
    # Whether transformers knows a way to prepare images for this type of model
    from transformers.models.auto import image_processing_auto

    known: Any = image_processing_auto
    if str(kind) not in known.IMAGE_PROCESSOR_MAPPING_NAMES:
        return f"{name} is no image model: its config says {kind!r}. Choose one that takes images."
    return ""


def _fault(path: Path) -> str:
    """Say how a file is damaged; "" if it is not, as far as its header tells."""
    with path.open("rb") as file:
        # A clone without Git LFS leaves small text files in place of the weights.
        if git_lfs.is_pointer(file.read(64)):
            return f"is {git_lfs.EXPLAINED}"
    if path.suffix == ".json":
        return "" if isinstance(_json(path), dict) else "is damaged: it holds no JSON object"
    if path.suffix == ".safetensors":
        # safetensors: eight bytes with the length of the header, the header in JSON, then the numbers it speaks of
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 0 < length <= min(size - 8, MAX_HEADER):
                return "is damaged: it is no safetensors file, or cut short"
            try:
                header = json.loads(file.read(length))
                ends = [int(each["data_offsets"][1]) for name, each in header.items() if name != "__metadata__"]
            except (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError, RecursionError):
                return "is damaged: its header makes no sense"
        wanted = 8 + length + max(ends, default=0)
        return "" if size == wanted else f"is damaged: it has {size:,} bytes, where its header speaks of {wanted:,}"
    return _fault_of_pickle(path) if path.suffix == ".bin" else ""


def _fault_of_pickle(path: Path) -> str:
    """Say how a PyTorch file is damaged: an archive, or in old files a bare pickle."""
    import torch

    if not zipfile.is_zipfile(path):
        with path.open("rb") as file:
            return "" if file.read(1) == b"\x80" else "is damaged: it is no file of PyTorch, or cut short"
    try:
        # An unknown class in a pickle means that loading it would run code.
        asked = torch.serialization.get_unsafe_globals_in_checkpoint(path)
    except Exception as error:  # noqa: BLE001 - whatever a damaged file raises
        return f"is damaged: {str(error).partition(chr(10))[0][:200]}"
    return f"asks for {asked[0]}, which weights do not need: it would run code, so it is not loaded" if asked else ""


def _json(path: Path) -> Any:
    """Return the content of a file; None if it is not JSON."""
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
