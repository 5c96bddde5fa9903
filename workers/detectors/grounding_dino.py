"""Grounding DINO and SAM as a detector of any concept that words can name (paper, appendix C2).

Grounding DINO finds boxes for a concept, SAM the mask of what is in each box. Through transformers, with the image
processors that need no torchvision. Loaded through the registry, as "grounding-dino" or "grounding-dino:DINO,SAM".

Each image costs one pass through the vision backbone of Grounding DINO for 8 concepts, one through the rest for each
concept, and one through SAM if anything is found. A layer of the paper's neurons asks for 45, 41 or 30 concepts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL.Image import Image, Resampling

from workers import hub
from workers.errors import MissingPart, UnknownName
from workers.model_cache import map_in_batches
from workers.protocols import Detection, LabSettings
from workers.weights import load_network, load_part

DEFAULT = "IDEA-Research/grounding-dino-base,facebook/sam-vit-base"
PAPER = "paper"
"""Names the two networks of MAIA's published code, used as there."""
PAPERS_TWO = "IDEA-Research/grounding-dino-tiny,facebook/sam-vit-huge"
"""Grounding DINO with a Swin-T, and SAM with a ViT-H."""

_DINO_FILES: hub.Groups = (*hub.CHECKPOINT, ("tokenizer.json", "vocab.txt"), ("tokenizer_config.json",))
_MAX_PHRASE_CHARS = 100
"""Maximum characters of a concept."""
_PROMPTS = 8
"""Prompts that pass through Grounding DINO together."""
_BOXES = 64
"""Boxes that pass through SAM together."""

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class DetectionSettings:
    """How boxes are found and kept.

    A box is kept if a word of the prompt matches it better than `box`, and one of the concept itself, not the full stop
    behind it, better than `text`.
    """

    box: float
    text: float
    side: int = 0
    """Images are squeezed into squares of so many pixels, and looked at in that size; 0 means as the processor says."""


OURS = DetectionSettings(0.3, 0.25)
"""Thresholds of the paper's text."""
PUBLISHED = DetectionSettings(0.25, 0.0, 224)
"""Settings of the published code. Its threshold for words, 0.3, is left out: it only names a kept box."""


def load(settings: LabSettings, names: str = DEFAULT) -> GroundingDino:
    """Return the detector of two hub ids or folders, separated by a comma. Raises UnknownName, MissingPart."""
    dino, sam = _two(names)
    manner = PUBLISHED if names == PAPER else OURS
    return GroundingDino(hub.folder(dino, _DINO_FILES), hub.folder(sam, hub.CHECKPOINT), settings, names, manner)


def missing(settings: LabSettings, names: str = DEFAULT) -> str:
    """Return what is missing of the two, and the commands that install it; "" if nothing. Raises UnknownName."""
    del settings
    dino, sam = _two(names)
    return " ".join(filter(None, [hub.missing(dino, _DINO_FILES), hub.missing(sam, hub.CHECKPOINT)]))


def _two(names: str) -> tuple[str, str]:
    dino, comma, sam = (part.strip() for part in (PAPERS_TWO if names == PAPER else names).partition(","))
    if not (dino and comma and sam) or "," in sam:
        raise UnknownName(f"grounding-dino:{names} does not name two models. Write it like grounding-dino:{DEFAULT}.")
    return dino, sam


@dataclass(frozen=True)
class _Box:
    confidence: float
    corners: tuple[float, float, float, float]
    """Left, top, right, bottom; 0 to 1 of the image."""


