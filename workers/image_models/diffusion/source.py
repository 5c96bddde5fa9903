"""Find a pipeline of diffusers by hub id or folder, and check that it is complete. Loads no weights, fetches
nothing.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from workers.errors import MissingPart
from workers.hub import file_fingerprint

Use = Literal["draw", "edit"]

SETTING: Mapping[Use, str] = {"draw": "MAIA_GENERATOR", "edit": "MAIA_EDITOR"}
WANTED: Mapping[Use, str] = {"draw": "text-to-image pipeline", "edit": "pipeline that edits by instruction"}

_OTHER_TRADES = {
    *("mask_image", "strength", "control_image", "controlnet_conditioning_scale", "noise_level"),
    *("num_frames", "audio_length_in_s", "audio_end_in_s"),
}
"""Parameters of pipelines that fill in, vary, follow an outline, enlarge, film or sound, but do not draw or edit."""

HALF = "fp16"
"""Name that diffusers gives the files of weights in half precision."""

_AN_IMAGE_A_PROMPT = {
    "StableDiffusionInstructPix2PixPipeline",
    "StableDiffusionXLInstructPix2PixPipeline",
    "FluxKontextPipeline",
}
"""Editing pipelines that pair the images of a batch with its prompts; others take them all as models for each edit."""


@dataclass(frozen=True)
class PipelineSource:
    """The place and the components of a pipeline."""

    name: str
    """As it was asked for: hub id or folder."""
    folder: Path
    kind: type[Any]
    """Class of the pipeline."""
    modules: Mapping[str, type[Any]]
    """Component -> class, of those with weights."""
    components: tuple[str, ...]
    use: Use

    @property
    def defaults(self) -> dict[str, int | float]:
        """The numbers with which its authors call it: steps, guidance, lengths."""
        known = inspect.signature(self.kind.__call__).parameters.values()
        # bool is an int to Python: flags count as numbers here, which only makes keys stricter.
        return {each.name: each.default for each in known if isinstance(each.default, int | float)}

    @property
    def batches(self) -> bool:
        """True if several images can be made in one call, each from its own words (and original)."""
        return self.use == "draw" or self.kind.__name__ in _AN_IMAGE_A_PROMPT

    def takes(self, parameter: str) -> bool:
        """True if its call has such a parameter."""
        return parameter in inspect.signature(self.kind.__call__).parameters

    def revision(self) -> str:
        """Return the commit of the hub's snapshot, or a hash of all loaded files of the folder, which takes a while."""
        # The hub's cache names the folder by the commit, so nothing needs hashing.
        if self.folder.parent.name == "snapshots" and self.folder.parent.parent.name.startswith("models--"):
            return self.folder.name
        files = [self.folder / "model_index.json"]
        files += [
            file for name in self.components for file in sorted((self.folder / name).rglob("*")) if file.is_file()
        ]
        digest = hashlib.sha256()
        for path in files:
            # Relative paths: the same files in another folder are the same revision.
            digest.update(f"{path.relative_to(self.folder)} {file_fingerprint(path)}\n".encode())
        return digest.hexdigest()

    def broken(self, reason: str) -> MissingPart:
        """Return the error to raise when a part of it cannot be used."""
        return MissingPart(
            f"The pipeline {self.name!r} cannot be used: {reason.rstrip('.')}. {_suggest_remedy(self.name, self.use)}"
        )


def find_pipeline(name: str, use: Use) -> PipelineSource:
    """Return the pipeline. Raises MissingPart if it is missing, incomplete, or for another purpose."""
    folder = _folder(name, use)
    # What model_index.json says: the class of the pipeline, and library and class of each component
    path = folder / "model_index.json"
    try:
        index = json.loads(path.read_text())
    except FileNotFoundError:
        raise MissingPart(
            f"{name!r} is no pipeline of diffusers: {folder} holds no model_index.json. {_suggest_remedy(name, use)}"
        ) from None
    except (OSError, ValueError) as error:
        raise MissingPart(f"{path} cannot be read: {error}. {_suggest_remedy(name, use)}") from error
    if not isinstance(index, dict):
        raise MissingPart(f"{path} holds no JSON object. {_suggest_remedy(name, use)}")
    kind = _kind(name, index, use)
    # [null, null] marks an optional component that was left out, such as a safety checker.
    listed = {part: value for part, value in index.items() if isinstance(value, list) and value[:1] != [None]}
    classes = {part: _class_of(name, part, value, use) for part, value in listed.items()}
    from torch import nn

    modules = {part: each for part, each in classes.items() if issubclass(each, nn.Module)}  # those with weights
    source = PipelineSource(name, folder, kind, modules, tuple(sorted(classes)), use)
    for part in source.components:
        if fault := _fault(folder / part, source.modules.get(part)):
            raise source.broken(fault)
    return source


def explain_missing(name: str, use: Use) -> str:
    """Say what keeps a pipeline from loading, and the command that gets it; "" if nothing does."""
    try:
        find_pipeline(name, use)
    except MissingPart as error:
        return str(error)
    return ""


