"""CLIP or SigLIP as a judge of presence: how well a label fits an image, as a probability.

SigLIP was trained to say of one text whether it fits, so its sigmoid is the answer. CLIP only ranks texts, so a
label competes in a softmax with texts that fit any image, `NEUTRAL`. If alternatives are joined by OR, the likeliest
counts. The network makes errors: see `judge_error` of a check. Loaded through the registry as "clip:" with a hub id
or folder. transformers is imported on first use.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from PIL.Image import Image
from torch import Tensor
from torch.nn.functional import normalize

from workers import hub
from workers.errors import RequestError, UnknownName
from workers.lab.imaging import image_key, mask_image
from workers.model_cache import map_in_batches
from workers.protocols import LabSettings, Picture, Progress, no_progress
from workers.record.negations import find_negations
from workers.weights import check_finite, load_network, load_part

TEMPLATE = "a photo of {}."
NEUTRAL = ("a photo.", "a photo of something.", "an image of a scene.")
"""The texts that CLIP compares a label with."""

_FILES: hub.Groups = (*hub.CHECKPOINT, ("tokenizer.json",), ("tokenizer_config.json",))
_KINDS = {
    "clip": ("CLIPModel", "CLIPImageProcessorPil"),
    "siglip": ("SiglipModel", "SiglipImageProcessorPil"),
}
"""Model type in the config -> classes of transformers. These image processors need no torchvision."""
_KEPT = 4096
"""Number of cached image embeddings, because floors use the same images again: at most 20 MB."""


def load(settings: LabSettings, name: str) -> ClipJudge:
    """Return the judge of a hub id or folder. Raises UnknownName, MissingPart."""
    return ClipJudge(hub.folder(name, _FILES), settings, name)


def missing(settings: LabSettings, name: str) -> str:
    """Return what is missing and the command that downloads it; "" if it is complete."""
    del settings
    return hub.missing(name, _FILES)


class ClipJudge:
    """See `protocols.PresenceJudge`. The network is in the cache of models, which provides its lock."""

    kind: Literal["embedding"] = "embedding"

    def __init__(self, folder: Path, settings: LabSettings, name: str) -> None:
        self.name = f"clip:{name}"
        self.revision = hub.fingerprint(folder, _FILES)
        self._batch = settings.batch_size
        self._kept: OrderedDict[str, Tensor] = OrderedDict()
        self._network = settings.model_cache.slot(f"judge {name}", lambda: _Towers.load(folder, settings))

    def read(self, label: str) -> None:
        """Accept any label as written."""

    def judge(self, label: str, pictures: Sequence[Picture], progress: Progress = no_progress) -> list[float | None]:
        """See `protocols.PresenceJudge.judge`; raises Cancelled between batches."""
        texts = [TEMPLATE.format(each) for each in _cut_alternatives(label)]
        # The lock is held for each step, so that other threads get between
        with self._network as network:
            # CLIP needs rivals, SigLIP none
            words = network.embed_texts(texts if network.is_sigmoid else [*texts, *NEUTRAL])
        answers: list[float | None] = []
        for start in range(0, len(pictures), self._batch):
            progress("Judging what images show", start, len(pictures))
            images = [each.image for each in pictures[start : start + self._batch]]
            with self._network as network:
                answers += network.weigh(self._embed(network, images), words, len(texts)).tolist()
        return answers

    def judge_parts(
        self,
        label: str,
        pictures: Sequence[Picture],
        parts: Sequence[NDArray[np.bool_]],
        progress: Progress = no_progress,
    ) -> list[float | None]:
        """See `protocols.PartJudge`. Each image is masked like an exemplar, because the network cannot be told where
        to look."""
        marked = [
            # 0.5 parts the mask's 0 from its 1
            Picture(mask_image(each.image, part.astype(np.float32), 0.5))
            for each, part in zip(pictures, parts, strict=True)
        ]
        return self.judge(label, marked, progress)

    def _embed(self, network: _Towers, images: Sequence[Image]) -> Tensor:
        """Return embeddings of images, (images, width). The caller holds the network, so this runs in one thread at
        a time."""
        keys = [image_key(each) for each in images]
        new = {key: image for key, image in zip(keys, images, strict=True) if key not in self._kept}
        if new:
            # On the processor: a cache on the GPU would take memory from networks
            self._kept.update(zip(new, network.embed_images(list(new.values())).cpu(), strict=True))
        found = torch.stack([self._kept[key] for key in keys])
        # The most recently used last, so that the oldest are dropped
        for key in keys:
            self._kept.move_to_end(key)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return found


def _cut_alternatives(label: str) -> list[str]:
    """Return the alternatives of a label in lower case. Raises RequestError for a label without words or with a
    negation."""
    # Embeddings hardly tell "no dog" from "dog"
    if negations := find_negations(label):
        raise RequestError(
            f"The label {label!r} cannot be tested: the network that judges images does not understand "
            f"“{negations[0]}” and would look for the opposite. Say what images show instead."
        )
    found = [" ".join(each.lower().strip(" .").split()) for each in re.split(r"\s+OR\s+", label)]
    if not all(re.search(r"[^\W_]", each) for each in found):
        raise RequestError(f"The label {label!r} says nothing that can be looked for. Name what images show, in words.")
    return found


@dataclass(frozen=True)
class _Towers:
    """Both towers of a network, loaded."""

    network: Any
    processor: Any
    tokenizer: Any
    is_sigmoid: bool

    @classmethod
    def load(cls, folder: Path, settings: LabSettings) -> _Towers:
        """Load a checkpoint. Raises UnknownName for another kind of model, MissingPart for an incomplete one."""
        # Imported here: it takes seconds
        import transformers

        found = transformers.PreTrainedConfig.get_config_dict(folder, local_files_only=True)[0]
        kind = str(found.get("model_type"))
        if kind not in _KINDS:
            raise UnknownName(
                f"{folder} is no CLIP or SigLIP: its config says {kind!r}. Name one that reads images and words, such "
                "as clip:google/siglip-base-patch16-224."
            )
        network_class, processor_class = (getattr(transformers, each) for each in _KINDS[kind])
        # Loaded in float32, then converted: see `grounding_dino._network`
        network = load_network(network_class, folder, dtype=torch.float32, weights_only=True)
        processor = load_part(processor_class, folder)
        tokenizer = load_part(transformers.PreTrainedTokenizerFast, folder)
        network = network.to(settings.device, getattr(torch, settings.precision)).eval().requires_grad_(False)
        return cls(network, processor, tokenizer, kind == "siglip")

    @torch.no_grad()
    def embed_texts(self, texts: Sequence[str]) -> Tensor:
        """Return unit-length embeddings, (texts, width). Longer texts are truncated."""
        words = self.tokenizer(
            list(texts),
            padding="max_length" if self.is_sigmoid else True,
            max_length=self.network.config.text_config.max_position_embeddings,
            truncation=True,
            return_tensors="pt",
        ).to(self.network.device)
        # SigLIP was trained on padded texts without a mask
        mask = {} if self.is_sigmoid else {"attention_mask": words["attention_mask"]}
        found = self.network.text_model(input_ids=words["input_ids"], **mask).pooler_output
        return self._finish(found if self.is_sigmoid else self.network.text_projection(found))

    @torch.no_grad()
    def embed_images(self, images: Sequence[Image]) -> Tensor:
        """Return unit-length embeddings, (images, width)."""

        def work(some: Sequence[Image]) -> list[Tensor]:
            pixels = self.processor(images=[each.convert("RGB") for each in some], return_tensors="pt")["pixel_values"]
            found = self.network.vision_model(pixels.to(self.network.device, self.network.dtype)).pooler_output
            return list(self._finish(found if self.is_sigmoid else self.network.visual_projection(found)))

        return torch.stack(map_in_batches(list(images), len(images), work))

    def weigh(self, images: Tensor, words: Tensor, alternatives: int) -> Tensor:
        """Return the probability that each image shows the likeliest alternative, (images,). The first rows of
        `words` are the alternatives."""
        # Networks store the logarithm of the scale
        match = images @ words.T * self.network.logit_scale.float().exp().cpu()
        if self.is_sigmoid:
            return (match + self.network.logit_bias.float().cpu()).sigmoid().amax(1)
        # All neutral texts together are the rival
        rivals = match[:, alternatives:].logsumexp(1, keepdim=True)
        return (match[:, :alternatives] - rivals).sigmoid().amax(1)  # softmax of each alternative beside the neutral

    def _finish(self, found: Tensor) -> Tensor:
        # Half precision may overflow
        check_finite(found, "The embedding", self.network.name_or_path)
        return normalize(found.float(), dim=-1).cpu()
