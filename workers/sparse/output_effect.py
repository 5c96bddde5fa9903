"""Measure what happens to a model's own output when a reconstruction of one layer replaces the layer.

For comparison the mean activation, which does not depend on the image, replaces it too: the share of that loss that the
reconstruction avoids is the share that it recovers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

import torch
from PIL.Image import Image
from torch import Tensor

from workers.errors import BrokenImage, MissingPart
from workers.lab.imaging import map_in_parallel
from workers.metrics.intervals import estimate_gap, estimate_mean, estimate_share
from workers.protocols import Dataset, Progress, RewritableModel, Rewrite, Scale, VisionModel
from workers.record.estimates import Estimate
from workers.record.sparse_report import OutputEffect

_REBUILT, _ABLATED = "rebuilt", "ablated"


def measure_effect(
    model: VisionModel,
    layer: str,
    rewrites: tuple[Rewrite, Rewrite],
    dataset: Dataset,
    images: Sequence[int],
    batch_size: int,
    progress: Progress,
) -> OutputEffect:
    """Measure the effect of two rewrites, reconstruction and mean, over the images at these positions of the dataset.

    Images that cannot be read are left out. A model or layer that cannot be rewritten gives the reason.
    """
    if not hasattr(model, "outputs"):
        return OutputEffect(why=f"{model.name} has no output of its own that follows from {layer}")
    # Logits are compared as distributions, other outputs by their distance.
    scale = next((info.scale for info in model.layers() if info.kind == "logit"), None)
    comparison = _Comparison(scale)
    by_name = dict(zip((_REBUILT, _ABLATED), rewrites, strict=True))
    done = 0
    try:
        for batch in _read_batches(dataset, images, batch_size):
            progress(f"Running {model.name} with {layer} replaced", done, len(images))
            _compare(cast("RewritableModel", model), layer, by_name, batch, comparison)
            done += batch_size
    # A layer that cannot be rewritten is no failure: the report says why.
    except MissingPart as error:
        return OutputEffect(why=str(error))
    return comparison.summarise()


def _read_batches(dataset: Dataset, images: Sequence[int], size: int) -> Iterator[list[Image]]:
    def read(position: int) -> Image | None:
        try:
            return dataset[position].image
        except BrokenImage:
            return None

    for start in range(0, len(images), size):
        found = map_in_parallel(read, [int(each) for each in images[start : start + size]])
        # A batch of unreadable images would be an empty call.
        if readable := [each for each in found if each is not None]:
            yield readable


def _compare(
    model: RewritableModel, layer: str, rewrites: Mapping[str, Rewrite], batch: Sequence[Image], into: _Comparison
) -> None:
    # On the CPU in float64: small divergences are differences of large logarithms.
    own = model.outputs(batch, layer).cpu().double()
    into.add_own(own)
    for name, rewrite in rewrites.items():
        into.add(name, own, model.outputs(batch, layer, rewrite).cpu().double())


class _Comparison:
    """Outputs (batch, outputs) compared image by image; `scale` is that of logits, None if they are no classes."""

    def __init__(self, scale: Scale | None) -> None:
        self._scale = scale
        self._losses: dict[str, list[Tensor]] = {_REBUILT: [], _ABLATED: []}
        self._same: dict[str, list[Tensor]] = {_REBUILT: [], _ABLATED: []}
        self._embeddings: list[Tensor] = []

    def add_own(self, own: Tensor) -> None:
        if self._scale is None:
            self._embeddings.append(own)

    def add(self, name: str, own: Tensor, other: Tensor) -> None:
        if self._scale is None:
            self._losses[name].append((other - own).square().sum(1))
        else:
            self._losses[name].append(diverge(own, other, self._scale))
            self._same[name].append(find_same(own, other, self._scale))

    def summarise(self) -> OutputEffect:
        """Raise MissingPart if the outputs are the same for all images, so that no change is large or small."""
        rebuilt, ablated = (torch.cat(self._losses[name]) / self._unit() for name in (_REBUILT, _ABLATED))
        # Negative, since a smaller loss is better; no loss is the ceiling.
        recovered = estimate_gap(-rebuilt.numpy(), -ablated.numpy(), torch.zeros_like(rebuilt).numpy())
        if recovered.value is None:
            recovered = replace(recovered, why="the mean in the layer's place changes nothing of the output")
        # None for outputs that are no classes.
        same = {name: self._share(name) for name in (_REBUILT, _ABLATED)}
        return OutputEffect(
            measure="change" if self._scale is None else "binary_kl" if self._scale == "sigmoid" else "kl",
            rebuilt=estimate_mean(rebuilt.numpy()),
            ablated=estimate_mean(ablated.numpy()),
            recovered=recovered,
            same_rebuilt=same[_REBUILT],
            same_ablated=same[_ABLATED],
        )

    def _unit(self) -> float:
        """Return what losses are divided by: without classes, the variance of the output among images."""
        if self._scale is not None:
            return 1.0
        own = torch.cat(self._embeddings)
        variance = float((own - own.mean(0)).square().sum(1).mean())
        # Relative to the outputs, since rounding leaves a little variance in equal ones.
        if not variance > torch.finfo(torch.float32).eps ** 2 * float(own.square().sum(1).mean()):
            raise MissingPart("The model's output is the same for all images. Choose another dataset.")
        return variance

    def _share(self, name: str) -> Estimate:
        if self._scale is None:
            return Estimate(why="the model knows no classes")
        same = torch.cat(self._same[name])
        return estimate_share(int(same.sum()), len(same))


def diverge(own: Tensor, other: Tensor, scale: Scale) -> Tensor:
    """Return the Kullback-Leibler divergence (batch,) in nats of probabilities from the model's own, of logits (batch,
    classes).

    Of the distribution over classes; on the sigmoid scale of each class by itself, summed.
    """
    if scale == "sigmoid":
        # Both sides of each class: present and absent.
        sides = [(sign * own, sign * other) for sign in (1, -1)]
        log = torch.nn.functional.logsigmoid
        return sum((mine.sigmoid() * (log(mine) - log(new)) for mine, new in sides), torch.zeros_like(own)).sum(1)
    mine, new = own.log_softmax(1), other.log_softmax(1)
    return (mine.exp() * (mine - new)).sum(1)


def find_same(own: Tensor, other: Tensor, scale: Scale) -> Tensor:
    """Return (batch,): True if the top class stays, or on the sigmoid scale the set of classes above .5."""
    if scale == "sigmoid":
        # Above .5 on the sigmoid scale is above 0 as a logit.
        return ((own > 0) == (other > 0)).all(1)
    return own.argmax(1) == other.argmax(1)