def _suggest_remedy(name: str, use: Use) -> str:
    """Say what to do about a pipeline that is missing or incomplete."""
    other = f"Or name another {WANTED[use]}, by hub id or folder, in {SETTING[use]}."
    if Path(name).expanduser().exists():
        return f"Write the folder again with `save_pretrained`. {other}"
    return (
        "If its authors ask for consent, first `hf auth login`. "
        f'Get it with: hf download {name} --include "*.json" --include "*.txt" --include "*/*.model" '
        f'--include "*/*.safetensors" --exclude "*.fp16*" --exclude "*.non_ema*" '
        f"{other}"
    )


def load_diffusers() -> Any:
    """Return diffusers, with its own progress bars and warnings off."""
    import diffusers
    import transformers

    for each in (transformers.utils.logging, diffusers.utils.logging):
        # Its own bars would fill the worker's log.
        each.set_verbosity_error()
        each.disable_progress_bar()
    return diffusers


def _folder(name: str, use: Use) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    if (folder := Path(name).expanduser()).is_dir():
        return folder.resolve()
    try:
        return Path(snapshot_download(name, local_files_only=True))
    except HFValidationError:
        raise MissingPart(
            f"There is no folder {name!r}. Name a {WANTED[use]}, by hub id or folder, in {SETTING[use]}."
        ) from None
    except LocalEntryNotFoundError:
        raise MissingPart(
            f"The pipeline {name!r} is not on this machine: it is neither a folder nor in the cache of Hugging Face. "
            f"{_suggest_remedy(name, use)}"
        ) from None


def _kind(name: str, index: Mapping[str, Any], use: Use) -> type[Any]:
    diffusers = load_diffusers()
    written = index.get("_class_name")
    kind = getattr(diffusers, written, None) if isinstance(written, str) else None
    if not (isinstance(kind, type) and issubclass(kind, diffusers.DiffusionPipeline)):
        raise MissingPart(
            f"{name!r} is a {written!r}, which diffusers {diffusers.__version__} does not know; code that comes with a "
            f"pipeline is never run. Name a {WANTED[use]} in {SETTING[use]}."
        )
    if not _can(kind, use):
        raise MissingPart(f"{name!r} is a {kind.__name__}, not a {WANTED[use]}. Name one in {SETTING[use]}.")
    return kind


def _can(kind: type[Any], use: Use) -> bool:
    taken = set(inspect.signature(kind.__call__).parameters)
    # A prompt alone is not enough: inpainting and video pipelines take one as well.
    if "prompt" not in taken or taken & _OTHER_TRADES:
        return False
    if use == "edit":
        return "image" in taken
    if "image" not in taken:
        return True
    from diffusers.pipelines.auto_pipeline import AUTO_TEXT2IMAGE_PIPELINES_MAPPING

    return kind in AUTO_TEXT2IMAGE_PIPELINES_MAPPING.values()  # some do both, such as FLUX.2


def _class_of(name: str, part: str, value: list[Any], use: Use) -> type[Any]:
    """Return the class of a component. Only the two libraries are asked, since anything else would be foreign code."""
    import transformers

    diffusers = load_diffusers()
    place, written = value if len(value) == 2 else ("", "")
    homes = {"diffusers": diffusers, "transformers": transformers}
    home = homes.get(place) or getattr(diffusers.pipelines, str(place), None)
    found = getattr(home, str(written), None)
    if not isinstance(found, type):
        raise MissingPart(
            f"The pipeline {name!r} cannot be used: its {part} is {value!r}, which is part of neither diffusers nor "
            f"transformers; code that comes with a pipeline is never run. Name another in {SETTING[use]}."
        )
    return found


def variant_of(folder: Path) -> str | None:
    """Return "fp16" if the weights of a component exist in that form alone, as some publish them; else None."""
    names = [path.name for path in folder.glob("*.safetensors*")]
    # All of them: where both forms exist, the full one is loaded.
    return HALF if names and all(f".{HALF}" in name for name in names) else None


def _fault(folder: Path, module: type[Any] | None) -> str:
    """Say what is wrong with the files of a component; "" if nothing is. Weights are read from safetensors only."""
    if not folder.is_dir() or not any(folder.iterdir()):
        return f"{folder.name}/ is missing"
    if module is None:
        return ""
    of_diffusers = issubclass(module, load_diffusers().ModelMixin)
    half = f".{HALF}" if variant_of(folder) else ""
    wanted = {f"{'diffusion_pytorch_model' if of_diffusers else 'model'}{half}.safetensors"}
    # Large weights are split into files that an index lists.
    for index in folder.glob(f"*.safetensors.index{half}.json"):
        try:
            wanted = set(json.loads(index.read_text())["weight_map"].values())
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return f"{folder.name}/{index.name} cannot be read"
    gone = [file for file in sorted(wanted) if not (folder / file).is_file()]
    if gone and any(folder.glob("*.bin")):
        return f"{folder.name}/ has its weights as .bin alone, which may run code; {gone[0]} is wanted"
    return f"{folder.name}/{gone[0]} is missing" if gone else ""
