"""Causal checks as a worker writes them down, and models whose output follows from one unit by a known rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from django.utils import timezone
from PIL import Image

from experiments.models import CausalCheck, Dataset, Layer, Unit
from workers.protocols import LayerInfo, Picture, Rewrite, check_rewritable
from workers.record.causal import CausalQuestion, CausalReport, ClassChange, ControlEffect, ImageEffect
from workers.record.decoding import encode
from workers.record.estimates import Estimate


class UnitsAsClasses:
    """A `RewritableModel` of 8 units on 2 x 2 places: the logit of class n is the mean of unit `reads[n]`.

    The pixels of an image are the activations: 8 wide, 4 high. Unit 6 never varies and unit 7 is dead.
    """

    name, revision = "units", "1"

    def __init__(self, reads: Sequence[int] = (3, 0), scale: str = "sigmoid") -> None:
        self.reads, self.scale = tuple(reads), scale

    def layers(self) -> Sequence[LayerInfo]:
        names = tuple(f"class {n}" for n in range(len(self.reads)))
        logits = LayerInfo("logits", "logits", "logit", len(names), names, self.scale)  # type: ignore[arg-type]
        return [LayerInfo("units", "units", "conv", 8), *([logits] if self.scale else [])]

    def maps(self, images: Sequence[Image.Image], layers: Sequence[str]) -> Mapping[str, torch.Tensor]:
        values = torch.tensor([list(image.tobytes()) for image in images], dtype=torch.float32).reshape(-1, 4, 8)
        return {layer: values.transpose(1, 2).reshape(-1, 8, 2, 2) / 16 for layer in layers}

    def outputs(
        self, images: Sequence[Image.Image], layer: str, rewrite: Rewrite | None = None, *, gradients: bool = False
    ) -> torch.Tensor:
        check_rewritable(self.name, layer, self.layers())
        maps = self.maps(images, [layer])[layer]
        return (rewrite(maps) if rewrite else maps).mean((2, 3))[:, list(self.reads)]


class RandomValues:
    """A `Dataset` of images for `UnitsAsClasses`."""

    name = revision = "random"

    def __init__(self, count: int) -> None:
        values = torch.randint(1, 200, (count, 4, 8), generator=torch.Generator().manual_seed(5))
        values[:, :, 6], values[:, :, 7] = 32, 0
        self.images = [Image.frombytes("L", (8, 4), bytes(each.flatten().tolist())) for each in values]

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> Picture:
        return Picture(self.images[index])


def make_report(**changes: Any) -> CausalReport:
    """One class falls, one does not change beyond chance."""
    falls = ClassChange(
        2, "cone", Estimate(-0.9, -1.1, -0.7, 300), Estimate(-0.09, -0.12, -0.07, 300), -0.01, 1e-9, "falls"
    )
    rests = ClassChange(5, "sand", Estimate(0.01, -0.01, 0.03, 300), Estimate(0.0, -0.1, 0.1, 300), 0.02, 0.4, "")
    control = ControlEffect((0.01, 0.03), (0.98, 1.0))
    effect = ImageEffect(
        300, Estimate(0.206, 0.15, 0.26, 300), Estimate(0.9, 0.86, 0.93, 300), 41, 1, 0, (falls, rests), control
    )
    facts: dict[str, Any] = {"measure": "binary_kl", "everywhere": effect, "most_active": effect}
    return CausalReport(**{**facts, "active_images": 120, "references": (0.0,), "draws": ((7,), (9,)), **changes})


def make_causal_check(layer: Layer, dataset: Dataset, *units: int, report: CausalReport | None = None) -> CausalCheck:
    """One that was measured."""
    question = CausalQuestion(units)
    row = CausalCheck.objects.create(
        layer=layer,
        dataset=dataset,
        key=CausalCheck.key_of(layer, dataset, question),
        units=list(units),
        factor=0.0,
        reference="zero",
        result=encode(report or make_report()),
        measured=timezone.now(),
    )
    row.changed_units.set([Unit.objects.get_or_create(layer=layer, number=each)[0] for each in units])
    return row