class GroundingDino:
    """See `protocols.Detector`. Each of the two networks has its own slot in the cache, and so its own lock."""

    def __init__(
        self, dino: Path, sam: Path, settings: LabSettings, names: str = DEFAULT, manner: DetectionSettings = OURS
    ) -> None:
        named = names if names == PAPER else f"{dino.name},{sam.name}"
        self.name = "grounding-dino" if names == DEFAULT else f"grounding-dino:{named}"
        self.revision = f"{hub.fingerprint(dino, _DINO_FILES)}-{hub.fingerprint(sam, hub.CHECKPOINT)}"
        # Results of other thresholds must not share a cache with ours
        if manner != OURS:
            self.revision += f"-{manner.box:g}-{manner.text:g}-{manner.side}"
        self._manner = manner
        self._dino = settings.model_cache.slot(f"Grounding DINO {dino.name}", lambda: _Dino.load(dino, settings))
        self._sam = settings.model_cache.slot(f"SAM {sam.name}", lambda: _Sam.load(sam, settings))

    def detect(self, images: Sequence[Image], concepts: Sequence[str]) -> list[dict[str, list[Detection]]]:
        """See `protocols.Detector.detect`; masks are at the resolution of SAM's, a quarter of its input."""
        for concept in concepts:
            # A full stop ends a concept in Grounding DINO's prompts
            if not concept.strip(" .") or "." in concept or len(concept) > _MAX_PHRASE_CHARS:
                raise UnknownName(f"{concept!r} is not a concept. Name it in a few words, without full stops.")
        # Squeezed as in the published settings
        if side := self._manner.side:
            images = [image.convert("RGB").resize((side, side), Resampling.LANCZOS) for image in images]
        # Each network is held only while it works
        with self._dino as dino:
            boxes = [dict(zip(concepts, dino.boxes(image, concepts, self._manner), strict=True)) for image in images]
        with self._sam as sam:
            return [sam.detections(image, found) for image, found in zip(images, boxes, strict=True)]


@dataclass(frozen=True)
class _Dino:
    """Grounding DINO, loaded."""

    network: Any
    processor: Any
    tokenizer: Any

    @classmethod
    def load(cls, folder: Path, settings: LabSettings) -> _Dino:
        """Raises MissingPart."""
        from transformers import BertTokenizer, GroundingDinoForObjectDetection, GroundingDinoImageProcessorPil

        network = _network(GroundingDinoForObjectDetection, folder, settings)
        # The backbone is the costly part, and the same for all prompts
        network.model.backbone = _SharedImageBackbone(network.model.backbone)
        return cls(network, load_part(GroundingDinoImageProcessorPil, folder), load_part(BertTokenizer, folder))

    @torch.no_grad()
    def boxes(self, image: Image, concepts: Sequence[str], manner: DetectionSettings = OURS) -> list[list[_Box]]:
        """Return the boxes of each concept in one image."""
        # One image at a time: padding it to the size of another would change what is found
        as_it_is = {"do_resize": False} if manner.side else {}
        pixels = self.processor(images=[image], return_tensors="pt", **as_it_is).to(self.network.device)
        # A prompt for each concept, so that what is found of it depends on no other
        prompts = [f"{each.lower()}." for each in concepts]
        return map_in_batches(prompts, _PROMPTS, lambda some: self._boxes(pixels, some, manner))

    def _boxes(self, pixels: Any, prompts: Sequence[str], manner: DetectionSettings) -> list[list[_Box]]:
        words = self.tokenizer(list(prompts), padding=True, return_tensors="pt").to(self.network.device)
        found = self.network(
            # The same image for each prompt: `expand` copies nothing
            pixel_values=pixels["pixel_values"].to(self.network.dtype).expand(len(prompts), -1, -1, -1),
            pixel_mask=pixels["pixel_mask"].expand(len(prompts), -1, -1),
            **words,
        )
        match = found.logits.float().sigmoid()  # (prompts, boxes, words of the longest prompt allowed)
        if match.isnan().any():
            raise MissingPart(f"{self.network.name_or_path} gives no numbers (NaN). Try MAIA_PRECISION=float32.")
        # The full stop behind a concept may match a box that the concept itself does not
        delimiters = self.tokenizer.convert_tokens_to_ids(["[CLS]", "[SEP]", "[PAD]", "."])
        named = ~torch.isin(words["input_ids"], torch.tensor(delimiters, device=self.network.device))
        # The widths differ: logits have places for the longest prompt allowed
        of_concept = (match[:, :, : named.shape[1]] * named[:, None]).amax(2)  # (prompts, boxes)
        confidence = match.amax(2)
        kept = (confidence > manner.box) & (of_concept > manner.text)
        boxes = found.pred_boxes.float()
        centre, size = boxes.split(2, dim=-1)
        # Boxes come as centre and size, and may reach beyond the image
        corners = torch.cat([centre - size / 2, centre + size / 2], dim=-1).clamp(0, 1)
        chosen = [(confidence[row][kept[row]].tolist(), corners[row][kept[row]].tolist()) for row in range(len(kept))]
        return [[_Box(*pair) for pair in zip(values, map(tuple, places), strict=True)] for values, places in chosen]


