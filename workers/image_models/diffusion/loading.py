"""Loads a pipeline, part by part, so that a weight that is not in the files is an error and never a random number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from workers.image_models.diffusion.source import PipelineSource, load_diffusers, variant_of
from workers.protocols import LabSettings
from workers.weights import first_line, out_of_memory


def load_pipeline(source: PipelineSource, settings: LabSettings) -> Any:
    """The pipeline on the device, in the precision of the settings, silent. Raises MissingPart if it cannot be used."""
    diffusers = load_diffusers()
    dtype: torch.dtype = getattr(torch, settings.precision)
    modules = {name: _module(source, name, dtype) for name in source.modules}
    try:
        found = diffusers.DiffusionPipeline.from_pretrained(
            str(source.folder), **modules, local_files_only=True, low_cpu_mem_usage=False
        )
    except Exception as error:  # a broken folder raises anything
        raise source.broken(first_line(error)) from error
    found.set_progress_bar_config(disable=True)
    return found.to(settings.device)


def _module(source: PipelineSource, name: str, dtype: torch.dtype) -> Any:
    kind, folder = source.modules[name], source.folder / name
    try:
        module, report = _read(kind, folder, dtype)
    except Exception as error:  # a broken checkpoint raises anything
        if out_of_memory(error):
            raise
        raise source.broken(f"{name} does not load: {first_line(error)}") from error
    if lacking := sorted(report["missing_keys"]):
        raise source.broken(f"the file of {name} lacks {len(lacking)} of its weights, {lacking[0]} among them")
    return module.eval()


def _read(kind: type[Any], folder: Path, dtype: torch.dtype) -> tuple[Any, dict[str, Any]]:
    diffusers = load_diffusers()
    more: dict[str, Any] = {"variant": variant_of(folder)}
    if issubclass(kind, diffusers.ModelMixin):
        more["low_cpu_mem_usage"] = diffusers.utils.is_accelerate_available()
    return kind.from_pretrained(
        str(folder), dtype=dtype, use_safetensors=True, local_files_only=True, output_loading_info=True, **more
    )
