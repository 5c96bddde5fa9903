"""A checkpoint of an image model as `save_pretrained` writes it: its files, configuration and network.

transformers is imported on first use, because importing it takes seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from workers import hub
from workers.errors import MachineryError, MissingPart, UnknownName
from workers.vision_models.huggingface.file_checks import find_mismatch
from workers.weights import loading


class Checkpoint:
    """A checkpoint by folder or hub id. Nothing is read before it is needed."""

    def __init__(self, name: str) -> None:
        local = Path(name).expanduser()
        self.name = str(local.resolve()) if local.is_dir() else name

    @cached_property
    def folder(self) -> Path:
        """Return the folder of its files; fetched from the hub if need be. Raises UnknownName, MissingPart."""
        # Before the hub is asked: a mismatch is told by small files, and the weights may be gigabytes.
        if lack := find_mismatch(self.name):
            raise MissingPart(lack)
        return hub.folder(self.name, hub.CHECKPOINT)

    @cached_property
    def revision(self) -> str:
        """Fingerprint of its files."""
        return hub.fingerprint(self.folder, hub.CHECKPOINT)

    @cached_property
    def config(self) -> Any:
        """Read the configuration of the image side; the whole one if a head of classes needs it. Raises MissingPart."""
        from transformers import AutoConfig

        folder = self.folder
        try:
            # No remote code: a checkpoint comes from the hub, and its Python would run in the worker.
            config = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
        except Exception as error:
            raise MissingPart(
                f"transformers cannot read the config.json of {self.name}: {_shorten_error(error)}. "
                "Save it with `save_pretrained`, or choose another model."
            ) from error
        found = config if _head(config) else getattr(config, "vision_config", config)
        if hasattr(found, "mask_ratio"):
            found.mask_ratio = 0.0  # training hides most of an image; a unit is studied on all of it
        return found

    @cached_property
    def network_class(self) -> Any:
        """Return the class with a head of classes if the checkpoint has one, else the bare network."""
        import transformers
        from transformers.models.auto import modeling_auto

        kind = self.config.model_type
        if architecture := _head(self.config):
            return getattr(transformers, architecture)
        found = modeling_auto.MODEL_MAPPING.get(type(self.config), None)
        if getattr(found, "main_input_name", "") != "pixel_values":
            raise UnknownName(f"{self.name} is no image model: its config says {kind!r}. Choose one that takes images.")
        return found

    def empty(self) -> Any:
        """Build the network without weights, on the device "meta": it computes only shapes, at once."""
        # Shapes tell which layers there are, without reading gigabytes of weights.
        with torch.device("meta"):
            return self.network_class(self.config).eval()

    def load(self, device: str, precision: torch.dtype) -> Any:
        """Load the network with its weights, in evaluation mode.

        Raises MissingPart if they are damaged or incomplete, MachineryError if they changed since `revision` was read.
        """
        # Measurements are stored under the revision, so they must not come from other weights.
        if hub.fingerprint(self.folder, hub.CHECKPOINT) != self.revision:
            raise MachineryError(f"The weights of {self.name} were replaced meanwhile. Restart the worker to use them.")
        network, lacking = self._read()
        if lacking:
            raise MissingPart(
                f"The weights of {self.name} lack {len(lacking)} of those that its config asks for "
                f"({', '.join(lacking[:3])}). Fetch or save the whole checkpoint again."
            )
        return network.to(device, precision).eval().requires_grad_(False)

    def _read(self) -> tuple[Any, list[str]]:
        """Return the network, and the names of required weights that are missing from the files."""
        try:
            with loading, silence_transformers():
                network, report = self.network_class.from_pretrained(
                    self.folder,
                    config=self.config,
                    dtype=torch.float32,  # any other would for a moment be the default of all threads
                    local_files_only=True,
                    # Pickled weights could otherwise run code.
                    weights_only=True,
                    output_loading_info=True,
                )
        except Exception as error:
            raise MissingPart(
                f"The weights of {self.name} cannot be loaded: {_shorten_error(error)}. "
                "Fetch or save the checkpoint again."
            ) from error
        # These have no part in the layers of a bare network: checkpoints often lack a pooler
        bare = "ForImageClassification" not in type(network).__name__
        idle = {key for key in report["missing_keys"] if bare and ("pooler." in key or key.endswith("mask_token"))}
        return network, sorted(set(report["missing_keys"]) - idle)


@contextmanager
def silence_transformers() -> Iterator[None]:
    """Silence transformers: no progress and no reports; errors are raised."""
    from transformers.utils import logging

    log: Any = logging
    before = log.get_verbosity()
    log.disable_progress_bar()
    log.set_verbosity_error()
    try:
        yield
    finally:
        log.set_verbosity(before)


def _head(config: Any) -> str:
    """Return the class with a classification head that a configuration names; "" if it names none."""
    from transformers.models.auto import modeling_auto

    architecture = str((config.architectures or [""])[0])
    known = modeling_auto.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES.get(config.model_type)
    return architecture if architecture in (known if isinstance(known, tuple) else (known,)) else ""


def _shorten_error(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__).rstrip(".")[:300]