class _SharedImageBackbone(torch.nn.Module):
    """Grounding DINO's vision backbone for a batch that is one image with many prompts: runs once for all."""

    def __init__(self, backbone: torch.nn.Module) -> None:
        super().__init__()
        self.backbone = backbone
        self.position_embedding = backbone.position_embedding

    def forward(self, pixels: torch.Tensor, mask: torch.Tensor) -> tuple[list[Any], list[torch.Tensor]]:
        """Return feature maps with their masks, and their position embeddings; rows of both are the same."""
        # One row is enough: all are the same image
        features, positions = self.backbone(pixels[:1], mask[:1])
        rows = len(pixels)
        return (
            [(map_.expand(rows, -1, -1, -1), valid.expand(rows, -1, -1)) for map_, valid in features],
            [position.expand(rows, -1, -1, -1) for position in positions],
        )


@dataclass(frozen=True)
class _Sam:
    """SAM, loaded."""

    network: Any
    processor: Any

    @classmethod
    def load(cls, folder: Path, settings: LabSettings) -> _Sam:
        """Raises MissingPart."""
        from transformers import SamImageProcessorPil, SamModel

        return cls(_network(SamModel, folder, settings), load_part(SamImageProcessorPil, folder))

    @torch.no_grad()
    def detections(self, image: Image, found: dict[str, list[_Box]]) -> dict[str, list[Detection]]:
        """Return the boxes of one image with the masks of what is in them."""
        # All boxes of the image together, in the order of the concepts
        boxes = [box for each in found.values() for box in each]
        masks = iter(self._masks(image, boxes) if boxes else [])
        return {concept: [Detection(box.confidence, next(masks)) for box in each] for concept, each in found.items()}

    def _masks(self, image: Image, boxes: Sequence[_Box]) -> list[Bools]:
        pixels = self.processor(images=[image], return_tensors="pt")
        values = pixels["pixel_values"].to(self.network.device, self.network.dtype)
        # Once for the image, however many boxes it has
        embedding = self.network.get_image_embeddings(values)
        height, width = (int(side) for side in pixels["reshaped_input_sizes"][0])  # without the padding

        def work(some: Sequence[_Box]) -> list[Bools]:
            # The processor scales the image, so boxes are scaled too
            corners = torch.tensor([box.corners for box in some]) * torch.tensor([width, height] * 2)
            masks = self.network(
                image_embeddings=embedding, input_boxes=corners[None].to(values.device), multimask_output=False
            )
            low = (masks.pred_masks[0, :, 0] > 0).numpy(force=True)  # (boxes, height, width) of the padded square
            # SAM's maps are smaller than its input
            side = low.shape[1] / values.shape[2]
            # The padding is on the right and below
            low = low[:, : max(1, round(height * side)), : max(1, round(width * side))]
            return [_fill_mask(mask, box) for mask, box in zip(low, some, strict=True)]

        return map_in_batches(boxes, _BOXES, work)


def _fill_mask(mask: Bools, box: _Box) -> Bools:
    """Return the mask; the whole box if SAM found nothing in it."""
    if mask.any():
        return mask
    rows, columns = mask.shape
    left, top, right, bottom = (int(edge * side) for edge, side in zip(box.corners, (columns, rows) * 2, strict=True))
    filled = np.zeros_like(mask)
    # A box at the edge, or thinner than a cell, still fills one
    top, left = min(top, rows - 1), min(left, columns - 1)
    filled[top : max(bottom, top + 1), left : max(right, left + 1)] = True
    return filled


def _network(kind: Any, folder: Path, settings: LabSettings) -> Any:
    """Return a network ready to look. Raises MissingPart if the checkpoint is of another kind or lacks weights."""
    # Any other type would be the default of all threads while it loads
    network = load_network(kind, folder, dtype=torch.float32)
    return network.eval().requires_grad_(False).to(settings.device, getattr(torch, settings.precision))
