"""Load pipelines of diffusers part by part, so that a weight missing from the files is an error.

Also finds the size at which a loaded pipeline works, and what it does not read of a prompt.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from workers.image_models.diffusion.source import PipelineSource, load_diffusers, variant_of
from workers.protocols import LabSettings
from workers.weights import get_first_line, is_out_of_memory, loading


def load_pipeline(source: PipelineSource, settings: LabSettings) -> Any:
    """Return the pipeline on the device, in the precision of the settings, silent. Raises MissingPart if it cannot be
    used."""
    diffusers = load_diffusers()
    dtype: torch.dtype = getattr(torch, settings.precision)
    # Parts first: `from_pretrained` of a pipeline only warns of missing weights, and fills them at random.
    modules = {name: _module(source, name, dtype) for name in source.modules}
    try:
        with loading:
            found = diffusers.DiffusionPipeline.from_pretrained(
                str(source.folder), **modules, local_files_only=True, low_cpu_mem_usage=False
            )
    except Exception as error:  # a broken folder raises anything
        raise source.broken(get_first_line(error)) from error
    found.set_progress_bar_config(disable=True)
    return found.to(settings.device)


def _module(source: PipelineSource, name: str, dtype: torch.dtype) -> Any:
    kind, folder = source.modules[name], source.folder / name
    try:
        diffusers = load_diffusers()
        more: dict[str, Any] = {"variant": variant_of(folder)}
        # Asked for it without accelerate, diffusers would warn and turn it off.
        if issubclass(kind, diffusers.ModelMixin):
            more["low_cpu_mem_usage"] = diffusers.utils.is_accelerate_available()
        more |= {"dtype": dtype, "use_safetensors": True, "local_files_only": True, "output_loading_info": True}
        with loading:
            module, report = kind.from_pretrained(str(folder), **more)
    except Exception as error:  # a broken checkpoint raises anything
        # Memory can be freed and tried again, so this must not be told as a broken file.
        if is_out_of_memory(error):
            raise
        raise source.broken(f"{name} does not load: {get_first_line(error)}") from error
    if lacking := sorted(report["missing_keys"]):
        raise source.broken(f"the file of {name} lacks {len(lacking)} of its weights, {lacking[0]} among them")
    return module.eval()


def working_size(pipeline: Any, size: tuple[int, int], wanted: int = 0) -> tuple[int, int]:
    """Return width and height in pixels, near the original's shape; multiples of what the pipeline can lay out.

    Their area is that of a square with the side `wanted` or, if that is 0, of the training images.
    """
    factor = int(getattr(pipeline, "vae_scale_factor", 8))
    unit = 2 * factor  # latents are often taken in patches of 2 x 2
    # The side of what the network was trained on, in latents; 0 if the pipeline does not say
    network = getattr(pipeline, "unet", None)
    latent = network.config.get("sample_size") if network else getattr(pipeline, "default_sample_size", 0)
    # Some configs give height and width.
    trained = max(latent if isinstance(latent, list | tuple) else [latent or 0])
    side = wanted or trained * factor or math.sqrt(size[0] * size[1])
    scale = side / math.sqrt(size[0] * size[1])
    # Bounded, or a very long picture would exceed what the network can lay out.
    width, height = (min(max(each * scale, side / 4), side * 2) for each in size)
    return max(1, round(width / unit)) * unit, max(1, round(height / unit)) * unit


def find_unread(pipeline: Any, words: str, calls: Mapping[str, int | float]) -> str:
    """Return a remark that quotes the cut end of the words; "" if all of them are read.

    Of several text encoders the one that reads furthest counts.
    """
    remarks = []
    for name, part in pipeline.components.items():
        if name.startswith("tokenizer") and part is not None:
            limit = min(part.model_max_length, int(calls.get("max_sequence_length", part.model_max_length)))
            tokens = part(words, verbose=False).input_ids
            # Encoders read at different lengths; one that reads all is enough.
            if len(tokens) <= limit:
                return ""
            # The last token marks the end, and takes one of the limit.
            unread = part.decode(tokens[limit - 1 : -1]).strip()
            remarks.append(f"only the first {limit} tokens were read; cut: {unread!r}")
    # The shortest remark quotes the shortest cut.
    return min(remarks, key=len, default="")
